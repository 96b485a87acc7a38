"""LaTeX and Markdown dressing: taking it off, and walking balanced braces. Nothing here evaluates anything."""

import re
from typing import Final

_VULGAR: Final = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅐": "1/7", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
VULGAR_FRACTIONS: Final = "".join(_VULGAR)
_VULGAR_TABLE: Final = str.maketrans({char: f" {text}" for char, text in _VULGAR.items()})
_SUPERSCRIPT_DIGITS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_FONTS: Final = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|up|sf|tt)?|mathrm|mathbf|mathit|mathsf|mathbb|mbox|hbox|operatorname|boldsymbol|bm"
    r"|boxed|fbox|emph|underline)\s*\{([^{}]*)\}"
)
_REPLACEMENTS: Final = (
    (re.compile(r"\\!|\\(?:left|right|displaystyle|textstyle|limits|phantom|bigl?|bigr?)(?![a-zA-Z])\.?"), ""),
    (re.compile(r"\{([.,])\}"), r"\1"),
    (re.compile(r"\\[,;: ]|~(?=\d)|\\(?:quad|qquad|thinspace|enspace)(?![a-zA-Z])"), " "),
    (re.compile(r"\\([$%&#_])"), r"\1"),
    (re.compile(r"\\[dtc]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degrees?(?![a-zA-Z])"), "°"),
    (re.compile(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)"), lambda match: f"10^{match[1].translate(_SUPERSCRIPT_DIGITS)}"),
)
_ENCLOSURES: Final = (
    ("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"), ("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"),
    ("'", "'"), ('"', '"'), ("(", ")"), ("[", "]"), ("{", "}"),
)  # fmt: skip
_TRAILING: Final = " \t\n.,;:?"
_MAX_ROUNDS: Final = 12


def without_commands(text: str) -> str:
    """`text` without spacing and font commands, with one spelling for fractions, degrees and escaped signs."""
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    for _ in range(_MAX_ROUNDS):
        bare = _FONTS.sub(r" \1 ", text)
        if bare == text:
            break
        text = bare
    return text.translate(_VULGAR_TABLE)


def without_wrappers(text: str) -> str:
    """A short text freed of math delimiters, emphasis, quotes, brackets, font commands and closing punctuation."""
    body = without_commands(text).strip()
    for _ in range(_MAX_ROUNDS):
        bare = _unwrapped(body.rstrip(_TRAILING).strip()) if not body.endswith("...") else body
        if bare == body:
            break
        body = bare
    return re.sub(r"\s+", " ", body).strip()


def _unwrapped(body: str) -> str:
    for opening, closing in _ENCLOSURES:
        inner = body[len(opening) : -len(closing)]
        if len(body) > len(opening) + len(closing) and body.startswith(opening) and body.endswith(closing):
            if opening in "([{" and not _closes_at_end(body):
                continue
            return inner.strip()
    return body


def _closes_at_end(body: str) -> bool:
    depth = 0
    for index, char in enumerate(body):
        depth += (char == body[0]) - (char == body[-1])
        if depth == 0:
            return index == len(body) - 1
    return False
