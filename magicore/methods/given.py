"""MAgICoRe from chains that already exist: for refining solutions that came from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from difficulty import RewardStats
from magicore.errors import InputError
from magicore.methods.base import Need, Prepared
from magicore.methods.magicore import Magicore
from magicore.runtime.runtime import Runtime
from magicore.types import Chain, Result


@dataclass(frozen=True, kw_only=True)
class RefineGiven:
    """Scores the given chains of each problem instead of drawing any, then goes on as ``method`` does.

    Attributes:
        method: The refinement; each problem keeps as many chains as it was given.
        chains: The chains of each problem, by its id.
        step_labels: For chains with labelled steps, by chain id, a label a step: 0 (wrong) to 1 (right), or ``None``.

    Raises:
        InputError: a chain's labels are not one a step, or oracle step scores are asked for and no chain has labels.
    """

    name: ClassVar[str] = "refine"
    needs: ClassVar[frozenset[Need]] = frozenset({"orm", "prm"})

    method: Magicore
    chains: Mapping[str, tuple[Chain, ...]]
    step_labels: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for chain in (chain for chains in self.chains.values() for chain in chains):
            labels = self.step_labels.get(chain.id)
            if labels is not None and len(labels) != len(chain.steps):
                raise InputError(f"solution {chain.id} has {len(labels)} step labels for {len(chain.steps)} steps")
            if labels is None and self.method.step_scores == "oracle":
                raise InputError(f"oracle step scores need step_labels, and solution {chain.id} has none")

    @property
    def completions(self) -> tuple[int, int]:
        least, most = self.method.completions
        return 0, most - least

    async def prepare(self, rt: Runtime) -> Prepared:
        """Score the given chains."""
        return Prepared(chains=await rt.score(self.chains[rt.problem.id]), step_labels=self.step_labels)

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Route and refine."""
        return await self.method.finish(prepared, stats, rt)
