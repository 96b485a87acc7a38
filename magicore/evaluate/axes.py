"""What a method spent, on every axis that accuracy is shown against, and the frontier on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from magicore.evaluate.compute import CostPoint, Price, cost_of, frontier, money_of
from magicore.types import Result

Axis = Literal["tokens", "generation_tokens", "reward_tokens", "judge_tokens", "calls", "wall_s", "money"]
AXES: Final[tuple[Axis, ...]] = get_args(Axis)
AXIS_LABELS: Final[Mapping[Axis, str]] = {
    "tokens": "tokens in all",
    "generation_tokens": "generation tokens",
    "reward_tokens": "reward-model tokens",
    "judge_tokens": "judge tokens",
    "calls": "calls",
    "wall_s": "wall time, s",
    "money": "money",
}


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What answering a batch of problems cost, in all; ``None`` where it is not known.

    Attributes:
        generation_tokens, reward_tokens, judge_tokens: As in :class:`~magicore.evaluate.compute.Cost`.
        calls: Calls of all roles.
        wall_s: Seconds.
        money: In the currency of the prices.
        wall_basis: How ``wall_s`` was come by: ``measured``; ``by tokens`` (a run's time shared out by the generation
            tokens); empty where there is none.
    """

    generation_tokens: float | None = None
    reward_tokens: float | None = None
    judge_tokens: float | None = None
    calls: float | None = None
    wall_s: float | None = None
    money: float | None = None
    wall_basis: str = ""

    @property
    def tokens(self) -> float | None:
        """All tokens; ``None`` where those of a group are unknown."""
        groups = [self.generation_tokens, self.reward_tokens, self.judge_tokens]
        known = [group for group in groups if group is not None]
        return sum(known) if len(known) == len(groups) else None

    def on(self, axis: Axis) -> float | None:
        """The cost on one axis."""
        value: float | None = getattr(self, axis)
        return value

    @property
    def row(self) -> dict[str, Any]:
        """The axes as columns of a table."""
        return {axis: self.on(axis) for axis in AXES} | {"wall_basis": self.wall_basis}


def spent_on(
    results: Iterable[Result], *, wall_s: float | None = None, prices: Mapping[str, Mapping[str, Any]] | None = None
) -> Spent:
    """What results cost by their own usage. ``prices`` are those of a run's configuration."""
    listed = list(results)
    cost = cost_of(listed)
    return Spent(
        generation_tokens=cost.generation_tokens,
        reward_tokens=cost.reward_tokens,
        judge_tokens=cost.judge_tokens,
        calls=cost.calls,
        wall_s=wall_s,
        money=money_of(listed, read_prices(prices)) if prices else None,
        wall_basis="" if wall_s is None else "measured",
    )


def read_prices(prices: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Price]:
    """The prices of a configuration, of which either part may be left out and is then 0."""
    return {
        model: Price(prompt=float(table.get("prompt", 0.0)), completion=float(table.get("completion", 0.0)))
        for model, table in (prices or {}).items()
    }


@dataclass(frozen=True, kw_only=True)
class AxisPoint:
    """One method at one setting: what it spent and how often it was right."""

    method: str
    spent: Spent
    accuracy: float


def points_on(points: Iterable[AxisPoint], axis: Axis) -> list[CostPoint]:
    """The points whose cost on the axis is known."""
    return [
        CostPoint(method=point.method, cost=cost, accuracy=point.accuracy)
        for point in points
        if (cost := point.spent.on(axis)) is not None
    ]


def frontier_rows(points: Sequence[AxisPoint], *, axes: Sequence[Axis] = AXES) -> list[dict[str, Any]]:
    """One row a point and an axis on which its cost is known, with whether it lies on that axis's frontier.

    An axis on which nothing was spent by anyone is left out.
    """
    rows: list[dict[str, Any]] = []
    for axis in axes:
        on_axis = points_on(points, axis)
        if not any(point.cost for point in on_axis):
            continue
        best = set(frontier(on_axis))
        rows += [
            {
                "axis": axis,
                "method": point.method,
                "cost": point.cost,
                "accuracy": point.accuracy,
                "on_frontier": point in best,
            }
            for point in on_axis
        ]
    return rows
