"""MAgICoRe as its published code runs it (dinobby/MAgICoRe, refine.py), for comparison only.

It differs from :mod:`magicore.methods.magicore`, which follows the paper, in these points, all of them faults:

* A chain without an answer has s = 0 and counts in the majority and in both entropies.
* The statistics are those of each problem's first chain (``calibration="first"``), the majority that of the initial
  chains, whatever is refined.
* A round routes, reviews and refines the newest chains only. A question that is easy after a refinement is thrown back
  to its initial chains, which the next round routes again.
* The answer is taken from the k best by S = o + s of the last round's old and new chains (of the routed ones alone, if
  it was easy): weighted self-consistency, ties by the order of those S, largest first.

Not reproduced: scoring every chain twice, step headings from 10 on that are not split, texts paired with the answers of
another round, and the crash of a vote without answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from difficulty import Evidence, PublishedRouter, RewardStats, Verdict
from difficulty.errors import DifficultyError
from difficulty.ties import ABSTAINS
from magicore.chains import answer_classes
from magicore.errors import RewardModelError
from magicore.methods.base import Need, Prepared, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.methods.magicore import shown_scores
from magicore.methods.refinement import Refinement, chains_of, refine_each, review_then_refine, reviews_of
from magicore.runtime.runtime import Runtime
from magicore.types import Problem, Result, Round, ScoredChain


@dataclass(frozen=True, kw_only=True)
class MagicorePublished:
    """The published code's method; see the module's docstring.

    Attributes:
        k: Chains drawn, and the most that vote.
        iterations: Rounds; all are gone through.
    """

    name: ClassVar[str] = "magicore-published"
    needs: ClassVar[frozenset[Need]] = frozenset({"orm", "prm"})

    k: int = 40
    iterations: int = 3

    def __post_init__(self) -> None:
        require_least({"k": 1, "iterations": 0}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return self.k, self.k + 2 * self.k * self.iterations

    async def prepare(self, rt: Runtime) -> Prepared:
        """Draw and score k chains."""
        return Prepared(chains=_zeroed(await draw_and_score(rt, self.k)))

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Go through the rounds, and vote over what the last one leaves."""
        initial = prepared.chains
        current, kept = initial, best_by_sum(initial, len(initial))
        rounds = [Round(number=0, chains=initial, kept=_ids(kept))]
        for number in range(1, self.iterations + 1):
            verdict = route(rt.problem, initial, current, stats)
            rounds[-1] = replace(rounds[-1], verdict=verdict)
            if verdict.easy:
                kept = best_by_sum(current, len(initial))
                rounds.append(Round(number=number, chains=(), kept=_ids(kept)))
                if current is initial:
                    rounds.pop()
                    break
                current = initial
                continue
            done = await self._refine(current, rt, round=number)
            newest = _zeroed(await rt.score(chains_of(done)))
            kept = best_by_sum([*current, *newest], len(initial))
            rounds.append(Round(number=number, chains=newest, kept=_ids(kept), reviews=reviews_of(done)))
            current = newest
        easy = rounds[0].verdict is not None and rounds[0].verdict.easy
        return conclude(
            rt,
            self.name,
            kept,
            aggregation="weighted-self-consistency",
            ties="first-seen",
            verdict=rounds[0].verdict,
            rounds=tuple(rounds),
            stop="done" if easy or self.iterations == 0 else "iterations",
        )

    async def _refine(self, chains: Sequence[ScoredChain], rt: Runtime, *, round: int) -> list[Refinement]:
        async def one(scored: ScoredChain, index: int) -> Refinement:
            return await review_then_refine(rt, scored, shown_scores(scored, "prm", rt, {}), round=round, index=index)

        return await refine_each(rt, chains, one, round=round)


def route(
    problem: Problem, initial: Sequence[ScoredChain], current: Sequence[ScoredChain], stats: RewardStats | None
) -> Verdict:
    """The published verdict on the current chains, by the majority of the initial ones.

    Raises:
        RewardModelError: a chain is unscored, which the published rule has no case for.
    """
    numbered = answer_classes(problem, [scored.chain for scored in (*initial, *current)])
    first = [ABSTAINS if c is None else c for c in numbered[: len(initial)]]
    try:
        return PublishedRouter()(
            Evidence(
                classes=numbered[len(initial) :],
                o=[scored.o for scored in current],
                s=[scored.s for scored in current],
                stats=stats,
                initial_majority=Counter(first).most_common(1)[0][0],
            )
        )
    except DifficultyError as error:
        raise RewardModelError(str(error)) from error


def best_by_sum(chains: Sequence[ScoredChain], k: int) -> tuple[ScoredChain, ...]:
    """The k chains with the largest S, largest first, ties in order; a chain without S last."""
    return tuple(sorted(chains, key=lambda scored: (scored.combined is None, -(scored.combined or 0.0)))[:k])


def _zeroed(chains: Sequence[ScoredChain]) -> tuple[ScoredChain, ...]:
    """A chain without an answer has s = 0."""
    return tuple(replace(scored, s=0.0) if scored.chain.answer is None else scored for scored in chains)


def _ids(chains: Sequence[ScoredChain]) -> tuple[str, ...]:
    return tuple(scored.chain.id for scored in chains)
