"""Self-Refine (Madaan et al., 2023), alone and over k chains with self-consistency; no reward models.

1. The solver draws k chains.
2. For each chain the reviewer, who sees no scores, says what is wrong, and the refiner writes it anew; all chains at
   once, ``iterations`` times.
3. The majority of the latest chains.

Every round is kept, so that accuracy by iteration can be read from one run. Departure from Self-Refine: the number of
iterations is fixed, and no feedback ends them early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, require_least
from magicore.methods.conclude import conclude
from magicore.methods.refinement import Refinement, chains_of, refine_each, review_then_refine, reviews_of
from magicore.methods.rounds import Draft, score_rounds, scored_as
from magicore.roles import solve as draw
from magicore.runtime.runtime import Runtime
from magicore.types import Result, ScoredChain


@dataclass(frozen=True, kw_only=True)
class SelfRefine:
    """One chain, refined.

    Attributes:
        k: Chains drawn and refined, each by itself.
        iterations: Rounds of feedback and refinement.
    """

    name: ClassVar[str] = "self-refine"
    needs: ClassVar[frozenset[Need]] = frozenset()

    k: int = 1
    iterations: int = 3

    def __post_init__(self) -> None:
        require_least({"k": 1, "iterations": 0}, self)

    @property
    def completions(self) -> tuple[int, int]:
        total = self.k + 2 * self.k * self.iterations
        return total, total

    async def solve(self, rt: Runtime) -> Result:
        """Steps 1 to 3. A chain that could not be refined stays as it was, with a warning."""
        latest = await draw(rt, self.k)
        drafts = [Draft(chains=tuple(latest), kept=tuple(latest))]
        for number in range(1, self.iterations + 1):

            async def one(parent: ScoredChain, index: int, number: int = number) -> Refinement:
                return await review_then_refine(rt, parent, None, round=number, index=index)

            done = await refine_each(rt, [ScoredChain(chain=chain) for chain in latest], one, round=number)
            latest = [refinement.chain or refinement.parent.chain for refinement in done]
            drafts.append(Draft(chains=tuple(chains_of(done)), kept=tuple(latest), reviews=reviews_of(done)))
        rounds = await score_rounds(rt, drafts)
        return conclude(rt, self.name, scored_as(rounds, latest), aggregation="self-consistency", rounds=rounds)


@dataclass(frozen=True, kw_only=True)
class SelfRefineSC(SelfRefine):
    """k chains, each refined, then self-consistency (the baseline of MAgICoRe's comparison)."""

    name: ClassVar[str] = "self-refine+sc"

    k: int = 40
