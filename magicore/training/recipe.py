"""The recipe of the embedded set: a policy for three generated families, a process and an outcome reward model.

Stages, each kept in a folder of its own and taken up where it stopped:

1. ``policy-data``: worked solutions in the solver's prompt, and solutions with one error (a slip or a misreading,
   carried on to the end) or none in the reviewer's and refiner's prompts.
2. ``policy``: an adapter trained on them.
3. ``chains``: the policy's own solutions of other training problems.
4. ``labels``: each step completed N times by the policy (Math-Shepherd).
5. ``prm`` and 6. ``orm``: adapters over the policy's, trained on the labels and on the outcomes. Who can solve a
   problem has much of what judging it takes.
7. ``check``: single accuracy, majority and any-right of the policy on held-out problems, and the step AUROC of the PRM
   there against the exact step truth, family by family. Nothing is chosen by it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import magicore
from magicore.datasets.families import draw_family, family_id
from magicore.datasets.families.plan import Drawn, step_truth, with_error
from magicore.errors import InputError, MagicoreError
from magicore.evaluate.judging import evaluate_reward_model
from magicore.prompts import PromptSet, load_prompts
from magicore.store.files import read_problems, write_problems
from magicore.store.json_lines import write_json_lines, write_whole
from magicore.store.solutions import read_solutions
from magicore.training.conversations import (
    blurred_scores,
    feedback_from_labels,
    refine_conversation,
    review_conversation,
    solver_conversation,
)
from magicore.training.label_steps import label_steps
from magicore.training.train import RECIPE, TrainingConfig, train
from magicore.types import Problem
from reward_models.local.adapter import WEIGHTS
from reward_models.local.checkpoint import ADAPTER_CONFIG, Checkpoint
from reward_models.steps import join_steps

FAMILIES = ("stories", "clock", "units")
PROMPTS = "trained"
STAGES = ("policy-data", "policy", "chains", "labels", "prm", "orm", "check")
ADAPTERS = ("policy", "prm", "orm")
LARGEST_SET = 25_000_000
"""Bytes that the three adapters may have together."""
_JUDGES: dict[str, Any] = {"rank": 8, "batch": 4, "learning_rate": 1e-3, "epochs": 1.5, "micro_tokens": 2048}
_SHIPPED = (ADAPTER_CONFIG, WEIGHTS, Checkpoint.DECLARED, RECIPE)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Tokens a second on two cores, from which minutes are estimated before anything is measured."""

    training: float = 650.0
    sampling: float = 800.0


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Every number of the recipe.

    Attributes:
        base: What the policy is trained on; the reward models are trained on the policy.
        families: The generated families that the policy and the reward models are trained on.
        problems: Problems a family that the policy learns to solve; seed ``policy_seed``.
        reviews: Problems a family of which a solution is reviewed and refined; seed ``review_seed``.
        policy, prm, orm: The trainings.
        chain_problems, k: Problems a family and chains a problem that are labelled; seed ``chain_seed``.
        completions: N, completions a step.
        soft: Whether labels are shares.
        max_tokens: Of a chain.
        check_problems: Held-out problems a family, from the test split; seed ``check_seed``.
    """

    base: str = "embedded:base"
    families: tuple[str, ...] = FAMILIES
    problems: int = 800
    reviews: int = 240
    policy: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            kind="policy", rank=16, learning_rate=1e-3, batch=8, prompts=PROMPTS, held_out=0.01, micro_tokens=2048
        )
    )
    chain_problems: int = 200
    k: int = 4
    completions: int = 3
    soft: bool = True
    prm: TrainingConfig = field(default_factory=lambda: TrainingConfig(kind="prm", **_JUDGES))
    orm: TrainingConfig = field(default_factory=lambda: TrainingConfig(kind="orm", **_JUDGES))
    max_tokens: int = 220
    check_problems: int = 40
    policy_seed: int = 1
    review_seed: int = 2
    chain_seed: int = 3
    check_seed: int = 4
    seed: int = 0

    def row(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {**asdict(self), **{name: getattr(self, name).recipe() for name in ADAPTERS}}


QUICK = Recipe(
    families=("stories",),
    problems=24,
    reviews=2,
    policy=TrainingConfig(kind="policy", rank=4, batch=4, steps=8, learning_rate=3e-3, prompts=PROMPTS, held_out=0),
    chain_problems=3,
    k=2,
    completions=1,
    prm=TrainingConfig(kind="prm", rank=4, batch=4, steps=2, held_out=0),
    orm=TrainingConfig(kind="orm", rank=4, batch=4, steps=2, held_out=0),
    max_tokens=110,
    check_problems=1,
)
"""A run of a minute that trains nothing of use: to see that every stage works."""

_TOKENS_SOLVED, _TOKENS_REFINED, _TOKENS_JUDGED, _TOKENS_CHAIN = 142, 235, 130, 75
"""Mean tokens of a conversation that solves, of one that reviews or refines, of a judged chain with its question, and
of a chain."""
_STEPS_A_CHAIN = 3.7


def estimate(recipe: Recipe, rates: Rates | None = None) -> dict[str, float]:
    """Minutes a stage, from counts and rates alone: half of a chain's tokens are completed from an average step."""
    rates = rates or Rates()
    families = len(recipe.families)
    chains = families * recipe.chain_problems * recipe.k
    solved, refined = families * recipe.problems, 2 * families * recipe.reviews
    mean = (solved * _TOKENS_SOLVED + refined * _TOKENS_REFINED) / max(1, solved + refined)
    tokens = {
        "policy": _examples(recipe.policy, solved + refined) * mean,
        "prm": _examples(recipe.prm, chains) * _TOKENS_JUDGED,
        "orm": _examples(recipe.orm, chains) * _TOKENS_JUDGED,
    }
    sampled = {
        "chains": chains * _TOKENS_CHAIN,
        "labels": chains * _STEPS_A_CHAIN * recipe.completions * _TOKENS_CHAIN / 2,
        "check": families * recipe.check_problems * recipe.k * _TOKENS_CHAIN,
    }
    found = {"policy-data": 0.1}
    found |= {stage: count / rates.training / 60 for stage, count in tokens.items()}
    found |= {stage: count / rates.sampling / 60 for stage, count in sampled.items()}
    return {stage: found[stage] for stage in STAGES}


