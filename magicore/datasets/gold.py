"""The gold answer, read from a bare answer or out of a worked solution."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_MARK = "####"
_BOXES_TRIED = 8


def gold_of(answer: str) -> str | None:
    """The answer after the last ``####`` (to the end of its line), else in the last ``\\boxed{}``, else the whole text.

    ``None``: there is a mark or a box, and nothing in it.
    """
    if _MARK in answer:
        rest = answer.rsplit(_MARK, 1)[1].strip()
        return rest.splitlines()[0].strip() if rest else None
    boxes = list(_BOX.finditer(answer))
    if not boxes:
        return answer.strip() or None
    for box in reversed(boxes[-_BOXES_TRIED:]):
        inside = _argument(answer, box.end())
        if inside is not None:
            return inside.strip() or None
    return answer.strip()


def _argument(text: str, start: int) -> str | None:
    """The TeX argument at ``start``: a balanced group without its braces, or one token; ``None`` if never closed."""
    if not text.startswith("{", start):
        token = re.compile(r"\\[A-Za-z]+|[^\s$]").match(text, start)
        return None if token is None else token[0]
    depth = 0
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1 : at]
        at += 1
    return None
