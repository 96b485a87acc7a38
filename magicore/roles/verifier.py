"""Asking the model about its own majority answer: a yes or no, or a stated confidence. For the ablation routers."""

from __future__ import annotations

import re
from dataclasses import replace

from magicore.runtime.runtime import Runtime
from magicore.types import Chain

_NUMBER = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)\s*(%|/\s*100|/\s*10\b)?")
_MAX_TOKENS = 16


async def verify(rt: Runtime, chain: Chain, *, round: int) -> bool | None:
    """Whether the model says that the chain's answer is right; ``None`` if its reply cannot be read."""
    return read_yes_no(await _ask(rt, "verifier", chain, round))


async def state_confidence(rt: Runtime, chain: Chain, *, round: int) -> float | None:
    """The confidence in [0, 1] that the model states for the chain's answer; ``None`` if its reply cannot be read."""
    return read_confidence(await _ask(rt, "confidence", chain, round))


async def _ask(rt: Runtime, role: str, chain: Chain, round: int) -> str:
    messages = rt.messages(role, solution=chain.text.strip(), answer=chain.answer_text or chain.answer or "(none)")
    sampling = replace(rt.engine.sampling, temperature=0.0, max_tokens=_MAX_TOKENS)
    return (await rt.complete(role, messages, round=round, parent=chain.id, sampling=sampling))[0].text


def read_yes_no(text: str) -> bool | None:
    """The one of yes and no that the text says; ``None`` when it says neither or both."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    yes, no = bool(words & {"yes", "right", "correct"}), bool(words & {"no", "not", "wrong", "incorrect"})
    return None if yes == no else yes


def read_confidence(text: str) -> float | None:
    """The first number of the text, from 0 to 100 (or n/10), as a share; ``None`` if there is none in range."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    value = float(match.group(1)) / (10 if (match.group(2) or "").replace(" ", "") == "/10" else 100)
    return value if value <= 1 else None
