"""What a run cost, and accuracy against cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Final

from magicore.types import Result, RoleUsage

REWARD_ROLES: Final = frozenset({"orm", "prm"})
JUDGE_ROLES: Final = frozenset({"judge"})


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Tokens (prompt and completion together) and calls.

    Attributes:
        generation_tokens: Of every role that writes or reviews solutions; ``None`` where no call said its tokens.
        reward_tokens: Of the outcome and process reward models (roles ``orm`` and ``prm``).
        judge_tokens: Of language models that judge (role ``judge``).
        calls: Calls of all roles.
        unmetered: Calls whose server gave no token counts; where there are any, the tokens are a lower bound.
    """

    generation_tokens: int | None
    reward_tokens: int | None
    judge_tokens: int | None
    calls: int
    unmetered: int

    @property
    def tokens(self) -> int | None:
        """All tokens; ``None`` where those of a group are unknown."""
        groups = (self.generation_tokens, self.reward_tokens, self.judge_tokens)
        known = [group for group in groups if group is not None]
        return sum(known) if len(known) == len(groups) else None


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a model costs, in money per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, kw_only=True)
class CostPoint:
    """One method at one setting: what it cost, on any axis, and how often it was right."""

    method: str
    cost: float
    accuracy: float


def cost_of(results: Iterable[Result]) -> Cost:
    """What the results cost together."""
    spent = [one for result in results for one in result.usage]
    reward = [one for one in spent if one.role in REWARD_ROLES]
    judge = [one for one in spent if one.role in JUDGE_ROLES]
    rest = [one for one in spent if one.role not in REWARD_ROLES | JUDGE_ROLES]
    return Cost(
        generation_tokens=_tokens(rest),
        reward_tokens=_tokens(reward),
        judge_tokens=_tokens(judge),
        calls=sum(one.usage.calls for one in spent),
        unmetered=sum(one.usage.unmetered for one in spent),
    )


def money_of(results: Iterable[Result], prices: Mapping[str, Price]) -> float | None:
    """What the results cost in money; ``None`` where a model used has no price or gave no token counts.

    Args:
        results: Their usage is per role and model.
        prices: Model name, as in the usage -> price.
    """
    amounts: list[float] = []
    for one in (one for result in results for one in result.usage):
        price = prices.get(one.model)
        if price is None or one.usage.unmetered:
            return None
        amounts.append(one.usage.prompt * price.prompt + one.usage.completion * price.completion)
    return fsum(amounts) / 1e6


def frontier(points: Iterable[CostPoint]) -> list[CostPoint]:
    """The points that no other one beats (as cheap and as accurate, and better in one), from cheap to dear."""
    best: list[CostPoint] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.accuracy)):
        if not best or point.accuracy > best[-1].accuracy or _level(point, best[-1]):
            best.append(point)
    return best


def accuracy_at(points: Sequence[CostPoint], cost: float) -> float | None:
    """One method's accuracy at a given cost, linear between its two neighbouring settings.

    ``None`` outside the costs that were measured: nothing is extrapolated.
    """
    ordered = sorted(points, key=lambda point: point.cost)
    for left, right in pairwise(ordered):
        if left.cost <= cost <= right.cost and left.cost < right.cost:
            share = (cost - left.cost) / (right.cost - left.cost)
            return left.accuracy + share * (right.accuracy - left.accuracy)
    return next((point.accuracy for point in ordered if point.cost == cost), None)


def chains_within(tokens: Sequence[int | None], budget: int) -> int | None:
    """How many chains, taken in order, cost no more than ``budget`` together; ``None`` where a cost is unknown."""
    total = 0
    for count, spent in enumerate(tokens):
        if spent is None:
            return None
        total += spent
        if total > budget:
            return count
    return len(tokens)


def _tokens(spent: Sequence[RoleUsage]) -> int | None:
    total = sum(one.usage.total for one in spent)
    return None if total == 0 and any(one.usage.unmetered for one in spent) else total


def _level(point: CostPoint, other: CostPoint) -> bool:
    return point.cost == other.cost and point.accuracy == other.accuracy
