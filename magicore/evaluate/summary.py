"""The summary of a run: what summary.json holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import magicore
from magicore.evaluate.accuracy import accuracy
from magicore.evaluate.compute import cost_of
from magicore.types import Result

if TYPE_CHECKING:
    from magicore.config import RunConfig


def summarise(results: Sequence[Result], *, config: RunConfig, wall_s: float | None) -> dict[str, Any]:
    """Count and measure a run's results.

    ``accuracy`` is ``correct / graded`` with its 95 % Wilson interval; ``graded`` are the problems with a gold answer,
    and one that abstained or failed is not right. ``abstained`` are problems without an answer that did not fail.
    ``easy`` and ``hard`` are null where nothing was routed. ``k`` is the number of chains drawn first, as set or, where
    the method's default was used, as found in the results.
    """
    found = accuracy(results)
    spent = cost_of(results)
    verdicts = [result.verdict for result in results if result.verdict is not None]
    failed = [result for result in results if _failed(result)]
    return {
        "n": found.n,
        "graded": found.graded,
        "correct": found.correct,
        "accuracy": found.value,
        "accuracy_low": None if found.interval is None else found.interval.low,
        "accuracy_high": None if found.interval is None else found.interval.high,
        "easy": sum(verdict.easy for verdict in verdicts) if verdicts else None,
        "hard": sum(verdict.hard for verdict in verdicts) if verdicts else None,
        "abstained": sum(result.answer is None and not _failed(result) for result in results),
        "failed": len(failed),
        "usage": {
            "generation_tokens": spent.generation_tokens,
            "reward_tokens": spent.reward_tokens,
            "judge_tokens": spent.judge_tokens,
        },
        "calls": spent.calls,
        "wall_s": wall_s,
        "method": config.method,
        "model": config.model,
        "orm": config.orm,
        "prm": config.prm,
        "k": _chains_drawn(results, config),
        "seed": config.seed,
        "version": magicore.__version__,
    }


def _failed(result: Result) -> bool:
    return result.stop == "failed" or result.error is not None


def _chains_drawn(results: Sequence[Result], config: RunConfig) -> int | None:
    given = config.options.get("k")
    if isinstance(given, int):
        return given
    return max((len(result.rounds[0].chains) for result in results if result.rounds), default=None)
