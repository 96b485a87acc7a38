"""From completions to chains, and from chains to scored chains: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from magicore.answers import classes, extract
from magicore.answers.extract import Asked
from magicore.types import CallKey, Chain, Completion, Problem, ScoredChain
from reward_models.aggregate import aggregate
from reward_models.steps import split_steps
from reward_models.types import OutcomeScore, StepScores

FAMILY_AGGREGATION = "family"
"""Asks for the aggregation that the process reward model's family recommends."""


def read_chain(problem: Problem, key: CallKey, completion: Completion, *, asked: Asked | None = None) -> Chain:
    """Read one completion: split it into steps and extract its answer. ``asked`` is the format the prompt asked for."""
    found = extract(completion.text, problem.kind, options=problem.options, stop=completion.stop, asked=asked)
    return Chain(
        id=key.chain_id(completion.index),
        problem=problem.id,
        role=key.role,
        round=key.round,
        index=completion.index,
        parent=key.parent,
        text=completion.text,
        thinking=completion.thinking,
        stop=completion.stop,
        steps=split_steps(completion.text),
        answer=found.value,
        answer_text=found.text,
        no_answer=None if found.value is not None else found.reason,
        tokens=completion.tokens,
        token_logprobs=completion.token_logprobs,
        top_logprobs=_values(completion),
    )


def _values(completion: Completion) -> tuple[tuple[float, ...], ...] | None:
    if completion.top_logprobs is None:
        return None
    return tuple(tuple(value for _, value in position) for position in completion.top_logprobs)


def scored_chain(
    chain: Chain, orm: OutcomeScore | None, prm: StepScores | None, *, aggregation: str = "product"
) -> ScoredChain:
    """Put a chain and its scores together.

    ``s`` is the aggregate of the scored steps; it is missing when no step has a score, and when steps are unscored
    because they lie past the reward model's context (methods.md, section 1).
    """
    how = prm.aggregation if prm is not None and aggregation == FAMILY_AGGREGATION else aggregation
    return ScoredChain(
        chain=chain,
        orm=orm,
        prm=prm,
        o=None if orm is None else orm.value,
        s=None if prm is None else solution_score(prm, how),
        aggregation=None if prm is None else how,
    )


def solution_score(prm: StepScores, how: str) -> float | None:
    """One number for a solution from its step scores, or ``None``; see :func:`scored_chain`."""
    if any(score.unscored is not None and score.unscored.code == "past_context" for score in prm.scores):
        return None
    return aggregate([score.value for score in prm.scores], how)


def answer_classes(problem: Problem, chains: Sequence[Chain]) -> list[int | None]:
    """The answer class of each chain, numbered in order of first appearance; ``None`` for a chain that abstains."""
    return list(classes([chain.answer for chain in chains], problem.kind, options=problem.options))
