r"""One spelling for mathematical notation: Unicode, Markdown, plain-text and LaTeX variants made alike.

`tidy` rewrites text to a small LaTeX without layout: `\frac`, `\sqrt`, `\text{...}`, `\le`, `\cup` and the like. It
works in one pass for each rule, whatever the text.
"""

import re
from collections.abc import Callable
from typing import Final

from magicore.answers.boxed import matching_braces
from magicore.answers.characters import plain, visible

_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni")
_SUBSCRIPTS: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙₖ", "0123456789+-nk")
# ruff: noqa: RUF001 - the table is there because these characters look like others.
_SYMBOLS: Final = {
    "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": "/", "±": r"\pm ", "∓": r"\mp ",
    "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∈": r"\in ",
    "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", "∞": r"\infty ", "√": r"\sqrt ", "∠": r"\angle ",
    "°": r"^\circ ", "º": r"^\circ ", "˚": r"^\circ ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}",
    "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "∖": r"\setminus ", "′": "'", "…": r"\ldots ", "⟨": r"\langle ",
    "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "∣": "|", "–": "-",
    "—": "-", "∑": r"\sum ", "∫": r"\int ", "₹": r"₹", "ℓ": "l",
}  # fmt: skip
_GREEK: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "φ": "phi", "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta",
    "Λ": "Lambda", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_VULGAR: Final = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip
_CHARACTERS: Final = str.maketrans(
    _SYMBOLS
    | {char: rf"\{name} " for char, name in _GREEK.items()}
    | {char: rf"\frac{{{top}}}{{{bottom}}}" for char, (top, bottom) in _VULGAR.items()}
)

FUNCTION_NAMES: Final = (
    "arcsin arccos arctan arccot arcsec arccsc arsinh arcosh artanh arcsinh arccosh arctanh asin acos atan asinh acosh "
    "atanh sinh cosh tanh coth sech csch sin cos tan cot sec csc log ln exp lim max min gcd lcm det"
).split()
_PLAIN_WORDS: Final = "|".join([*FUNCTION_NAMES, "sqrt", "pi", "theta", "alpha", "beta", "gamma", "lambda", "infty"])
_LETTERS: Final = r"(?![a-zA-Z])"

