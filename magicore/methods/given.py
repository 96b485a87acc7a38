"""MAgICoRe from chains that already exist: for refining solutions that came from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from difficulty import RewardStats
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
    """

    name: ClassVar[str] = "refine"
    needs: ClassVar[frozenset[Need]] = frozenset({"orm", "prm"})

    method: Magicore
    chains: Mapping[str, tuple[Chain, ...]]

    @property
    def completions(self) -> tuple[int, int]:
        least, most = self.method.completions
        return 0, most - least

    async def prepare(self, rt: Runtime) -> Prepared:
        """Score the given chains."""
        return Prepared(chains=await rt.score(self.chains[rt.problem.id]))

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Route and refine."""
        return await self.method.finish(prepared, stats, rt)
