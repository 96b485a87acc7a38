"""From a vote to a result: the step that ends every method."""

from __future__ import annotations

import math
from collections.abc import Sequence

from difficulty import Verdict
from magicore.answers import equivalent
from magicore.chains import answer_classes
from magicore.config import Duplicates
from magicore.runtime.runtime import Runtime
from magicore.types import Abstention, ClassVotes, Problem, Result, ResultStop, Round, ScoredChain
from magicore.voting import Ties, Vote, vote


def vote_on(
    problem: Problem,
    chains: Sequence[ScoredChain],
    aggregation: str,
    *,
    weights: str | None = None,
    ties: Ties = "score",
    duplicates: Duplicates = "count",
) -> tuple[Vote, list[int | None]]:
    """Class the chains' answers and vote by one aggregation of :mod:`magicore.voting`; returns the classes too.

    With ``duplicates="once"`` a chain that repeats an earlier one word for word abstains.
    """
    classes = answer_classes(problem, [scored.chain for scored in chains])
    if duplicates == "once":
        classes = [None if of is not None else c for c, of in zip(classes, repeated(chains), strict=True)]
    found = vote(
        classes,
        [scored.o for scored in chains],
        [scored.s for scored in chains],
        method=aggregation,
        weights=weights,
        logprob=[mean_logprob(scored) for scored in chains],
        ties=ties,
    )
    return found, classes


def repeated(chains: Sequence[ScoredChain]) -> list[str | None]:
    """For each chain the id of the earlier one that it repeats word for word, thinking included; mostly ``None``."""
    first: dict[tuple[str | None, str], str] = {}
    found: list[str | None] = []
    for scored in chains:
        text = (scored.chain.thinking, scored.chain.text)
        found.append(first.get(text))
        first.setdefault(text, scored.chain.id)
    return found


def mean_logprob(scored: ScoredChain) -> float | None:
    """Mean log-probability of the chain's tokens, where known."""
    values = scored.chain.token_logprobs
    return sum(values) / len(values) if values else None


def conclude(
    rt: Runtime,
    method: str,
    chains: Sequence[ScoredChain],
    *,
    aggregation: str,
    weights: str | None = None,
    ties: Ties = "score",
    verdict: Verdict | None = None,
    rounds: tuple[Round, ...] | None = None,
    stop: ResultStop = "done",
) -> Result:
    """Vote over ``chains`` and put the result together. Without a single answer, the result has none and says why."""
    problem = rt.problem
    duplicates = rt.engine.duplicates
    found, classes = vote_on(problem, chains, aggregation, weights=weights, ties=ties, duplicates=duplicates)
    for warning in found.warnings:
        rt.warn(warning)
    chosen = None if found.chosen is None else chains[found.chosen].chain
    answer = None if chosen is None else chosen.answer
    return Result(
        id=problem.id,
        kind=problem.kind,
        method=method,
        answer=answer,
        answer_text=None if chosen is None else chosen.answer_text,
        gold=problem.answer,
        correct=is_correct(problem, answer),
        chain=None if chosen is None else chosen.id,
        verdict=verdict,
        votes=class_votes(chains, classes, found),
        abstained=abstentions(chains, found),
        rounds=rounds if rounds is not None else first_round(chains),
        stop="budget" if rt.ledger.over_budget else stop,
        usage=rt.ledger.usage,
        warnings=rt.ledger.warnings,
    )


def abstentions(chains: Sequence[ScoredChain], found: Vote) -> tuple[Abstention, ...]:
    """The chains that took no part in the vote, with why."""
    copies = repeated(chains)
    reasons: list[Abstention] = []
    for i in found.abstained:
        chain = chains[i].chain
        why = chain.no_answer or (f"repeats {copies[i]}" if chain.answer is not None and copies[i] else "no answer")
        reasons.append(Abstention(chain=chain.id, reason=why))
    return tuple(reasons)


def is_correct(problem: Problem, answer: str | None) -> bool | None:
    """Whether ``answer`` equals the gold answer; ``None`` without gold, false for no answer."""
    if problem.answer is None:
        return None
    return answer is not None and equivalent(answer, problem.answer, problem.kind, options=problem.options)


def class_votes(chains: Sequence[ScoredChain], classes: Sequence[int | None], found: Vote) -> tuple[ClassVotes, ...]:
    """Votes per class, the winner first, then by weight; each class is named by its first chain's answer."""
    first = {c: chains[i].chain.answer or "" for i, c in reversed(list(enumerate(classes))) if c is not None}
    order = sorted(found.counts, key=lambda c: (c != found.winner, -found.weights.get(c, -math.inf), -found.counts[c]))
    return tuple(ClassVotes(answer=first[c], count=found.counts[c], weight=found.weights.get(c)) for c in order)


def first_round(chains: Sequence[ScoredChain]) -> tuple[Round, ...]:
    """The only round of a method that refines nothing."""
    return (Round(number=0, chains=tuple(chains), kept=tuple(scored.chain.id for scored in chains)),)
