"""Review and refine many chains at once: what MAgICoRe and Self-Refine share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from magicore.errors import LanguageModelError
from magicore.roles import StepScoreList, refine, review
from magicore.runtime.runtime import Runtime, collect
from magicore.types import Chain, Review, ScoredChain


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """What became of one chain in one round: its reviews, and the new chain; neither if it was accepted as it is."""

    parent: ScoredChain
    reviews: tuple[Review, ...] = ()
    chain: Chain | None = None
    accepted: bool = False


RefineOne = Callable[[ScoredChain, int], Awaitable[Refinement]]
"""Reviews and refines one chain, whose place in the round is given."""


async def refine_each(rt: Runtime, parents: Sequence[ScoredChain], one: RefineOne, *, round: int) -> list[Refinement]:
    """Review and refine every chain, all at once, in order. A chain whose calls fail has no refinement, and that is
    warned about."""
    done = await collect([one(scored, index) for index, scored in enumerate(parents)])
    failures = [item for item in done if isinstance(item, LanguageModelError)]
    if failures:
        rt.warn(f"round {round}: {len(failures)} of {len(parents)} chains have no refinement: {failures[0]}")
    return [
        Refinement(parent=parent) if isinstance(item, LanguageModelError) else item
        for parent, item in zip(parents, done, strict=True)
    ]


async def review_then_refine(
    rt: Runtime, scored: ScoredChain, scores: StepScoreList, *, round: int, index: int
) -> Refinement:
    """A reviewer's feedback on a chain, and the refiner's new chain.

    Raises:
        LanguageModelError: either could not be had.
    """
    feedback = await review(rt, scored, scores, round=round)
    chain = await refine(rt, scored, scores, feedback.text, round=round, index=index)
    return Refinement(parent=scored, reviews=(feedback,), chain=chain)


def reviews_of(refinements: Sequence[Refinement]) -> tuple[Review, ...]:
    """Every review, in the order of the chains."""
    return tuple(review for refinement in refinements for review in refinement.reviews)


def chains_of(refinements: Sequence[Refinement]) -> list[Chain]:
    """Every new chain, in the order of its parents."""
    return [refinement.chain for refinement in refinements if refinement.chain is not None]
