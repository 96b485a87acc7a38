"""What k' of a run's first chains cost, whatever the run went on to do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def aggregation_spent(run: FinishedRun, k: float, method: str, weights: str | None) -> Spent:
    """What an aggregation of ``k`` first chains a problem costs on average over which ones.

    Prompts are paid once a problem; completions and scores by the share of the chains. Wall time is the run's own,
    shared out by generation tokens: an estimate, and named so. Judges' tokens, which are booked on no chain, are shared
    out by the scores that they gave.
    """
    if method == "cot":
        k = 1
    uses = _USES.get((method, weights), ("orm", "prm"))
    chains = [(result, run.initial(result.id)) for result in run.results]
    drawn = sum(len(first) for _, first in chains)
    if not drawn:
        return Spent()
    share = min(1.0, k * len(chains) / drawn)
    solving = [one for result in run.results for one in result.usage if one.role in FIRST_ROLES]
    generation = _tokens(solving, share)
    reward = sum(_reward_tokens([scored for _, first in chains for scored in first], kind) for kind in uses) * share
    calls = sum(one.usage.calls for one in solving)
    every = sum(
        one.usage.total for result in run.results for one in result.usage if one.role not in ("orm", "prm", "judge")
    )
    wall = None
    if run.wall_s is not None and generation is not None and every:
        wall = run.wall_s * generation / every
    return Spent(
        generation_tokens=generation,
        reward_tokens=reward,
        judge_tokens=_judge_tokens(run, drawn) * share if uses else 0.0,
        calls=calls * share if calls > len(chains) else float(calls),
        wall_s=wall,
        money=_money(solving, share, read_prices(run.config.prices)) if run.config.prices and not uses else None,
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
