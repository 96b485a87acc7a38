"""What k' of a run's first chains cost, whatever the run went on to do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magicore.ablations.finished import FinishedRun
from magicore.evaluate.axes import Spent, read_prices
from magicore.evaluate.compute import Price
from magicore.types import RoleUsage, ScoredChain

FIRST_ROLES = ("solver", "author")
_USES: Mapping[tuple[str, str | None], tuple[str, ...]] = {
    ("cot", None): (),
    ("self-consistency", None): (),
    ("weighted-self-consistency", "logprob"): (),
    ("weighted-self-consistency", "o"): ("orm",),
    ("weighted-self-consistency", "s"): ("prm",),
    ("best-of-k", "o"): ("orm",),
    ("best-of-k", "s"): ("prm",),
    ("sc+prm", None): ("prm",),
}
"""The reward models that an aggregation reads; both where it is not here."""


@dataclass(frozen=True, kw_only=True)
class FirstCosts:
    """What all first chains of a run cost.

    Attributes:
        problems, chains: How many.
        solving: The solvers' usage.
        reward_tokens: By kind of reward model.
        judge_tokens: By the share of all chains.
        generated: Generation tokens of the whole run.
        wall_s: Of the whole run.
        prices: By model.
    """

    problems: int
    chains: int
    solving: tuple[RoleUsage, ...]
    reward_tokens: Mapping[str, float]
    judge_tokens: float
    generated: int
    wall_s: float | None
    prices: Mapping[str, Price]

    @classmethod
    def of(cls, run: FinishedRun) -> FirstCosts:
        """Add a run's costs up."""
        first = [scored for result in run.results for scored in run.initial(result.id)]
        spent = [one for result in run.results for one in result.usage]
        return cls(
            problems=len(run.results),
            chains=len(first),
            solving=tuple(one for one in spent if one.role in FIRST_ROLES),
            reward_tokens={kind: _reward_tokens(first, kind) for kind in ("orm", "prm")},
            judge_tokens=_judge_tokens(run, len(first)),
            generated=sum(one.usage.total for one in spent if one.role not in ("orm", "prm", "judge")),
            wall_s=run.wall_s,
            prices=read_prices(run.config.prices),
        )

    def of_aggregation(self, k: float, method: str, weights: str | None) -> Spent:
        """What an aggregation of ``k`` first chains a problem costs on average over which ones.

        Prompts are paid once a problem; completions and scores by the share of the chains. Wall time is the run's own,
        shared out by generation tokens: an estimate, and named so. Judges' tokens, which are booked on no chain, are
        shared out by the chains that they judged.
        """
        if not self.chains:
            return Spent()
        uses = _USES.get((method, weights), ("orm", "prm"))
        share = min(1.0, (1 if method == "cot" else k) * self.problems / self.chains)
        generation = _tokens(self.solving, share)
        calls = sum(one.usage.calls for one in self.solving)
        wall = None
        if self.wall_s is not None and generation is not None and self.generated:
            wall = self.wall_s * generation / self.generated
        return Spent(
            generation_tokens=generation,
            reward_tokens=sum(self.reward_tokens[kind] for kind in uses) * share,
            judge_tokens=self.judge_tokens * share if uses else 0.0,
            calls=calls * share if calls > self.problems else float(calls),
            wall_s=wall,
            money=_money(self.solving, share, self.prices) if self.prices and not uses else None,
            wall_basis="" if wall is None else "by tokens",
        )


def _tokens(spent: Sequence[RoleUsage], share: float) -> float | None:
    if not spent or any(one.usage.unmetered for one in spent):
        return None
    return sum(one.usage.prompt + one.usage.completion * share for one in spent)


def _reward_tokens(chains: Sequence[ScoredChain], kind: str) -> float:
    scores: list[Any] = [getattr(scored, kind) for scored in chains]
    return float(sum(score.tokens or 0 for score in scores if score is not None))


def _judge_tokens(run: FinishedRun, drawn: int) -> float:
    """The judges' tokens for the first chains: by their share of all chains."""
    spent = sum(one.usage.total for result in run.results for one in result.usage if one.role == "judge")
    every = sum(len(found) for found in run.chains.values())
    return spent * drawn / every if every else 0.0


def _money(spent: Sequence[RoleUsage], share: float, prices: Mapping[str, Price]) -> float | None:
    total = 0.0
    for one in spent:
        price = prices.get(one.model)
        if price is None:
            return None
        total += one.usage.prompt * price.prompt + one.usage.completion * share * price.completion
    return total / 1e6
