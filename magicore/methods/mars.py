"""MARS (Wang et al., arXiv 2509.20502): an author, independent reviewers, a meta-reviewer, and the author's rebuttal.

1. The author solves the question.
2. ``reviewers`` reviewers judge the author's latest answer, all at once and without seeing each other.
3. The meta-reviewer reads answer and reviews and decides. Right: the answer stands, done.
4. Wrong: the author, in its own conversation, reads the meta-review and keeps or mends its answer; back to 2, at most
   ``max_rounds`` times. After the last rejection the last rebuttal stands.

Departures from the published code: a decision that cannot be read is *unstated*, is shown to the meta-reviewer and
reported (there, a review without a decision counts as one that accepts); "Incorrect" is wrong (there, only the word
"wrong" rejects).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from magicore.errors import LanguageModelError
from magicore.methods.base import Need, require_least
from magicore.methods.conclude import conclude
from magicore.methods.rounds import Draft, left_out, score_rounds, scored_as
from magicore.roles import Confidence, StepScoreList, check_personas, judge, meta_review, open_agent, revise
from magicore.runtime.runtime import Runtime, collect
from magicore.types import Chain, Result, ResultStop, Review, ScoredChain


@dataclass(frozen=True, kw_only=True)
class Mars:
    """The method's configuration; defaults are the paper's.

    Attributes:
        reviewers: How many review independently.
        max_rounds: Rounds of review and rebuttal at the most.
        personas: Personas of the first reviewers, such as ``conservative`` and ``aggressive`` (MARS-P).
        confidence: What a review's confidence is: ``verbal``, as written, or ``logprob``, the mean probability of the
            tokens of its decision (needs log-probabilities of the reviewers' models).
        answer: ``author``: the author's last answer. ``vote``: the largest class among the author's first answer, its
            last rebuttal (or its answer again), and what each review and meta-review recommends; ties by first seen.
    """

    name: ClassVar[str] = "mars"
    needs: ClassVar[frozenset[Need]] = frozenset()

    reviewers: int = 2
    max_rounds: int = 1
    personas: tuple[str, ...] = ()
    confidence: Confidence = "verbal"
    answer: Literal["author", "vote"] = "author"

    def __post_init__(self) -> None:
        require_least({"reviewers": 1, "max_rounds": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return self.reviewers + 2, 1 + self.max_rounds * (self.reviewers + 2)

    async def solve(self, rt: Runtime) -> Result:
        """Steps 1 to 4."""
        personas = check_personas(rt, self.personas, self.reviewers, "reviewers")
        author = await open_agent(rt, role="author")
        drafts = [Draft(chains=(author.chain,), kept=(author.chain,))]
        stop: ResultStop = "iterations"
        for number in range(1, self.max_rounds + 1):
            reviews = await review_all(rt, author.chain, personas, round=number, confidence=self.confidence)
            drafts.append(Draft(chains=(), kept=(author.chain,), reviews=tuple(reviews)))
            if not rejected(reviews):
                stop = "accepted" if is_judged(reviews) else "done"
                break
            try:
                author = await revise(rt, author, rt.turn("rebuttal", review=reviews[-1].text.strip()), round=number)
            except LanguageModelError as error:
                rt.warn(f"round {number}: the author's rebuttal failed, so its answer stands: {error}")
                break
            drafts[-1] = replace(drafts[-1], chains=(author.chain,), kept=(author.chain,))
        return await self._concluded(rt, drafts, stop)

    async def _concluded(self, rt: Runtime, drafts: Sequence[Draft], stop: ResultStop) -> Result:
        rounds = await score_rounds(rt, drafts)
        first, last = scored_as(rounds, [drafts[0].kept[0], drafts[-1].kept[0]])
        if self.answer == "author":
            return conclude(rt, self.name, [last], aggregation="cot", rounds=rounds, stop=stop)
        advised = [as_voter(rt, review) for draft in drafts for review in draft.reviews]
        result = conclude(
            rt, self.name, [first, last, *advised], aggregation="self-consistency", rounds=rounds, stop=stop
        )
        own = result.chain in (first.chain.id, last.chain.id)
        return result if own else replace(result, chain=None)


async def review_all(
    rt: Runtime,
    chain: Chain,
    personas: Sequence[str | None],
    *,
    round: int,
    scores: StepScoreList = None,
    confidence: Confidence = "verbal",
) -> list[Review]:
    """One review a persona, all at once, and the meta-review of those that succeeded, last. What fails, or states no
    decision, is warned about; without a single review there is no meta-review."""
    done = await collect(
        [
            judge(rt, chain, instance=instance, round=round, scores=scores, persona=persona, confidence=confidence)
            for instance, persona in enumerate(personas)
        ]
    )
    reviews = left_out(rt, done, f"reviews of {chain.id}")
    unstated = sum(review.decision is None for review in reviews)
    if unstated:
        rt.warn(f"{unstated} of {len(reviews)} reviews of {chain.id} state no decision")
    if not reviews:
        return []
    try:
        meta = await meta_review(rt, chain, reviews, round=round, scores=scores, confidence=confidence)
    except LanguageModelError as error:
        rt.warn(f"the meta-review of {chain.id} failed, so the chain stands: {error}")
        return reviews
    if meta.decision is None:
        rt.warn(f"the meta-review of {chain.id} states no decision, which counts as acceptance")
    return [*reviews, meta]


def is_judged(reviews: Sequence[Review]) -> bool:
    """Whether there is a meta-review, which is the last of the reviews."""
    return bool(reviews) and reviews[-1].role == "meta-reviewer"


def rejected(reviews: Sequence[Review]) -> bool:
    """Whether the meta-review says wrong; one that states no decision accepts."""
    return is_judged(reviews) and reviews[-1].decision == "wrong"


def as_voter(rt: Runtime, review: Review) -> ScoredChain:
    """A review's recommended answer as a vote; without one it abstains."""
    voter = Chain(
        id=f"{rt.problem.id}/{review.role}/{review.instance}/{review.round}/0",
        problem=rt.problem.id,
        role=review.role,
        round=review.round,
        index=0,
        text=review.text,
        stop=review.stop,
        answer=review.answer,
        answer_text=review.answer,
        no_answer=None if review.answer is not None else "no answer recommended",
    )
    return ScoredChain(chain=voter)
