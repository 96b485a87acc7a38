"""Several methods over the same problems and the same chains.

Methods share one store, so a chain that one has drawn is read back by the next. Each row counts what its method would
spend alone: the tokens of every chain it uses. Its time is what its own stages took in this run, added to the time of
the rows before it, on whose chains it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from magicore.evaluate import accuracy, cost_of
from magicore.methods import AnyMethod
from magicore.report.tables import MethodRow
from magicore.runtime.observer import RunObserver
from magicore.runtime.run import run_method
from magicore.runtime.runtime import Engine
from magicore.types import Problem, Result


async def compare_methods(
    methods: Sequence[AnyMethod], problems: Sequence[Problem], engine: Engine, *, observer: RunObserver | None = None
) -> tuple[tuple[MethodRow, ...], dict[str, tuple[Result, ...]]]:
    """Run each method in turn over all problems; returns the rows and every result, by method name.

    Give them in order of what they draw: a later method's time holds an earlier one's.
    """
    rows: list[MethodRow] = []
    results: dict[str, tuple[Result, ...]] = {}
    elapsed = 0.0
    for method in methods:
        outcome = await run_method(method, problems, engine, observer=observer)
        elapsed += outcome.wall_s
        results[method.name] = outcome.results
        rows.append(method_row(method.name, outcome.results, elapsed))
    return tuple(rows), results


def method_row(name: str, results: Sequence[Result], wall_s: float) -> MethodRow:
    """One method's accuracy and cost; tokens are those of generation, reward models and judges together."""
    cost = cost_of(results)
    return MethodRow(method=name, accuracy=accuracy(results), tokens=cost.tokens, calls=cost.calls, wall_s=wall_s)
