r"""Boxes: `\boxed{...}` and its relatives, found by walking braces once, however deep they nest."""

import re
from dataclasses import dataclass
from typing import Final

_BOX: Final = re.compile(r"\\(?:begin\s?)?(?:boxed|fbox|framebox|boxedtext)(?![a-zA-Z])\s*")
_BRACE_OR_ESCAPE: Final = re.compile(r"\\.|[{}]", re.DOTALL)
_TOKEN: Final = re.compile(r"(-?\d+(?:\.\d+)?|[A-Z])(?!\w)")
_BOX_TOKENS: Final = re.compile(r"<\|begin_of_box\|>(.*?)<\|end_of_box\|>", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A box in a text.

    Attributes:
        start: Where the command begins.
        end: After the closing brace, or after the opening one of a box that is never closed.
        inner: Start and end of the innermost content, nested boxes and bare braces peeled off; None if never closed.
    """

    start: int
    end: int
    inner: tuple[int, int] | None


def boxes(text: str) -> list[Box]:
    """All outermost boxes of `text`, in order. A `boxed` without content is none."""
    commands = list(_BOX.finditer(text))
    tokens = [Box(start=match.start(), end=match.end(), inner=match.span(1)) for match in _BOX_TOKENS.finditer(text)]
    if not commands:
        return tokens
    closing = matching_braces(text)
    found: list[Box] = []
    past = 0
    for command in commands:
        box = _box_at(text, command, closing) if command.start() >= past else None
        if box is not None:
            found.append(box)
            past = box.end
    return sorted(found + tokens, key=lambda box: box.start)


def _box_at(text: str, command: re.Match[str], closing: dict[int, int]) -> Box | None:
    brace = command.end()
    if not text.startswith("{", brace):
        token = _TOKEN.match(text, brace)
        return Box(start=command.start(), end=token.end(), inner=token.span()) if token else None
    if brace not in closing:
        return Box(start=command.start(), end=brace + 1, inner=None)
    return Box(start=command.start(), end=closing[brace] + 1, inner=_peeled(text, brace + 1, closing[brace], closing))


def _peeled(text: str, start: int, end: int, closing: dict[int, int]) -> tuple[int, int]:
    """The content without spaces, nested boxes and braces that enclose all of it."""
    while True:
        start, end = _strip(text, start, end)
        command = _BOX.match(text, start, end)
        brace = command.end() if command else start
        if not text.startswith("{", brace) or closing.get(brace) != end - 1:
            return start, end
        start, end = brace + 1, end - 1


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def matching_braces(text: str) -> dict[int, int]:
    r"""The closing place of every `{` that is closed; `\{` and `\}` are not braces."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE_OR_ESCAPE.finditer(text):
        if match.group() == "{":
            opened.append(match.start())
        elif match.group() == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing
