"""The solver: draws chains for a question."""

from __future__ import annotations

from magicore.runtime.runtime import Runtime
from magicore.types import Chain


async def solve(rt: Runtime, k: int) -> list[Chain]:
    """Draw ``k`` chains, fewer if some samples fail.

    Raises:
        LanguageModelError: not one chain could be had.
    """
    return await rt.chains("solver", rt.messages("solver"), indices=range(k))