def _examples(config: TrainingConfig, count: int) -> float:
    return config.steps * config.batch if config.steps else config.epochs * count


def policy_data(recipe: Recipe, prompts: PromptSet) -> Iterator[dict[str, Any]]:
    """The policy's conversations: rows of ``problem`` and ``messages``."""
    for family in recipe.families:
        for problem, drawn in _problems(family, recipe.problems, recipe.policy_seed):
            talk = solver_conversation(problem, "\n".join(drawn.steps), prompts)
            yield {"problem": problem.id, "role": "solver", "messages": list(talk)}
        draw = Random(f"errors:{family}:{recipe.review_seed}")
        for problem, drawn in _problems(family, recipe.reviews, recipe.review_seed):
            yield from _refined(problem, drawn, prompts, draw)


def _refined(problem: Problem, drawn: Drawn, prompts: PromptSet, draw: Random) -> Iterator[dict[str, Any]]:
    """A solution with an error (three of four times) or none, reviewed and refined; one of four without scores."""
    planted = with_error(drawn, draw) if draw.random() < 0.75 else None
    texts = drawn.steps if planted is None else planted[0]
    labels = [None if right is None else float(right) for right in step_truth(drawn, texts)]
    _, steps = join_steps(texts)
    scores = None if draw.random() < 0.25 else blurred_scores(labels, draw)
    feedback = feedback_from_labels(steps, labels)
    worked = "\n".join(drawn.steps)
    review = review_conversation(problem, steps, scores, feedback, prompts)
    refine = refine_conversation(problem, steps, scores, feedback, worked, prompts)
    yield {"problem": problem.id, "role": "reviewer", "messages": list(review)}
    yield {"problem": problem.id, "role": "refiner", "messages": list(refine)}


def _problems(family: str, n: int, seed: int, split: str = "train") -> Iterator[tuple[Problem, Drawn]]:
    chosen: Any = split
    for index, drawn in enumerate(draw_family(family, n, seed, chosen) if n else ()):
        name = family_id(family, chosen, seed, index)
        kind = drawn.arithmetic.kind
        yield Problem(id=name, question=drawn.question, kind=kind, answer=drawn.answer), drawn


