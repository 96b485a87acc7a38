"""Judge a reward model on a file: score every solution and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from magicore._sync import run_sync
from magicore.config import load_config
from magicore.errors import CapabilityError, InputError
from magicore.evaluate.first_error import best_threshold
from magicore.evaluate.judged import Judged, read_judged
from magicore.evaluate.reward_report import RewardReport, Scored, report, unscored_reasons
from magicore.runtime.open import open_engine
from magicore.store.run_store import RunStore
from magicore.types import ScoredChain
from reward_models.base import RewardModel
from reward_models.registry import outcome_models, process_models

BATCH = 64
RewardKind = Literal["process", "outcome"]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A report and what it is of. ``tuned_on`` names the file that the threshold was chosen on, if any was."""

    model: str
    kind: RewardKind
    data: str
    aggregation: str | None
    threshold: float
    tuned_on: str | None
    report: RewardReport

    def row(self) -> dict[str, Any]:
        """report.json."""
        return {
            "model": self.model,
            "kind": self.kind,
            "data": self.data,
            "aggregation": self.aggregation,
            "threshold": self.threshold,
            "tuned_on": self.tuned_on,
            **self.report.row(),
        }


def evaluate_reward_model(model: str | RewardModel, data: str | Path | Sequence[Judged], **options: Any) -> Judgement:
    """Judge a reward model; the synchronous form of :func:`aevaluate_reward_model`."""
    return run_sync(aevaluate_reward_model(model, data, **options))


async def aevaluate_reward_model(
    model: str | RewardModel,
    data: str | Path | Sequence[Judged],
    *,
    kind: RewardKind | None = None,
    problems: str | None = None,
    threshold: float = 0.5,
    tune: str | Path | None = None,
    store: Path | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> Judgement:
    """Judge a reward model on solutions of which it is known what is right in them.

    Args:
        model: A name or an object.
        data: A file (see :func:`magicore.evaluate.judged.read_judged`) or what was read from one.
        kind: ``process`` or ``outcome``, for names that may be either.
        problems: The problems behind a chains.jsonl.
        threshold: A step that scores below it is taken for wrong (first-error F1).
        tune: A file on which the threshold is chosen instead, by F1; it should not be the one that is judged.
        store: Where scores are kept, so that nothing is scored twice.
        config, **settings: Settings of :class:`RunConfig`: ``aggregation``, ``device``, ``dtype`` ...

    Raises:
        InputError: The file cannot be read, the threshold lies outside [0, 1], or the kind has to be said.
        RewardModelError: The model cannot be loaded, or failed.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"the threshold lies in [0, 1], got {threshold}")
    name = model if isinstance(model, str) else model.name
    chosen_kind = kind or (_kind_of(model) if isinstance(model, str) else None)
    if chosen_kind is None:
        raise InputError(f"{name!r} may be an outcome or a process reward model; say which with --kind")
    role = "prm" if chosen_kind == "process" else "orm"
    # A process model's own recommendation, unless another aggregation is asked for.
    settings = {"aggregation": "family", **settings, role: name}
    chosen = load_config(config, settings)
    given: dict[str, Any] = {} if isinstance(model, str) else {role: model}
    judged = read_judged(data, problems) if isinstance(data, str | Path) else list(data)
    kept = RunStore(store)
    try:
        async with open_engine(chosen, kept, generation=False, **given) as engine:
            if tune is not None:
                if chosen_kind == "outcome":
                    raise CapabilityError("an outcome reward model has no step scores to choose a threshold for")
                apart = read_judged(tune)
                threshold = _tuned(apart, await _scores(engine, apart))
            chains = await _scores(engine, judged)
    finally:
        kept.close()
    codes = [code for chain in chains for code in _codes(chain)]
    found = report(judged, [_said(chain) for chain in chains], threshold=threshold, unscored=unscored_reasons(codes))
    aggregations = {chain.aggregation for chain in chains if chain.aggregation is not None}
    return Judgement(
        model=name,
        kind=chosen_kind,
        data=str(data) if isinstance(data, str | Path) else f"{len(judged)} solutions",
        aggregation=next(iter(aggregations), None),
        threshold=threshold,
        tuned_on=None if tune is None else str(tune),
        report=found,
    )


async def _scores(engine: Any, judged: Sequence[Judged]) -> list[ScoredChain]:
    from magicore.api import score_solutions

    scored: list[ScoredChain] = []
    for start in range(0, len(judged), BATCH):
        part = [replace(one.given, chain=None, step_labels=None) for one in judged[start : start + BATCH]]
        scored += await score_solutions(engine, part)
    return scored


def _said(chain: ScoredChain) -> Scored:
    if chain.prm is not None:
        return Scored(steps=tuple(step.value for step in chain.prm.scores), whole=chain.s)
    return Scored(steps=None, whole=chain.o)


def _codes(chain: ScoredChain) -> list[str]:
    if chain.prm is not None:
        return [step.unscored.code for step in chain.prm.scores if step.unscored is not None]
    return [chain.orm.unscored.code] if chain.orm is not None and chain.orm.unscored is not None else []


def _tuned(judged: Sequence[Judged], chains: Sequence[ScoredChain]) -> float:
    pairs = [
        (_said(chain).steps or (), one.first_error)
        for one, chain in zip(judged, chains, strict=True)
        if one.first_error is not None
    ]
    if not pairs:
        raise InputError("the file to choose a threshold on knows of no first errors")
    return best_threshold([steps for steps, _ in pairs], [label for _, label in pairs]).threshold


def _kind_of(name: str) -> RewardKind | None:
    """The kind that a name has; ``None`` if it may be either."""
    provider = name.partition(":")[0].partition("@")[0].partition("#")[0]
    process, outcome = provider in process_models.names(), provider in outcome_models.names()
    if process == outcome:
        return None
    return "process" if process else "outcome"
