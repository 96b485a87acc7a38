"""LoRA adapters as PEFT writes them: found, read without PEFT, and merged into the base model's weights at loading.

A folder with ``adapter_config.json`` and ``adapter_model.safetensors``, as ``magicore train`` makes it, stands for a
whole model. Its base is what ``base_model_name_or_path`` names: a Hub id, a folder (relative to the adapter's own),
another adapter's folder, or ``embedded``, the model that comes with the package.

W' = W + (alpha / r) B A  (Hu et al., 2022, arXiv 2106.09685)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from reward_models.errors import CheckpointError
from reward_models.local.checkpoint import ADAPTER_CONFIG, Checkpoint
from reward_models.local.embedded import adapter_folder, base_folder

WEIGHTS = "adapter_model.safetensors"
EMBEDDED, EMBEDDED_BASE = "embedded", "embedded:base"
"""The package's own policy, an adapter where it is trained, and the model below it: bases by name."""
_PREFIX = "base_model.model."
_MOST_BASES = 4
_UNREAD = ("rank_pattern", "alpha_pattern", "trainable_token_indices", "target_parameters", "use_dora", "lora_bias")


class Adapter:
    """The weights of one adapter folder.

    Attributes:
        base: What it was trained on, as its configuration names it.
        tensors: Whole tensors that it brings (a head), by their name in the full model.
    """

    def __init__(self, folder: Path) -> None:
        """Read the folder.

        Raises:
            CheckpointError: It is damaged, or an adapter of another kind than plain LoRA.
        """
        self.folder = folder
        config = _config(folder)
        if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none":
            raise CheckpointError(
                f"it is an adapter of kind {config.get('peft_type')}; plain LoRA is read", model=str(folder)
            )
        if strange := [name for name in _UNREAD if config.get(name)]:
            raise CheckpointError(f"its {', '.join(strange)} is not read; plain LoRA is", model=str(folder))
        rank = int(config["r"])
        self.base = str(config.get("base_model_name_or_path") or "")
        self._transposed = bool(config.get("fan_in_fan_out"))
        self._scale = float(config["lora_alpha"]) / (rank**0.5 if config.get("use_rslora") else rank)
        self.tensors: dict[str, Tensor] = {}
        self._down: dict[str, Tensor] = {}
        self._up: dict[str, Tensor] = {}
        try:
            with safe_open(folder / WEIGHTS, framework="pt") as opened:
                for key in opened.keys():
                    self._take(key.removeprefix(_PREFIX), opened.get_tensor(key).float())
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{folder / WEIGHTS} cannot be read ({error})", model=str(folder)) from error
        if self._down.keys() != self._up.keys():
            raise CheckpointError("its LoRA matrices do not come in pairs", model=str(folder))

    def _take(self, key: str, tensor: Tensor) -> None:
        for mark, held in ((".lora_A.weight", self._down), (".lora_B.weight", self._up)):
            if key.endswith(mark):
                held[key.removesuffix(mark)] = tensor
                return
        self.tensors[key] = tensor

    @property
    def fingerprint(self) -> str:
        """Changes with the weights."""
        digest = hashlib.sha256((self.folder / ADAPTER_CONFIG).read_bytes())
        digest.update((self.folder / WEIGHTS).read_bytes())
        return digest.hexdigest()[:16]

    def merge(self, model: Any) -> None:
        """Add the adapter to a loaded model's weights, in place; ``model`` may be the full model or its backbone.

        Raises:
            CheckpointError: The model has no such module, or one of another shape.
        """
        modules = dict(model.named_modules())
        with torch.no_grad():
            for path, down in self._down.items():
                module = modules.get(path) or modules.get(path.partition(".")[2])
                weight = getattr(module, "weight", None)
                delta = self._scale * (self._up[path] @ down)
                delta = delta.T if self._transposed else delta
                if weight is None or weight.shape != delta.shape:
                    raise CheckpointError(f"the base model has no {path} of its shape", model=str(self.folder))
                weight.copy_((weight.float() + delta.to(weight.device)).to(weight.dtype))


class AdaptedCheckpoint(Checkpoint):
    """A base checkpoint with an adapter over it: the base's files, the adapter's head, the merged weights."""

    def __init__(self, base: Checkpoint, adapter: Adapter) -> None:
        super().__init__(base.folder, name=str(adapter.folder), revision=base.revision)
        self._base = base
        self._adapter = adapter
        self.declared = read_declared(adapter.folder) or base.declared

    @property
    def identity(self) -> str:
        """The base's, and the adapter's fingerprint."""
        return f"{self._base.identity}+{self._adapter.fingerprint}"

    def has(self, key: str) -> bool:
        """Whether base or adapter has a tensor of this name."""
        return key in self._adapter.tensors or self._base.has(key)

    def tensor(self, key: str, *, rows: Sequence[int] | None = None) -> Tensor:
        """The adapter's tensor of this name, else the base's."""
        own = self._adapter.tensors.get(key)
        if own is None:
            return self._base.tensor(key, rows=rows)
        return own if rows is None else own[list(rows)]

    def finish(self, model: Any) -> None:
        """Merge into the loaded backbone."""
        self._base.finish(model)
        self._adapter.merge(model)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no whole model."""
    return (folder / ADAPTER_CONFIG).is_file() and not (folder / "config.json").is_file()


def open_adapter(folder: Path, *, depth: int = 0) -> AdaptedCheckpoint:
    """An adapter folder with its base.

    Raises:
        CheckpointError: It is damaged, or its base is not there.
        MissingExtraError: Its base is the embedded model, which is not installed.
    """
    if depth > _MOST_BASES:
        raise CheckpointError("its adapters stand on each other without end", model=str(folder))
    adapter = Adapter(folder)
    where = base_of(folder, adapter.base)
    base: Checkpoint
    if isinstance(where, Path) and is_adapter(where):
        base = open_adapter(where, depth=depth + 1)
    else:
        base = Checkpoint.open(str(where))
    return AdaptedCheckpoint(base, adapter)


def base_of(folder: Path, name: str) -> Path | str:
    """Where an adapter's base is: a folder, or a Hub id.

    Raises:
        CheckpointError: The adapter names none.
    """
    if name == EMBEDDED and is_adapter(policy := adapter_folder("policy")):
        return policy
    if name in (EMBEDDED, EMBEDDED_BASE):
        return base_folder()
    if not name:
        raise CheckpointError(f"its {ADAPTER_CONFIG} names no base model", model=str(folder))
    for path in (Path(name).expanduser(), folder / name):
        if path.is_dir():
            return path
    return name


def adapter_base(folder: Path) -> str:
    """The name of an adapter's base.

    Raises:
        CheckpointError: It cannot be read.
    """
    return str(_config(folder).get("base_model_name_or_path") or "")


def read_declared(folder: Path) -> dict[str, Any] | None:
    """What the folder declares of its input format (``reward_model.json``), if it does."""
    file = folder / Checkpoint.DECLARED
    if not file.is_file():
        return None
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read ({error})", model=str(folder)) from error
    return found


def _config(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        return {**found, "r": int(found.get("r", 0)) or 1}
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{folder / ADAPTER_CONFIG} cannot be read ({error})", model=str(folder)) from error