def run_recipe(
    recipe: Recipe,
    work: Path,
    *,
    until: str = STAGES[-1],
    say: Callable[[str], None] = lambda text: None,
    rates: Rates | None = None,
) -> dict[str, Any]:
    """Run the stages up to and with ``until`` in ``work``, going on where they stopped; returns the recipe's record.

    The record (recipe.json) has settings, seeds, minutes and results of each stage, and the adapters' hashes.

    Raises:
        MagicoreError: A stage cannot be run; the record holds those before it.
    """
    work.mkdir(parents=True, exist_ok=True)
    minutes = estimate(recipe, rates)
    record = _record(work, recipe)
    for stage in STAGES[: STAGES.index(until) + 1]:
        done = record["stages"].get(stage)
        if done is not None:
            say(f"{stage}: done before, {done['minutes']:g} minutes")
            continue
        say(f"{stage}: about {minutes[stage]:.0f} minutes")
        started = time.perf_counter()
        result = _STAGE[stage](recipe, work)
        spent = result.pop("minutes", None) or round((time.perf_counter() - started) / 60, 2)
        record["stages"][stage] = {"minutes": spent, **result}
        say(f"{stage}: {record['stages'][stage]}")
        write_whole(work / "recipe.json", [json.dumps(record, indent=2).encode() + b"\n"])
    return record


def _record(work: Path, recipe: Recipe) -> dict[str, Any]:
    """The record so far, or a new one.

    Raises:
        InputError: The folder holds another recipe.
    """
    wanted = json.loads(json.dumps(recipe.row()))
    file = work / "recipe.json"
    if not file.exists():
        return {"recipe": wanted, "version": magicore.__version__, "cores": os.cpu_count(), "stages": {}}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if found["recipe"] != wanted:
        names = sorted(name for name in wanted if wanted[name] != found["recipe"].get(name))
        raise InputError(f"{work} holds another recipe ({', '.join(names)} differ); give another folder")
    return found


def _policy_data(recipe: Recipe, work: Path) -> dict[str, Any]:
    rows = list(policy_data(recipe, load_prompts(PROMPTS)))
    write_json_lines(work / "policy.jsonl", rows)
    return {"conversations": len(rows), "sha256": _sha256(work / "policy.jsonl")}


def _policy(recipe: Recipe, work: Path) -> dict[str, Any]:
    return _train(recipe, replace(recipe.policy, base=recipe.base, seed=recipe.seed), work, "policy.jsonl")


def _prm(recipe: Recipe, work: Path) -> dict[str, Any]:
    return _train(recipe, replace(recipe.prm, base=str(work / "policy"), seed=recipe.seed), work, "labels/labels.jsonl")


def _orm(recipe: Recipe, work: Path) -> dict[str, Any]:
    return _train(recipe, replace(recipe.orm, base=str(work / "policy"), seed=recipe.seed), work, "labels/labels.jsonl")


def _train(recipe: Recipe, config: TrainingConfig, work: Path, data: str) -> dict[str, Any]:
    made = train(config, work / data, work / config.kind).recipe
    names = ("minutes", "total_steps", "examples", "tokens_per_second", "result", "data_sha256", "adapter_sha256")
    return {name: made[name] for name in names}


def _chains(recipe: Recipe, work: Path) -> dict[str, Any]:
    found = _sample(recipe, work, "chains", recipe.chain_problems, recipe.chain_seed, "train")
    return {"problems": found.summary["n"], "accuracy": found.summary["accuracy"], "chains": found.outcome.chains}


def _labels(recipe: Recipe, work: Path) -> dict[str, Any]:
    given = read_solutions(work / "chains" / "chains.jsonl", read_problems(work / "chains.problems.jsonl"))
    found = label_steps(
        given,
        model=f"hf:{work / 'policy'}",
        n=recipe.completions,
        soft=recipe.soft,
        out=work / "labels",
        prompts=PROMPTS,
        max_tokens=recipe.max_tokens,
        seed=recipe.seed,
    )
    if found.interrupted:
        raise MagicoreError("labelling was interrupted; the same command goes on")
    return {**found.summary, "sha256": _sha256(work / "labels" / "labels.jsonl")}


