"""Train a process or outcome reward model, a policy, or a reviewer and refiner: from a file to an adapter folder."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicore
from magicore.errors import InputError, MissingExtraError, StoreError
from magicore.store.json_lines import write_whole
from magicore.training.config import KINDS, TrainingConfig

if TYPE_CHECKING:
    from magicore.training.examples import Examples
    from magicore.training.loop import CurvePoint
    from magicore.training.trainee import Trainee

RECIPE = "training.json"
_LOADED_AS = {"language-model": "hf"}
_OUTPUTS = ("training.json", "checkpoint.json", "checkpoint.safetensors", "curve.jsonl", "curve.png")
_BUNDLE_TOKENS = 768
_PACKAGES = ("torch", "transformers", "peft")


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished training, or one that was ended early and goes on when called again.

    Attributes:
        folder: The adapter's folder.
        name: Under which it loads: ``math-shepherd:FOLDER``, ``hf:FOLDER`` ...
        curve: Points of the held-out curve.
        recipe: What training.json holds.
        interrupted: Whether steps remain.
    """

    folder: Path
    name: str
    curve: tuple[CurvePoint, ...]
    recipe: Mapping[str, Any]
    interrupted: bool = False


def train(
    config: TrainingConfig,
    data: str | Path,
    out: str | Path,
    *,
    gold: str | None = None,
    force: bool = False,
    progress: bool | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Train an adapter into ``out``; the same call goes on where it was interrupted.

    Args:
        config: Every number that decides the weights.
        data: For ``prm`` and ``orm`` a file of solutions with ``step_labels`` and ``outcome``
            (``magicore label-steps``); for ``policy`` problems with a worked ``solution``
            (``gen:stories:2000:1:train``) or ``messages``; for ``refiner`` labelled solutions with ``gold``, or
            ``messages``.
        out: The adapter's folder: ``adapter_model.safetensors``, ``adapter_config.json``, ``reward_model.json``,
            ``training.json`` (recipe, hashes, minutes), ``curve.jsonl``, ``curve.png``, a checkpoint until it ends.
        gold: Worked solutions by problem id, for a refiner.
        force: Begin anew where ``out`` holds another training.
        progress: Whether to show a bar; by default where stderr is a terminal.
        stop: Asked after every step; yes ends the training with a checkpoint.

    Raises:
        InputError: The data or a setting is wrong, or ``out`` holds another training.
        MissingExtraError: The packages for training are not installed.
    """
    try:
        import peft  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"training needs {error.name}: pip install 'magicore[train]'") from error
    from magicore.training.examples import bundled, split_held_out
    from magicore.training.loop import fit, total_steps
    from magicore.training.trainee import frozen_dtype, open_trainee
    from magicore.training.watching import TrainingBar, draw_curve
    from reward_models.local.processor import compute

    folder = Path(out)
    _prepare(folder, force=force)
    before = _read_recipe(folder)
    digest = _digest(config, str(data), gold)
    if before is not None and before.get("key") == digest and before.get("finished"):
        return _trained(folder, before, interrupted=False)
    if before is not None and before.get("key") != digest:
        raise InputError(f"{folder} holds a training with other settings or data; give another --out, or --force")
    trainee = compute(lambda: open_trainee(config))
    examples = make_examples(config, str(data), gold, trainee)
    if not examples.kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in examples.left_out.items()) or "it is empty"
        raise InputError(f"{data}: nothing to train on ({reasons})")
    trained, held_out = split_held_out(examples.kept, config.held_out, config.seed)
    counts = {"examples": len(trained), "held_out_examples": len(held_out)}
    if config.kind in ("prm", "orm"):
        trained, held_out = (bundled(part, _BUNDLE_TOKENS) for part in (trained, held_out))
    steps = total_steps(config, len(trained))
    recipe = {
        "key": digest,
        "finished": False,
        **config.recipe(),
        "data": str(data),
        "gold": gold,
        "data_sha256": hashlib.sha256(repr([(e.ids, e.reads, e.targets) for e in examples.kept]).encode()).hexdigest(),
        **counts,
        "left_out": dict(examples.left_out),
        "total_steps": steps,
        "frozen_weights": str(frozen_dtype(config)).removeprefix("torch."),
        "version": magicore.__version__,
        "packages": {name: version(name) for name in _PACKAGES},
        "python": platform.python_version(),
    }
    write_whole(folder / RECIPE, [_json(recipe)])
    with TrainingBar(config.kind, steps, shown=progress) as bar:
        curve = compute(lambda: fit(trainee, trained, held_out, config, folder, key=digest, told=bar.told, stop=stop))
    last = curve[-1]
    interrupted = last.step < steps
    if not interrupted:
        compute(lambda: _finish(folder, trainee, config, recipe, last))
        draw_curve(curve, folder, config.kind)
    return _trained(folder, _read_recipe(folder) or recipe, interrupted=interrupted)


def make_examples(config: TrainingConfig, data: str, gold: str | None, trainee: Trainee) -> Examples:
    """The examples of a data source, for what is trained.

    Raises:
        InputError: The data cannot be read, or is of another form than the kind needs.
    """
    from magicore.prompts import load_prompts
    from magicore.training.conversations import read_conversations, refining_conversations
    from magicore.training.examples import conversation_examples, outcome_examples, step_examples
    from magicore.training.label_rules import read_worked
    from magicore.training.labels import read_labels
    from reward_models.families.tokens import TextTokenizer

    longest = config.max_length
    if config.kind in ("prm", "orm"):
        assert trainee.write is not None
        make = step_examples if config.kind == "prm" else outcome_examples
        return make(read_labels(data), TextTokenizer(trainee.tokenizer), trainee.write, longest)
    prompts = load_prompts(config.prompts)
    if config.kind == "refiner" and gold is not None:
        found = refining_conversations(read_labels(data), read_worked(gold), prompts, seed=config.seed)
        return conversation_examples(found, trainee.tokenizer, longest)
    return conversation_examples(read_conversations(data, prompts), trainee.tokenizer, longest)


def _finish(folder: Path, trainee: Trainee, config: TrainingConfig, recipe: dict[str, Any], last: CurvePoint) -> None:
    """Write the adapter and what made it; the checkpoint has done its work."""
    import torch

    from reward_models.local.adapter import WEIGHTS

    trainee.save(folder, torch.float16 if config.adapter_dtype == "float16" else torch.float32)
    recipe |= {
        "finished": True,
        "minutes": round(last.seconds / 60, 2),
        "tokens": last.tokens,
        "tokens_per_second": round(last.tokens / max(last.seconds, 1e-9), 1),
        "result": {name: value for name, value in asdict(last).items() if name.startswith(("loss", "held_out"))},
        "adapter_sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
    }
    write_whole(folder / RECIPE, [_json(recipe)])
    for name in ("checkpoint.json", "checkpoint.safetensors"):
        (folder / name).unlink(missing_ok=True)


def _trained(folder: Path, recipe: Mapping[str, Any], *, interrupted: bool) -> Trained:
    from magicore.training.loop import CURVE, CurvePoint

    rows: Sequence[str] = (
        (folder / CURVE).read_text(encoding="utf-8").splitlines() if (folder / CURVE).is_file() else ()
    )
    head = str(recipe["head"])
    return Trained(
        folder=folder,
        name=f"{_LOADED_AS.get(head, head)}:{folder}",
        curve=tuple(CurvePoint(**json.loads(row)) for row in rows),
        recipe=recipe,
        interrupted=interrupted,
    )


def _prepare(folder: Path, *, force: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force:
            for name in _OUTPUTS:
                (folder / name).unlink(missing_ok=True)
        elif any(folder.iterdir()) and not (folder / RECIPE).exists():
            raise StoreError(f"{folder} holds files and no training; give another --out, or --force to write into it")
    except OSError as error:
        raise StoreError(f"{folder} cannot be used: {error.strerror}") from error


def _read_recipe(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / RECIPE} cannot be read ({error}); --force begins anew") from error
    return found


def _digest(config: TrainingConfig, data: str, gold: str | None) -> str:
    """What makes two trainings the same: settings, and the data files' bytes or names."""
    digest = hashlib.sha256(json.dumps(config.recipe(), sort_keys=True).encode())
    for source in (data, gold):
        path = None if source is None else Path(source)
        digest.update(path.read_bytes() if path is not None and path.is_file() else str(source).encode())
    return digest.hexdigest()


def _json(recipe: Mapping[str, Any]) -> bytes:
    return json.dumps(recipe, indent=2).encode() + b"\n"


__all__ = ["KINDS", "Trained", "TrainingConfig", "make_examples", "train"]
