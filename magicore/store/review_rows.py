"""Reviews as objects of reviews.jsonl, both ways: what reviewers and meta-reviewers wrote, and what was read of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

from magicore.store.rows import Row
from magicore.types import Result, Review, StopReason

REVIEW_KEYS: Final = (
    "problem",
    "round",
    "chain",
    "role",
    "instance",
    "decision",
    "confidence",
    "justification",
    "suggestions",
    "answer",
    "text",
    "stop",
)
_STOPS: Final[tuple[StopReason, ...]] = get_args(StopReason)
_DECISIONS: Final[tuple[Literal["right", "wrong"], ...]] = ("right", "wrong")


def review_rows(result: Result) -> Iterator[dict[str, Any]]:
    """Every review of a result, in the order of its rounds, keys in the order of the format. ``chain`` was reviewed."""
    for one in result.rounds:
        for review in one.reviews:
            yield {
                "problem": result.id,
                "round": review.round,
                "chain": review.chain,
                "role": review.role,
                "instance": review.instance,
                "decision": review.decision,
                "confidence": review.confidence,
                "justification": review.justification,
                "suggestions": review.suggestions,
                "answer": review.answer,
                "text": review.text,
                "stop": review.stop,
            }


def read_review_row(values: Mapping[str, Any], where: str) -> Review:
    """An object of reviews.jsonl.

    Raises:
        InputError: A field is missing or of another type; says which.
    """
    row = Row(values, where)
    return Review(
        chain=row.text("chain"),
        role=row.text("role"),
        round=row.integer("round"),
        instance=row.integer("instance"),
        text=row.text("text"),
        decision=None if values.get("decision") is None else row.one_of("decision", _DECISIONS),
        confidence=row.optional_number("confidence"),
        justification=row.optional_text("justification"),
        suggestions=row.optional_text("suggestions"),
        answer=row.optional_text("answer"),
        stop=row.one_of("stop", _STOPS),
    )
