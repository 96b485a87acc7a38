"""MAgICoRe (Chen et al., EMNLP 2025): aggregate easy questions, refine hard ones under reward models.

1. The solver draws k chains; the outcome model scores each, the process model each of its steps.
2. The router says easy (answer by weighted self-consistency, done) or hard.
3. Hard, for up to ``iterations`` rounds: for every kept chain the reviewer reads the steps with their scores and gives
   feedback, the refiner writes a new chain, the new chains are scored; of the old and the new the k with the largest o
   are kept; the router looks again at the kept chains, and the rounds end when it says easy.
4. The answer is the weighted self-consistency of the kept chains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from difficulty import Evidence, RewardStats, Router, Verdict, router
from magicore.errors import InputError, LanguageModelError
from magicore.methods.base import Need, Prepared, draw_and_score
from magicore.methods.conclude import conclude, is_correct, vote_on
from magicore.roles import refine, review, review_and_refine, state_confidence, verify
from magicore.runtime.runtime import Runtime, collect
from magicore.types import Chain, Result, Review, Round, ScoredChain

StepScoreSource = Literal["prm", "random", "orm", "none"]
ReviewMode = Literal["separate", "joint", "none"]
Selection = Literal["topk", "all"]


@dataclass(frozen=True, kw_only=True)
class Magicore:
    """The method's configuration; defaults are the paper's.

    Attributes:
        k: Chains drawn, and the most that are kept in each round.
        iterations: Rounds at the most.
        router: Who decides easy or hard; see :func:`difficulty.router`.
        review: ``separate`` reviewer and refiner, ``joint`` (one call does both) or ``none`` (the refiner sees the
            scores only).
        step_scores: Which scores reviewer and refiner see: the process model's, ``random`` ones, the outcome score on
            every step (``orm``), or ``none``.
        select: ``topk`` keeps the k best of old and new; ``all`` keeps every chain for routing and voting and reviews
            the newest only, so that cost stays linear.
        select_by: ``o`` (the paper: selection by o because the feedback came from the process model) or ``S``.
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

    @property
    def completions(self) -> tuple[int, int]:
        a_round = self.k * (2 if self.review == "separate" else 1)
        return self.k, self.k + self.iterations * a_round

    async def prepare(self, rt: Runtime) -> Prepared:
        """Step 1."""
        return Prepared(chains=await draw_and_score(rt, self.k))

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Steps 2 to 4."""
        kept = prepared.chains
        newest = kept
        verdict = await self._route(kept, stats, rt, round=0)
        rounds = [Round(number=0, chains=kept, kept=_ids(kept), verdict=verdict)]
        for number in range(1, self.iterations + 1):
            if verdict.easy:
                break
            reviews, refined = await self._refine(newest if self.select == "all" else kept, rt, round=number)
            newest = await rt.score(refined)
            kept = self.selected(kept, newest, k=len(prepared.chains))
            verdict = await self._route(kept, stats, rt, round=number)
            rounds.append(Round(number=number, chains=newest, kept=_ids(kept), reviews=reviews, verdict=verdict))
        return conclude(
            rt,
            self.name,
            kept,
            aggregation="weighted-self-consistency",
            verdict=rounds[0].verdict,
            rounds=tuple(rounds),
            stop="done" if verdict.easy or self.iterations == 0 else "iterations",
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

    async def _route(
        self, chains: Sequence[ScoredChain], stats: RewardStats | None, rt: Runtime, *, round: int
    ) -> Verdict:
        vote, classes = vote_on(rt.problem, chains, "weighted-self-consistency")
        evidence = Evidence(
            classes=classes,
            o=[scored.o for scored in chains],
            s=[scored.s for scored in chains],
            stats=stats,
            draw=draw(rt),
        )
        if "coarse_correct" in self.router.needs:
            if rt.problem.answer is None:
                raise InputError(f"the oracle router needs a gold answer, and problem {rt.problem.id!r} has none")
            chosen = None if vote.chosen is None else chains[vote.chosen].chain.answer
            evidence = replace(evidence, coarse_correct=is_correct(rt.problem, chosen))
        if self.router.needs & {"self_verified", "stated_confidence"}:
            evidence = await self._ask_model(evidence, chains, rt, round=round)
        return self.router(evidence)

    async def _ask_model(
        self, evidence: Evidence, chains: Sequence[ScoredChain], rt: Runtime, *, round: int
    ) -> Evidence:
        majority, _ = vote_on(rt.problem, chains, "self-consistency")
        if majority.chosen is None:
            return evidence
        chain = chains[majority.chosen].chain
        if "self_verified" in self.router.needs:
            verified = await verify(rt, chain, round=round)
            if verified is None:
                rt.warn("a self-verification reply could not be read; it counts as not verified")
            return replace(evidence, self_verified=bool(verified))
        confidence = await state_confidence(rt, chain, round=round)
        if confidence is None:
            rt.warn("a stated confidence could not be read; it counts as 0")
        return replace(evidence, stated_confidence=confidence or 0.0)

    async def _refine(
        self, chains: Sequence[ScoredChain], rt: Runtime, *, round: int
    ) -> tuple[tuple[Review, ...], list[Chain]]:
        """Review and refine every chain, all at once; a chain whose calls fail has no refinement, and that is said."""
        done = await collect([self._refine_one(scored, rt, round=round, index=i) for i, scored in enumerate(chains)])
        pairs = [pair for pair in done if not isinstance(pair, LanguageModelError)]
        failed = [pair for pair in done if isinstance(pair, LanguageModelError)]
        if failed:
            rt.warn(f"round {round}: {len(failed)} of {len(chains)} chains have no refinement: {failed[0]}")
        return tuple(review for review, _ in pairs if review is not None), [chain for _, chain in pairs]

    async def _refine_one(
        self, scored: ScoredChain, rt: Runtime, *, round: int, index: int
    ) -> tuple[Review | None, Chain]:
        scores = shown_scores(scored, self.step_scores, rt)
        if self.review == "joint":
            return await review_and_refine(rt, scored, scores, round=round, index=index)
        if self.review == "none":
            return None, await refine(rt, scored, scores, None, round=round, index=index)
        feedback = await review(rt, scored, scores, round=round)
        return feedback, await refine(rt, scored, scores, feedback.text, round=round, index=index)


def shown_scores(scored: ScoredChain, source: StepScoreSource, rt: Runtime) -> list[float | None] | None:
    """The step scores that reviewer and refiner see, one a step, or ``None`` for none at all."""
    steps = scored.chain.steps
    if source == "none":
        return None
    if source == "orm":
        return [scored.o] * len(steps)
    if source == "random":
        return [uniform(rt.engine.seed, "step-score", scored.chain.id, str(i)) for i in range(len(steps))]
    return [None] * len(steps) if scored.prm is None else [score.value for score in scored.prm.scores]


def draw(rt: Runtime) -> float:
    """The problem's draw for the random router, fixed by the run's seed and its id: the same in every round."""
    return uniform(rt.engine.seed, "router", rt.problem.id)


def uniform(seed: int, *names: str) -> float:
    """A number in [0, 1) fixed by the seed and the names."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:7]) / 2**56


def _ids(chains: Sequence[ScoredChain]) -> tuple[str, ...]:
    return tuple(scored.chain.id for scored in chains)