def _check(recipe: Recipe, work: Path) -> dict[str, Any]:
    _sample(recipe, work, "check", recipe.check_problems, recipe.check_seed, "test")
    found: dict[str, Any] = {}
    for family in recipe.families:
        rows = [
            line
            for line in (work / "check" / "chains.jsonl").read_text(encoding="utf-8").splitlines()
            if json.loads(line)["problem"].startswith(f"{family}-")
        ]
        part = work / f"check.{family}.jsonl"
        part.write_text("".join(f"{line}\n" for line in rows), encoding="utf-8")
        judged: dict[str, Any] = {"problems": str(work / "check.problems.jsonl")}
        prm = evaluate_reward_model(f"math-shepherd:{work / 'prm'}", part, **judged).report
        orm = evaluate_reward_model(f"sequence-classification:{work / 'orm'}", part, **judged).report
        last = prm.selection[-1] if prm.selection else None
        found[family] = {
            "single": None if last is None else last.single,
            "majority": None if last is None else last.majority,
            "any_right": None if last is None else last.any_right,
            "best_of_k_orm": orm.selection[-1].best_of if orm.selection else None,
            "weighted_prm": None if last is None else last.weighted,
            "steps_right": prm.steps.right / prm.steps.n if prm.steps and prm.steps.n else None,
            "prm_step_auroc": prm.steps.auroc if prm.steps else None,
            "orm_auroc": orm.outcomes.auroc if orm.outcomes else None,
        }
    return {"families": found}


def _sample(recipe: Recipe, work: Path, name: str, n: int, seed: int, split: str) -> magicore.Run:
    """Draw k chains of the policy for n problems of each family, and keep problems and chains."""
    problems = [problem for family in recipe.families for problem, _ in _problems(family, n, seed, split)]
    write_problems(work / f"{name}.problems.jsonl", problems)
    return magicore.solve_batch(
        str(work / f"{name}.problems.jsonl"),
        model=f"hf:{work / 'policy'}",
        method="self-consistency",
        k=recipe.k,
        prompts=PROMPTS,
        max_tokens=recipe.max_tokens,
        seed=recipe.seed,
        out=work / name,
    )


_STAGE: Mapping[str, Callable[[Recipe, Path], dict[str, Any]]] = {
    "policy-data": _policy_data,
    "policy": _policy,
    "chains": _chains,
    "labels": _labels,
    "prm": _prm,
    "orm": _orm,
    "check": _check,
}


def install(work: Path, folders: Mapping[str, Path]) -> dict[str, int]:
    """Copy the finished adapters and the record to where the package looks for them. Returns the bytes of each.

    Raises:
        MagicoreError: An adapter is not finished, or they are larger than :data:`LARGEST_SET` together.
    """
    sizes: dict[str, int] = {}
    for name in ADAPTERS:
        missing = [file for file in (ADAPTER_CONFIG, WEIGHTS, RECIPE) if not (work / name / file).is_file()]
        if missing:
            raise MagicoreError(f"{work / name} lacks {missing[0]}: run the recipe to its end first")
        sizes[name] = sum((work / name / file).stat().st_size for file in _SHIPPED if (work / name / file).is_file())
    if sum(sizes.values()) > LARGEST_SET:
        raise MagicoreError(f"the adapters have {sum(sizes.values()):,} bytes, more than {LARGEST_SET:,}")
    for name in ADAPTERS:
        folder = folders[name]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in _SHIPPED:
            if (work / name / file).is_file():
                shutil.copyfile(work / name / file, folder / file)
        for file in (ADAPTER_CONFIG, RECIPE):
            _place(folder / file, work, policy="../policy")
    shutil.copyfile(work / "recipe.json", folders["policy"].parent / "recipe.json")
    _place(folders["policy"].parent / "recipe.json", work, policy="policy")
    return sizes


def _place(file: Path, work: Path, *, policy: str) -> None:
    """Name in a file the policy by its place beside the others, and what else is in ``work`` by its place there."""
    text = file.read_text(encoding="utf-8")
    for folder in {str(work.resolve()), str(work)}:
        text = text.replace(f'"{folder}/policy"', f'"{policy}"').replace(f"{folder}/", "")
    file.write_text(text, encoding="utf-8")


def package_folders() -> dict[str, Path]:
    """Where the package looks for its adapters."""
    from reward_models.local.embedded import adapter_folder

    return {name: adapter_folder(name) for name in ADAPTERS}


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
