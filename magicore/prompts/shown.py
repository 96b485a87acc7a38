"""How solutions are shown in prompts: with step scores or without."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reward_models.types import Step


def shown_solution(steps: Sequence[Step], scores: Sequence[float | None] | None) -> str:
    """A solution as reviewer and refiner see it: each step after its heading and its score as n/10.

    n = floor(10 p + 0.5). A step without a score says so; ``scores=None`` shows no scores.
    """
    texts = [step.text.strip() for step in steps]
    if scores is None:
        return "\n".join(texts)
    return "\n".join(_with_score(i, text, score) for i, (text, score) in enumerate(zip(texts, scores, strict=True), 1))


def _with_score(number: int, text: str, score: float | None) -> str:
    shown = "no score" if score is None else f"score {math.floor(10 * score + 0.5)}/10"
    heading, colon, rest = text.partition(":")
    is_heading = (
        bool(colon) and heading.lower().removeprefix("step").strip().isdigit() and heading[:4].lower() == "step"
    )
    if is_heading:
        return f"{heading} ({shown}):{rest}"
    return f"Step {number} ({shown}): {text}"
