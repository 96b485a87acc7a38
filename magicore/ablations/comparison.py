"""Several methods over the same problems and the same chains, in one table.

Methods share one store, so a chain that one has drawn is read back by the next. Each row counts what its method would
spend alone: tokens of every chain it uses. Its time is the time that its own stages took in this run, those shared with
earlier rows included once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from magicore.evaluate import wilson_interval
from magicore.methods import AnyMethod
from magicore.runtime.run import RunObserver, run_method
from magicore.runtime.runtime import Engine
from magicore.types import Problem, Result, Usage

REWARD_ROLES = frozenset({"orm", "prm", "judge"})


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One method's figures over the batch.

    Attributes:
        name: The method.
        correct, graded: Right answers, and problems with a gold answer.
        low, high: Wilson interval of the accuracy, 95 %.
        generation_tokens: Prompt and completion tokens of the language model.
        reward_tokens: Tokens of reward models and judges.
        calls: Language-model calls.
        seconds: Wall time; see the module's docstring.
        refined: Problems that went through at least one refinement round.
    """

    name: str
    correct: int
    graded: int
    low: float
    high: float
    generation_tokens: int
    reward_tokens: int
    calls: int
    seconds: float
    refined: int = 0

    @property
    def accuracy(self) -> float:
        """correct / graded."""
        return self.correct / self.graded


async def compare_methods(
    methods: Sequence[AnyMethod], problems: Sequence[Problem], engine: Engine, *, observer: RunObserver | None = None
) -> tuple[tuple[MethodRow, ...], dict[str, tuple[Result, ...]]]:
    """Run each method in turn over all problems; returns the rows and every result, by method name.

    Give them in order of what they draw: a later method's time holds an earlier one's, as it stands on its chains.
    """
    rows: list[MethodRow] = []
    results: dict[str, tuple[Result, ...]] = {}
    elapsed = 0.0
    for method in methods:
        started = time.perf_counter()
        outcome = await run_method(method, problems, engine, observer=observer)
        elapsed += time.perf_counter() - started
        results[method.name] = outcome.results
        rows.append(method_row(method.name, outcome.results, elapsed))
    return tuple(rows), results


def method_row(name: str, results: Sequence[Result], seconds: float) -> MethodRow:
    """The figures of one method's results; at least one problem has a gold answer."""
    graded = [result for result in results if result.correct is not None]
    correct = sum(bool(result.correct) for result in graded)
    low, high = wilson_interval(correct, len(graded))
    generation, reward = spent(results)
    return MethodRow(
        name=name,
        correct=correct,
        graded=len(graded),
        low=low,
        high=high,
        generation_tokens=generation.total,
        reward_tokens=reward.total,
        calls=generation.calls,
        seconds=seconds,
        refined=sum(len(result.rounds) > 1 for result in results),
    )


def spent(results: Sequence[Result]) -> tuple[Usage, Usage]:
    """What generation spent, and what reward models and judges spent."""
    generation, reward = Usage(), Usage()
    for entry in (entry for result in results for entry in result.usage):
        if entry.role in REWARD_ROLES:
            reward += entry.usage
        else:
            generation += entry.usage
    return generation, reward