_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Thousands: 10,\!080 and 12\,345 and 14{,}916.
        (r"\{,\}", ","),
        (r",\s*\\!\s*", ","),
        (r"(?<=\d)\\[,;:] ?(?=\d{3}(?!\d))", ""),
        # Layout.
        (rf"\\(?:left|right|[bB]igg?[lrm]?|middle){_LETTERS}\s*\.?", ""),
        (rf"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|phantom|rm|bf|it|hfill|strut){_LETTERS}", " "),
        (r"\\(?:[hv]space\*?|color|textcolor|tag|label)\s*\{[^{}]*\}", " "),
        (r"\\underline\s*(?=\{)", ""),
        (r"^\s*=(?!=)", ""),
        (rf"\\(?:q?quad|thinspace|enspace|medspace|thickspace){_LETTERS}|(?<!\\)(?:\\[,;:>! ]|~)", " "),
        (r"(?<!\\)\\(?=[%#&_$])", ""),
        # Fonts. One letter is a symbol in any font; longer runs are words.
        (r"\\(?:mathrm|mathbf|mathit|mathsf|boldsymbol|bm|mathcal)\s*\{\s*([a-zA-Z0-9])\s*\}", r" \1 "),
        (r"\\(?:mathbf|boldsymbol|bm|mathit|mathsf|mathrm)\s*\{\s*([-+0-9., /]+)\s*\}", r" \1 "),
        (
            r"\\(?:text|mathrm|mathit|mathsf|mathbf|operatorname\*?)\s*\{\s*"
            rf"({'|'.join([*FUNCTION_NAMES, 'sqrt', 'pi'])})\s*\}}",
            r"\\\1 ",
        ),
        (
            r"\\(?:textnormal|textbf|textit|textrm|textsf|texttt|textup|emph|mbox|hbox|mathrm|mathbf|mathit|mathsf"
            r"|operatorname\*?)\s*(?=\{)",
            r"\\text",
        ),
        (r"\\text\s*\{\s*\}", " "),
        (r"\\text\s*\{\s*([-+0-9., /]+)\s*\}", r" \1 "),
        (rf"\\(?:boxed|fbox){_LETTERS}\s*(?=\{{)", ""),
        # One command for each meaning.
        (rf"\\[dtc]frac{_LETTERS}", r"\\frac"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*(?=\{)", r"\\frac{\1}"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
        (rf"\\[dt]binom{_LETTERS}", r"\\binom"),
        (r"\{?\s*(?<!\d)([a-zA-Z]|\d{1,6})\s*\\choose\s*([a-zA-Z]|\d{1,6})\s*\}?", r"\\binom{\1}{\2}"),
        (rf"\\(?:leq|leqslant|leqq){_LETTERS}|<=|=<", r"\\le "),
        (rf"\\(?:geq|geqslant|geqq){_LETTERS}|>=|=>", r"\\ge "),
        (rf"\\neq{_LETTERS}|\\not\s*=|!=", r"\\ne "),
        (rf"\\lt{_LETTERS}", "<"),
        (rf"\\gt{_LETTERS}", ">"),
        (rf"\\(?:approxeq|simeq|thickapprox){_LETTERS}", r"\\approx "),
        (rf"\\(?:colon|ratio){_LETTERS}", ":"),
        (rf"\\(?:times|ast){_LETTERS}", r"\\cdot "),
        (rf"\\div{_LETTERS}", "/"),
        (rf"\\varnothing{_LETTERS}", r"\\emptyset "),
        (rf"\\(?:lbrace|rbrace){_LETTERS}", lambda match: "\\{" if match[0] == "\\lbrace" else "\\}"),
        (rf"\\lbrack{_LETTERS}", "["),
        (rf"\\rbrack{_LETTERS}", "]"),
        (rf"\\[lr]?vert{_LETTERS}", "|"),
        (rf"\\(?:dots|cdots|dotsc|dotsb){_LETTERS}|\.\.\.", r"\\ldots "),
        (
            r"(?<![\d.])(\d{0,20}\.\d{0,20}?)(?:(\d)\2{2,20}|(\d{2,9})\3{1,9})\s*\\ldots(?!\s*[,;\d])",
            lambda match: f"{match[1]}\\overline{{{match[2] or match[3]}}}",
        ),
        (rf"\\(?:degrees?|textdegree){_LETTERS}|\^\s*\{{\s*\\circ\s*\}}", r"^\\circ "),
        (rf"\\(?:infinity|infin){_LETTERS}|(?<![\\a-zA-Z])(?:infinity|inf|oo){_LETTERS}", r"\\infty "),
        (rf"\\Reals?{_LETTERS}|\\R{_LETTERS}|\\mathbb\s*R|\\mathbf\s*\{{R\}}", r"\\mathbb{R}"),
        (r"(\\mathbb\{R\})\s*-", r"\1\\setminus "),
        (rf"\\(?:imath|iota){_LETTERS}", "i"),
        (rf"\\lg{_LETTERS}", r"\\log_{10} "),
        # Plain text.
        (r"\*\*", "^"),
        (r"\*", r"\\cdot "),
        (rf"(?<![\\a-zA-Z])({_PLAIN_WORDS}){_LETTERS}", r"\\\1 "),
        (r"(?<=[\d)])\s*[xX]\s*(?=10\s*\^)|(?<=\d)\s*[xX]\s*(?=\d)", r"\\cdot "),
        (r"(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)", lambda match: match[0].replace(" ", "")),
    )
)
_SPACES: Final = re.compile(r"\s+")
_STACKED: Final = re.compile(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/([₀₁₂₃₄₅₆₇₈₉]+)")
_RAISED: Final = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+")
_LOWERED: Final = re.compile(r"[₀₁₂₃₄₅₆₇₈₉₊₋ₙₖ]+")
_ENCLOSURES: Final = (
    (r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$"), ("$", "$"), ("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"),
    ("'", "'"), ('"', '"'),
)  # fmt: skip
_WRAPPER: Final = re.compile(r"\\(?:boxed|fbox|text|textbf|textit|textrm|textnormal|mathbf|mathrm|mbox|emph)\s*\{")
_MAX_WRAPPERS: Final = 8
_ENDINGS: Final = " \t\n\r.,;"


def tidy(text: str) -> str:
    r"""`text` in the one spelling that the readers of mathematics expect.

    >>> tidy(r"$\\left( 3,\\; \\dfrac{π}{2} \\right)$.")
    '( 3, \\frac{\\pi }{2} )'
    """
    body = _STACKED.sub(_stacked, plain(visible(text)))
    body = _RAISED.sub(lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", body)
    body = _LOWERED.sub(lambda match: "_{" + match[0].translate(_SUBSCRIPTS) + "}", body)
    body = _SPACES.sub(" ", unwrapped(body.translate(_CHARACTERS)))
    for pattern, replacement in _RULES:
        body = pattern.sub(replacement, body)
    return unwrapped(_SPACES.sub(" ", body))


def _stacked(match: re.Match[str]) -> str:
    return f"\\frac{{{match[1].translate(_SUPERSCRIPTS)}}}{{{match[2].translate(_SUBSCRIPTS)}}}"


def unwrapped(text: str) -> str:
    """`text` without math delimiters, emphasis, quotes and boxes around all of it, and without closing punctuation."""
    body = text.strip()
    for _ in range(_MAX_WRAPPERS):
        bare = _without_one_wrapper(_without_ending(body))
        if bare == body:
            break
        body = bare
    return body


def _without_ending(body: str) -> str:
    if body.endswith(("...", r"\.")) or not body.strip(_ENDINGS):
        return body
    stripped = body.rstrip(_ENDINGS)
    return body if stripped.endswith("\\") else stripped


def _without_one_wrapper(body: str) -> str:
    for opening, closing in _ENCLOSURES:
        if len(body) > len(opening) + len(closing) and body.startswith(opening) and body.endswith(closing):
            inner = body[len(opening) : -len(closing)]
            if not re.search(rf"(?<!\\){re.escape(opening)}", inner) and not inner.endswith("\\"):
                return inner.strip()
    return _without_commands(body)


def _without_commands(body: str) -> str:
    """`body` without the boxes and font commands that enclose all of it, however deep they nest."""
    if not _WRAPPER.match(body) or not body.endswith("}"):
        return body
    closing = matching_braces(body)
    start, end = 0, len(body)
    while (match := _WRAPPER.match(body, start)) and closing.get(match.end() - 1) == end - 1:
        start, end = match.end(), end - 1
    return body[start:end].strip()
