"""What a router decides by: gathered from the kept chains, the statistics and, where it asks, the model itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from difficulty import Evidence, RewardStats, Router, Verdict
from magicore.errors import InputError
from magicore.methods.conclude import is_correct, vote_on
from magicore.roles import state_confidence, verify
from magicore.runtime.runtime import Runtime
from magicore.types import ScoredChain


async def route(
    router: Router, chains: Sequence[ScoredChain], stats: RewardStats | None, rt: Runtime, *, round: int
) -> Verdict:
    """Easy or hard: class the chains' answers, gather what the router asks for, and let it decide.

    Raises:
        InputError: the oracle router has no gold answer to go by.
    """
    duplicates = rt.engine.duplicates
    vote, classes = vote_on(rt.problem, chains, "weighted-self-consistency", duplicates=duplicates)
    evidence = Evidence(
        classes=classes,
        o=[scored.o for scored in chains],
        s=[scored.s for scored in chains],
        stats=stats,
        draw=draw(rt),
    )
    if "coarse_correct" in router.needs:
        if rt.problem.answer is None:
            raise InputError(f"the oracle router needs a gold answer, and problem {rt.problem.id!r} has none")
        chosen = None if vote.chosen is None else chains[vote.chosen].chain.answer
        evidence = replace(evidence, coarse_correct=is_correct(rt.problem, chosen))
    if router.needs & {"self_verified", "stated_confidence"}:
        evidence = await _ask_model(router, evidence, chains, rt, round=round)
    return router(evidence)


async def _ask_model(
    router: Router, evidence: Evidence, chains: Sequence[ScoredChain], rt: Runtime, *, round: int
) -> Evidence:
    """The evidence with what the model says of its own majority answer."""
    majority, _ = vote_on(rt.problem, chains, "self-consistency", duplicates=rt.engine.duplicates)
    if majority.chosen is None:
        return evidence
    chain = chains[majority.chosen].chain
    if "self_verified" in router.needs:
        verified = await verify(rt, chain, round=round)
        if verified is None:
            rt.warn("a self-verification reply could not be read; it counts as not verified")
        return replace(evidence, self_verified=bool(verified))
    confidence = await state_confidence(rt, chain, round=round)
    if confidence is None:
        rt.warn("a stated confidence could not be read; it counts as 0")
    return replace(evidence, stated_confidence=confidence or 0.0)


def draw(rt: Runtime) -> float:
    """The problem's draw for the random router, fixed by the run's seed and its id: the same in every round."""
    return uniform(rt.engine.seed, "router", rt.problem.id)


def uniform(seed: int, *names: str) -> float:
    """A number in [0, 1) fixed by the seed and the names."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:7]) / 2**56
