r"""Walking LaTeX one token at a time: splitting at the outermost level, and finding what a bracket encloses."""

import re
from collections.abc import Callable
from typing import Final

MAX_ITEMS: Final = 50_000
"""Values in a list, a set or a matrix past which it is not read."""

TEXT_COMMAND: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_TOKEN: Final = re.compile(
    r"\\text\s*\{[^{}]*\}|\\begin\s*\{[a-zA-Z]+\*?\}|\\end\s*\{[a-zA-Z]+\*?\}|\\[a-zA-Z]+|\\.|[a-zA-Z]+|\d+|\s+|.",
    re.DOTALL,
)
OPENING: Final = frozenset(["(", "[", "{", r"\{", r"\langle", r"\lfloor", r"\lceil"])
_CLOSING: Final = frozenset([")", "]", "}", r"\}", r"\rangle", r"\rfloor", r"\rceil"])

Tokens = list[str]


def tokenize(text: str) -> Tokens:
    """Commands, words, numbers and single characters, losslessly."""
    return _TOKEN.findall(text)


def _is_opening(token: str) -> bool:
    return token in OPENING or token.startswith(r"\begin")


def _is_closing(token: str) -> bool:
    return token in _CLOSING or token.startswith(r"\end")


def split(tokens: Tokens, separator: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """The parts between the outermost separators, and what `separator` called each of these."""
    parts, found, depth, start = list[str](), list[str](), 0, 0
    for index, token in enumerate(tokens):
        depth += _is_opening(token) - (depth > 0 and _is_closing(token))
        name = separator(token) if depth == 0 else None
        if name is not None:
            parts.append("".join(tokens[start:index]))
            found.append(name)
            start = index + 1
    parts.append("".join(tokens[start:]))
    return parts, found


def closes_last(tokens: Tokens) -> bool:
    """Whether the bracket that opens `tokens` is closed by the last of them."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += _is_opening(token) - _is_closing(token)
        if depth == 0:
            return index == len(tokens) - 1
    return False


_SEPARATORS: Final = {",": "comma", ";": "comma", r"\lor": "or", r"\vee": "or", r"\land": "and", r"\wedge": "and"}


def separator(token: str) -> str | None:
    """What a token between values means: "comma", "and", "or"."""
    if token in {"and", "or"}:
        return token
    match = TEXT_COMMAND.fullmatch(token)
    if match and match[1].strip().strip(",").strip() in {"and", "or"}:
        return match[1].strip().strip(",").strip()
    return _SEPARATORS.get(token)
