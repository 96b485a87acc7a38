"""Reading a written review: its decision, confidence, justification, suggestions and recommended answer.

Models write these fields in any order, with brackets, in bold, as headings, several on a line, and leave some out. What
is not there is ``None``; nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from magicore.answers.review_fields import Decision, read_confidence, read_decision

_LABELS = {
    "decision": r"decision|verdict|judge?ment",
    "confidence": r"confidence(?:\s+(?:level|score|rating))?",
    "justification": r"justifications?|reasons?|reasoning|rationale|explanation|analysis",
    "suggestions": r"suggestions?|recommendations?|suggested (?:changes|improvements)",
    "answer": r"(?:my |the |your )?(?:recommended |suggested |correct |correct final |final )?answer",
}
_LABEL = re.compile(
    r"(?:^[ \t>*_#\-\"'{]{0,8}(?:\d{1,2}[.)]\s*)?|(?<=[.;,|\])])[ \t]+)[*_#\"'`]{0,4}"
    + "(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _LABELS.items())
    + r")(?:[*_#\"'` \t]{0,6}(?::|=)|[*_#` \t]{0,6}$)",
    re.IGNORECASE | re.MULTILINE,
)
_DECORATION = " \t\r\n*_#`\"'"
_NONE = re.compile(r"(?:none|n/?a|null|not applicable|nothing|-+)[.!]?", re.IGNORECASE)
_FAR = 20_000
"""Characters of a review that are searched for fields."""


@dataclass(frozen=True, kw_only=True)
class ReviewFields:
    """What could be read of a review; ``None`` for what it does not state.

    Attributes:
        decision: Whether the reviewed answer is ``right`` or ``wrong``.
        confidence: On the scale that was asked for, 1 to 5 unless said otherwise.
        justification: Why.
        suggestions: How to mend the solution.
        answer: The answer that the reviewer recommends, as written.
    """

    decision: Decision | None = None
    confidence: float | None = None
    justification: str | None = None
    suggestions: str | None = None
    answer: str | None = None


def parse_review(text: str, *, scale: tuple[float, float] = (1, 5)) -> ReviewFields:
    """Read a review or meta-review. ``scale`` is the confidence scale that was asked for, bounds included.

    >>> parse_review("**Decision:** [wrong]  **Confidence:** 4/5\\nJustification: 3 x 4 is 12.\\nAnswer: 12").answer
    '12'
    """
    sections = _sections(text[:_FAR])
    answer = sections.get("answer")
    return ReviewFields(
        decision=read_decision(text),
        confidence=read_confidence(text, scale),
        justification=sections.get("justification"),
        suggestions=sections.get("suggestions"),
        answer=None if answer is None else _answer(answer),
    )


def _sections(text: str) -> dict[str, str]:
    """The text after each label, up to the next; of a label that is there twice, the last."""
    labels = list(_LABEL.finditer(text))
    ends = [*(label.start() for label in labels[1:]), len(text)]
    sections: dict[str, str] = {}
    for label, end in zip(labels, ends, strict=False):
        body = text[label.end() : end].strip(_DECORATION + ",{}")
        if label.lastgroup is not None and body and not _NONE.fullmatch(body):
            sections[label.lastgroup] = body
    return sections


def _answer(section: str) -> str | None:
    """The first line of the section, out of its brackets and decoration."""
    line = section.splitlines()[0].replace("**", "").strip(_DECORATION)
    if line.startswith("[") and line.endswith("]"):
        line = line[1:-1].strip(_DECORATION)
    return line or None
