"""What each problem of a run cost up to each round: for routers that would have stopped elsewhere than the run did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difficulty.ties import BoolArray, FloatArray, IntArray
from magicore.ablations.finished import FinishedRun
from magicore.ablations.initial_cost import FIRST_ROLES
from magicore.evaluate.axes import Spent
from magicore.types import Result, ScoredChain

_GROUPS = ("generation_tokens", "reward_tokens", "judge_tokens", "calls")


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundCosts:
    """Cumulative costs of P problems after each of R rounds.

    Attributes:
        spent: By axis, (R, P). Round 0 is exact, and so is a problem's last; rounds between are shared out by the
            chains that were refined up to them. NaN where a server gave no token counts.
    """

    spent: dict[str, FloatArray]

    def of(self, rounds: IntArray, counted: BoolArray) -> Spent:
        """The cost in all of problems that went through ``rounds`` (P,) rounds of refinement, those ``counted``."""
        at = np.arange(rounds.shape[0])
        values: dict[str, Any] = {}
        for name, costs in self.spent.items():
            total = costs[np.minimum(rounds, costs.shape[0] - 1), at][counted].sum()
            values[name] = None if np.isnan(total) else float(total)
        return Spent(**values)


def round_costs(run: FinishedRun) -> RoundCosts:
    """The costs of a run's problems by round, from what their results say they spent."""
    last = run.last_round
    spent = {name: np.zeros((last + 1, len(run.results))) for name in _GROUPS}
    for at, result in enumerate(run.results):
        chains = [record.scored for record in run.chains.get(result.id, ())]
        first = [scored for scored in chains if scored.chain.round == 0]
        begin, whole = _first(result, first, len(chains)), _all(result)
        refined = np.array(
            [sum(0 < scored.chain.round <= number for scored in chains) for number in range(last + 1)], dtype=np.float64
        )
        share = refined / refined[-1] if refined[-1] else np.zeros(last + 1)
        if not refined[-1]:
            begin = whole
        for name in _GROUPS:
            spent[name][:, at] = begin[name] + (whole[name] - begin[name]) * share
    return RoundCosts(spent=spent)


def _first(result: Result, first: Sequence[ScoredChain], every: int) -> dict[str, float]:
    """What the first chains cost: the solver's usage, their scores' tokens, judges by the share of chains."""
    solving = [one.usage for one in result.usage if one.role in FIRST_ROLES]
    judging = sum(one.usage.total for one in result.usage if one.role == "judge")
    scores = [score for scored in first for score in (scored.orm, scored.prm) if score is not None]
    metered = [score.tokens for score in scores if score.tokens is not None]
    return {
        "generation_tokens": float("nan") if any(u.unmetered for u in solving) else sum(u.total for u in solving),
        "reward_tokens": float(sum(metered)),
        "judge_tokens": judging * len(first) / every if every else 0.0,
        "calls": float(sum(u.calls for u in solving) + len(metered)),
    }


def _all(result: Result) -> dict[str, float]:
    rest = [one for one in result.usage if one.role not in ("orm", "prm", "judge")]
    unmetered = any(one.usage.unmetered for one in rest)
    return {
        "generation_tokens": float("nan") if unmetered else sum(one.usage.total for one in rest),
        "reward_tokens": float(sum(one.usage.total for one in result.usage if one.role in ("orm", "prm"))),
        "judge_tokens": float(sum(one.usage.total for one in result.usage if one.role == "judge")),
        "calls": float(sum(one.usage.calls for one in result.usage)),
    }
