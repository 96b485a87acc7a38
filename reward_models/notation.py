"""Arithmetic as models write it, brought to one form and cut into tokens, in time linear in the text."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["num", "op", "rel", "open", "close", "mark", "frac", "sqrt", "dots", "word", "var", "stop"]


class Token(NamedTuple):
    """A token of a text in :func:`plain` form; ``spaced``: white space or an ignored mark stands before it."""

    kind: Kind
    text: str
    spaced: bool
    start: int
    end: int


_SYMBOLS = {
    **dict.fromkeys("\u00a0\u202f\u2009\u2007\u3000", " "),
    **dict.fromkeys("\r\v\f\x85\u2028\u2029", "\n"),
    **dict.fromkeys("\u2212\u2013\u2010\u2011\uff0d", "-"),
    **dict.fromkeys("×·∙⋅∗•\u2a2f\uff0a", "*"),
    **dict.fromkeys("÷\u2215\u2044\uff0f", "/"),
    **dict.fromkeys("≅≃≒\u223c", "≈"),
    "\uff1d": "=",
    "\uff0b": "+",
    "\uff05": "%",
    "²": "^2",
    "³": "^3",
    "½": "(1/2)",
    "⅓": "(1/3)",
    "⅔": "(2/3)",
    "¼": "(1/4)",
    "¾": "(3/4)",
    "⅕": "(1/5)",
    "⅖": "(2/5)",
    "⅗": "(3/5)",
    "⅘": "(4/5)",
    "⅙": "(1/6)",
    "⅛": "(1/8)",
    "⅜": "(3/8)",
    "⅝": "(5/8)",
    "⅞": "(7/8)",
}
_SYMBOL_TABLE = str.maketrans(_SYMBOLS)
_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\{,\}|(?<=\d)\\[,!](?=\d{3})"), ","),  # LaTeX thousands
    (re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf|mbox|operatorname)[ \t]*+\{([^{}]{0,80})\}"), r" \1 "),
    (re.compile(r"\\\\(?:\[[^\]\n]{0,8}\])?|\\(?:\[|\]|(?:begin|end)\{[^{}\n]{0,20}\}|newline\b)"), "\n"),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:approx|approxeq|simeq|cong|sim)(?![A-Za-z])|~="), "≈"),
    (re.compile(r"\\[dtc]?frac(?![A-Za-z])"), "\\\\frac"),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|boxed|displaystyle)(?![A-Za-z])|\\[,;:!() ]|[`&~]"), " "),
    (re.compile(r"\\([%$#])"), r"\1"),
    (re.compile(r"(?<=[\d)])( ?)\*\*\1(?=[\d(-])"), "^"),  # Python's power, but not bold type
    (re.compile(r"\*\*"), " "),
    (re.compile(r"(?<=[1-9])[xX](?=\d)|(?<=\d0)[xX](?=\d)"), "*"),  # 3x4, but not 0x4
    (re.compile(r"(?:\bRs\.?|\bUS(?=\$))[ \t]*+(?=[$\d])"), "$"),
    (re.compile(r"\bpercent\b"), "%"),
    (re.compile(r"\bdivided\s++by\b"), "/"),
    (re.compile(r"\bmultiplied\s++by\b"), "*"),
    (re.compile(r"\b(?:(?:which\s++|that\s++)?is\s++equal\s++to|equals?(?:\s++to)?)\b"), "="),
    (re.compile(r"\n[ \t$]*+(?=[=≈](?![=>]))"), " "),  # a line that begins with "=" goes on with the one before
    (re.compile(r"(?:\A|(?<=\n))[ \t]*+(?:[-+*]|#{1,6})[ \t]++"), "\n"),  # bullets are no signs
]
_TOKEN = re.compile(
    r"(?P<space>[ \t$€£¥₹₩°]++)"
    r"|(?P<num>(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?+(?:[eE][+-]?\d{1,2}(?!\w))?+|(?<![\d.])\.\d++)"
    r"|(?P<dots>\.{2,}+|\u2026)"
    r"|\\(?:(?P<frac>frac)|(?P<sqrt>sqrt)|(?P<relation>le|leq|ge|geq|lt|gt|ne|neq|to|implies|iff|therefore|q?quad|"
    r"(?:[Ll]ong)?[Rr]ightarrow))(?![A-Za-z])"
    r"|(?P<word>[^\W\d_]++(?:['\u2019-][^\W\d_]++)*+(?!\w))"
    r"|(?P<arrow>[-=]+>|[!<>:]=|<<|>>|[<>≤≥≠→⇒⟹⟶\u2014\n]|--+)"
    r"|(?P<rel>==?|≈)"
    r"|(?P<op>[-+*/^])"
    r"|(?P<mark>[%!])"
    r"|(?P<open>[(\[{])"
    r"|(?P<close>[)\]}])"
    r"|(?P<root>√)"
    r"|(?P<joint>(?<=\d)[,:](?=\d)|:(?=[ \t]*+[$\d])(?<=\d[ \t]:))"  # a time, a ratio, a decimal comma, a list
    r"|(?P<stop>[.,;:?|\"'#\u2018\u2019\u201c\u201d]|\s)"
    r"|(?P<var>\\[A-Za-z]++|[^\W\d]\w*+|.)",
    re.DOTALL,
)
_KINDS: dict[str, Kind] = {
    "num": "num",
    "dots": "dots",
    "frac": "frac",
    "sqrt": "sqrt",
    "root": "sqrt",
    "relation": "stop",
    "arrow": "stop",
    "stop": "stop",
    "word": "word",
    "rel": "rel",
    "op": "op",
    "mark": "mark",
    "open": "open",
    "close": "close",
    "joint": "var",
    "var": "var",
}
_WORD_OPERATORS = {"plus": "+", "minus": "-", "times": "*", "of": "of", "x": "*", "X": "*"}


def plain(text: str) -> str:
    """The text with symbols, LaTeX, emphasis, bullets and continued lines brought to one form."""
    text = text.translate(_SYMBOL_TABLE)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def tokens(text: str) -> list[Token]:
    """The tokens of a text in :func:`plain` form."""
    found: list[Token] = []
    spaced = False
    for match in _TOKEN.finditer(text):
        name = match.lastgroup or "var"
        if name == "space":
            spaced = True
            continue
        found.append(Token(_KINDS[name], match[0], spaced, match.start(), match.end()))
        spaced = False
    return _with_word_operators(found)


def _with_word_operators(found: list[Token]) -> list[Token]:
    """``3 plus 4``, ``3 x 4`` and ``20% of 50``: a word between two quantities is an operator."""
    for index in range(1, len(found) - 1):
        token = found[index]
        operator = _WORD_OPERATORS.get(token.text) if token.kind == "word" else None
        if operator is None:
            continue
        before, after = found[index - 1], found[index + 1]
        ends = before.kind in ("num", "close", "mark") or (
            before.kind == "word" and operator in "+-*" and token.text not in "xX"
        )
        begins = after.kind in ("num", "open", "frac", "sqrt")
        if token.text in "xX" and before.kind == "num" and not token.spaced:
            begins = after.kind == "num" and not after.spaced  # 3x4, but not 3x (4 + y)
        if ends and begins:
            found[index] = token._replace(kind="op", text=operator)
    return found
