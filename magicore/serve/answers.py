"""From a method's result to an answer on the wire: which chain, why it ended, what was spent on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from magicore.store.accounting import REWARD_ROLES
from magicore.store.result_rows import result_row
from magicore.types import Chain, Result, RoleUsage, ScoredChain, StopReason, Usage

FINISH: Final[Mapping[StopReason, str]] = {
    "stop": "stop",
    "length": "length",
    "filter": "content_filter",
    "error": "length",  # it broke off: OpenAI has no word for that, and "stop" would say it is whole
}


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a client is shown of a result.

    Attributes:
        text: The answer's text, verbatim.
        finish: OpenAI's ``finish_reason``. ``length`` where the chain was cut or broke off, and where a limit ended the
            method before its time.
        thinking: What the model thought before it.
        chain: The id of the chain that this is, if it is one.
        note: Why it is another chain than the best of the winning class.
    """

    text: str
    finish: str
    thinking: str | None = None
    chain: str | None = None
    note: str | None = None


def content_of(result: Result) -> Content:
    """The best chain of the winning class; where no chain states an answer, the best chain there is.

    Raises:
        ValueError: The result has no chain at all.
    """
    chains = {scored.chain.id: scored for round in result.rounds for scored in round.chains}
    if result.chain is not None:
        return _shown(result, chains[result.chain].chain)
    if result.answer is not None:  # recommended by reviewers, and written out by no chain
        note = "no chain has the winning answer, which reviewers recommend: the content is the answer alone"
        return Content(text=result.answer_text or result.answer, finish=_finish(result, "stop"), note=note)
    if not chains:
        raise ValueError("the result has no chain")
    kept = [chains[name] for name in result.rounds[-1].kept if name in chains] or list(chains.values())
    note = "no chain states an answer that can be read: the content is the chain with the best scores"
    return _shown(result, max(kept, key=_rank).chain, note)


def _shown(result: Result, chain: Chain, note: str | None = None) -> Content:
    finish = _finish(result, chain.stop)
    return Content(text=chain.text, finish=finish, thinking=chain.thinking, chain=chain.id, note=note)


def _finish(result: Result, stop: StopReason) -> str:
    finish = FINISH[stop]
    return "length" if result.stop == "budget" and finish == "stop" else finish


def _rank(scored: ScoredChain) -> tuple[bool, float, float]:
    """A chain that was not cut comes first, then the larger S, then the larger o (or s, where there is no o)."""
    missing = -math.inf
    alone = scored.o if scored.o is not None else scored.s
    return (
        scored.chain.stop == "stop",
        missing if scored.combined is None else scored.combined,
        missing if alone is None else alone,
    )


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a request cost.

    Attributes:
        roles: What each role read and wrote on each model, as the store has it.
        unreadable: What replies say they cost that could not be read.
        reused: The part of ``roles`` that was in the store or the cache already, and cost nothing now.
        lost: Replies that may have been charged for and never came.
    """

    roles: tuple[RoleUsage, ...] = ()
    unreadable: Usage = field(default_factory=Usage)
    reused: Usage = field(default_factory=Usage)
    lost: int = 0

    @property
    def models(self) -> Usage:
        """Everything that language models read and wrote."""
        mine = (one.usage for one in self.roles if one.role not in REWARD_ROLES)
        return sum(mine, self.unreadable)

    @property
    def reward_tokens(self) -> int:
        """Tokens that reward models read."""
        return sum(one.usage.prompt for one in self.roles if one.role in REWARD_ROLES)


def spent_on(results: Iterable[Result], *, paid: Usage, unreadable: Usage, lost: int) -> Spent:
    """What results cost together; ``paid`` is what replies that came meanwhile cost."""
    roles: dict[tuple[str, str], Usage] = {}
    for result in results:
        for one in result.usage:
            key = (one.role, one.model)
            roles[key] = roles.get(key, Usage()) + one.usage
    listed = tuple(RoleUsage(role=role, model=model, usage=usage) for (role, model), usage in roles.items())
    whole = Spent(roles=listed).models
    reused = Usage(
        prompt=max(0, whole.prompt - paid.prompt),
        completion=max(0, whole.completion - paid.completion),
        reasoning=max(0, whole.reasoning - paid.reasoning),
        calls=max(0, whole.calls - paid.calls),
        cached=max(0, whole.cached - paid.cached),
    )
    return Spent(roles=listed, unreadable=unreadable, reused=reused, lost=lost)


def usage_body(usage: Usage) -> dict[str, Any]:
    """OpenAI's ``usage``."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def cost_body(spent: Spent, *, method: str, seed: int) -> dict[str, Any]:
    """The answer's own ``magicore``: the method, the seed that gives the same again, and what was spent."""
    total = spent.models
    return {
        "method": method,
        "seed": seed,
        "calls": total.calls,
        "unmetered_calls": total.unmetered,
        "lost_replies": spent.lost,
        "reward_tokens": spent.reward_tokens,
        "judge_tokens": sum(one.usage.total for one in spent.roles if one.role == "judge"),
        "reused": {name: value for name, value in asdict(spent.reused).items() if name != "unmetered"},
        "usage": [{"role": one.role, "model": one.model, **asdict(one.usage)} for one in spent.roles],
    }


_OF_A_FILE = frozenset({"id", "gold", "correct", "usage", "error", "method"})


def choice_body(result: Result, content: Content, *, seed: int, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """A choice's ``magicore``: what results.jsonl holds of it, its chain, its seed, and everything to be warned of."""
    row = {name: value for name, value in result_row(result).items() if name not in _OF_A_FILE}
    told = [*warnings, *result.warnings, *([] if content.note is None else [content.note])]
    return {**row, "chain": content.chain, "seed": seed, "warnings": told}
