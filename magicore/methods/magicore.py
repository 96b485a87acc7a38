"""MAgICoRe (Chen et al., EMNLP 2025): aggregate easy questions, refine hard ones under reward models.

1. The solver draws k chains; the outcome model scores each, the process model each of its steps.
2. The router says easy (answer by weighted self-consistency, done) or hard.
3. Hard, for up to ``iterations`` rounds: for every kept chain the reviewer reads the steps with their scores and gives
   feedback, the refiner writes a new chain, the new chains are scored; of the old and the new the k with the largest o
   are kept; the router looks again at the kept chains, and the rounds end when it says easy.
4. The answer is the weighted self-consistency of the kept chains.

With ``review="mars"`` step 3 judges before it refines: independent reviewers and a meta-reviewer decide about each kept
chain; one that is right stays as it is and is not reviewed again, one that is wrong goes to the refiner with the
meta-review's suggestions. When all are right the rounds end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from difficulty import RewardStats, Router, router
from magicore.errors import CapabilityError, InputError
from magicore.methods.base import Need, Prepared, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.methods.mars import is_judged, rejected, review_all
from magicore.methods.refinement import Refinement, chains_of, refine_each, review_then_refine, reviews_of
from magicore.methods.routing import route, uniform
from magicore.roles import (
    Confidence,
    StepScoreList,
    check_personas,
    refine,
    review_and_refine,
)
from magicore.runtime.runtime import Runtime
from magicore.types import Result, ResultStop, Round, ScoredChain

StepLabels = Mapping[str, tuple[float | None, ...]]
StepScoreSource = Literal["prm", "random", "orm", "none", "oracle"]
ReviewMode = Literal["separate", "joint", "none", "mars"]
Selection = Literal["topk", "all"]


@dataclass(frozen=True, kw_only=True)
class Magicore:
    """The method's configuration; defaults are the paper's.

    Attributes:
        k: Chains drawn, and the most that are kept in each round.
        iterations: Rounds at the most.
        router: Who decides easy or hard; see :func:`difficulty.router`.
        review: ``separate`` reviewer and refiner, ``joint`` (one call does both), ``none`` (the refiner sees the scores
            only), or ``mars`` (reviewers and a meta-reviewer judge each chain first).
        step_scores: Which scores reviewer and refiner see: the process model's, ``random`` ones, the outcome score on
            every step (``orm``), ``none`` (the language model finds the errors itself), or ``oracle``, the labels of
            given solutions, in round 1 only.
        select: ``topk`` keeps the k best of old and new; ``all`` keeps every chain for routing and voting and reviews
            the newest only, so that cost stays linear.
        select_by: ``o`` (the paper: selection by o because the feedback came from the process model) or ``S``.
        reviewers, personas, confidence: As in :class:`~magicore.methods.mars.Mars`, for ``review="mars"``.
        scores: Whether MARS's reviewers and meta-reviewer see the step scores: ``shown`` or ``hidden``.
    """

    name: ClassVar[str] = "magicore"
    needs: ClassVar[frozenset[Need]] = frozenset({"orm", "prm"})

    k: int = 40
    iterations: int = 3
    router: Router = field(default_factory=lambda: router("magicore"))
    review: ReviewMode = "separate"
    step_scores: StepScoreSource = "prm"
    select: Selection = "topk"
    select_by: Literal["o", "S"] = "o"
    reviewers: int = 2
    personas: tuple[str, ...] = ()
    confidence: Confidence = "verbal"
    scores: Literal["shown", "hidden"] = "shown"

    def __post_init__(self) -> None:
        require_least({"k": 1, "iterations": 0, "reviewers": 1}, self)
        if self.step_scores == "oracle" and self.iterations > 1:
            raise InputError("oracle step scores label the given solutions, so they serve one round: set iterations=1")

    @property
    def completions(self) -> tuple[int, int]:
        a_chain = {"separate": 2, "mars": self.reviewers + 2}.get(self.review, 1)
        a_round = self.k * a_chain
        return self.k, self.k + self.iterations * a_round

    async def prepare(self, rt: Runtime) -> Prepared:
        """Step 1.

        Raises:
            CapabilityError: oracle step scores, which drawn chains do not have.
        """
        if self.step_scores == "oracle":
            raise CapabilityError("oracle step scores need labelled solutions: refine solutions that have step_labels")
        return Prepared(chains=await draw_and_score(rt, self.k))

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Steps 2 to 4."""
        kept = prepared.chains
        newest = kept
        verdict = await route(self.router, kept, stats, rt, round=0)
        rounds = [Round(number=0, chains=kept, kept=_ids(kept), verdict=verdict)]
        accepted: frozenset[str] = frozenset()
        stop: ResultStop = "done" if verdict.easy or self.iterations == 0 else "iterations"
        for number in range(1, self.iterations + 1):
            if verdict.easy:
                stop = "done"
                break
            candidates = newest if self.select == "all" else kept
            parents = [scored for scored in candidates if scored.chain.id not in accepted]
            if not parents:
                stop = "accepted" if accepted else "iterations"
                break
            done = await self._refine(parents, rt, labels=prepared.step_labels, round=number)
            accepted |= {one.parent.chain.id for one in done if one.accepted}
            newest = await rt.score(chains_of(done))
            kept = self.selected(kept, newest, k=len(prepared.chains))
            if newest:
                verdict = await route(self.router, kept, stats, rt, round=number)
            rounds.append(
                Round(number=number, chains=newest, kept=_ids(kept), reviews=reviews_of(done), verdict=verdict)
            )
            if all(one.accepted for one in done):
                stop = "accepted"
                break
        return conclude(
            rt,
            self.name,
            kept,
            aggregation="weighted-self-consistency",
            verdict=rounds[0].verdict,
            rounds=tuple(rounds),
            stop="done" if verdict.easy else stop,
        )

    def selected(self, kept: Sequence[ScoredChain], new: Sequence[ScoredChain], *, k: int) -> tuple[ScoredChain, ...]:
        """The chains carried on: of old and new the ``k`` best by ``select_by``, in their order of appearance.

        ``k`` is the number of initial chains (fewer than asked for where samples failed). A missing score comes last;
        ties go by chain order, old before new.
        """
        pool = (*kept, *new)
        if self.select == "all":
            return pool

        def rank(position: int) -> tuple[bool, float, int]:
            value = pool[position].o if self.select_by == "o" else pool[position].combined
            return value is None, -(value or 0.0), position

        best = sorted(range(len(pool)), key=rank)[:k]
        return tuple(pool[position] for position in sorted(best))

    async def _refine(
        self, parents: Sequence[ScoredChain], rt: Runtime, *, labels: StepLabels, round: int
    ) -> list[Refinement]:
        """Review and refine every chain, all at once."""

        async def one(scored: ScoredChain, index: int) -> Refinement:
            scores = shown_scores(scored, self.step_scores, rt, labels)
            return await self._refine_one(scored, scores, rt, round=round, index=index)

        return await refine_each(rt, parents, one, round=round)

    async def _refine_one(
        self, scored: ScoredChain, scores: StepScoreList, rt: Runtime, *, round: int, index: int
    ) -> Refinement:
        match self.review:
            case "separate":
                return await review_then_refine(rt, scored, scores, round=round, index=index)
            case "joint":
                review, chain = await review_and_refine(rt, scored, scores, round=round, index=index)
                return Refinement(parent=scored, reviews=(review,), chain=chain)
            case "none":
                chain = await refine(rt, scored, scores, None, round=round, index=index)
                return Refinement(parent=scored, chain=chain)
            case "mars":
                return await self._judge_then_refine(scored, scores, rt, round=round, index=index)

    async def _judge_then_refine(
        self, scored: ScoredChain, scores: StepScoreList, rt: Runtime, *, round: int, index: int
    ) -> Refinement:
        reviews = await review_all(
            rt,
            scored.chain,
            check_personas(rt, self.personas, self.reviewers, "reviewers"),
            round=round,
            scores=None if self.scores == "hidden" else scores,
            confidence=self.confidence,
        )
        if not rejected(reviews):
            return Refinement(parent=scored, reviews=tuple(reviews), accepted=is_judged(reviews))
        meta = reviews[-1]
        chain = await refine(rt, scored, scores, meta.suggestions or meta.text, round=round, index=index)
        return Refinement(parent=scored, reviews=tuple(reviews), chain=chain)


def shown_scores(scored: ScoredChain, source: StepScoreSource, rt: Runtime, labels: StepLabels) -> StepScoreList:
    """The step scores that reviewer and refiner see, one a step, or ``None`` for none at all."""
    steps = scored.chain.steps
    match source:
        case "none":
            return None
        case "orm":
            return [scored.o] * len(steps)
        case "random":
            return [uniform(rt.engine.seed, "step-score", scored.chain.id, str(i)) for i in range(len(steps))]
        case "oracle":
            return labels.get(scored.chain.id) or [None] * len(steps)
        case "prm":
            return [None] * len(steps) if scored.prm is None else [score.value for score in scored.prm.scores]


def _ids(chains: Sequence[ScoredChain]) -> tuple[str, ...]:
    return tuple(scored.chain.id for scored in chains)
