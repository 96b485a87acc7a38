r"""Single expressions: numbers with their units, and what must be asked of a worker."""

import hashlib
import re
from fractions import Fraction
from typing import Final

from magicore.answers import numeric
from magicore.answers.arithmetic import LONG_DECIMAL, MAX_LITERAL, closed, literal, significant_digits
from magicore.answers.forms import EMPTY, INFINITY, MINUS_INFINITY, REALS, Fixed, Leaf, Node, NotParsed, Parse
from magicore.answers.measures import NO_MEASURE, Measure, is_known, measure
from magicore.answers.notation import FUNCTION_NAMES
from magicore.answers.numerals import SCALES
from magicore.answers.scan import TEXT_COMMAND, Tokens, tokenize
from magicore.answers.units import CURRENCY, CURRENCY_SIGNS

MAX_EXPRESSION: Final = 20_000

_NUMBER: Final = re.compile(r"([-+]?)(0*\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")


def plain_number(text: str) -> Leaf | None:
    """Digits with a sign, a point and commas between thousands."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = match[2].replace(",", "")
    if len(digits) > MAX_LITERAL and not match[3]:
        digest = hashlib.sha256(digits.lstrip("0").encode()).hexdigest()
        return Leaf(known=["digits", match[1].strip("+"), digest])
    value = literal(digits + (match[3] or ""))
    if value is None:
        raise NotParsed("too long a number")
    long_decimal = significant_digits(digits + (match[3] or "")) >= LONG_DECIMAL
    return Leaf(number=-value if match[1] == "-" else value, long_decimal=long_decimal)


def computed(text: str, unit: Measure = NO_MEASURE) -> Leaf | None:
    """Closed arithmetic, None if it is not closed."""
    try:
        result = closed(text)
    except numeric.Unrepresentable as error:
        raise NotParsed(str(error)) from None
    return None if result is None else Leaf(number=result.value, long_decimal=result.long_decimal, measure=unit)


def is_closed(text: str) -> bool:
    """Whether `text` is closed arithmetic with a value."""
    try:
        return plain_number(text) is not None or closed(text) is not None
    except (numeric.Unrepresentable, NotParsed):
        return False


_CONNECTIVES: Final = frozenset(["and", "or", "per", *FUNCTION_NAMES])
SHORT_WORD, LONG_WORD = 3, 4


def is_word(run: str) -> bool:
    """Whether letters (lower case) are rather a word than a product of variables."""
    if run in _CONNECTIVES:
        return False
    return len(run) >= LONG_WORD or (len(run) == SHORT_WORD and any(char in "aeiou" for char in run))


_INFINITY: Final = re.compile(r"([-+]?)\s*\\infty")
_SCALE: Final = re.compile(
    rf"(.*[\d)}}])\s*(?:\\text\s*\{{\s*)?({'|'.join(SCALES)})s?\b\s*\}}?\s*(.*)", re.IGNORECASE | re.DOTALL
)
_CODES: Final = r"(?:USD|EUR|GBP|INR|JPY|CNY|RMB|Rs\.?)(?![a-zA-Z])"
_CURRENCY: Final = re.compile(
    rf"([-+]?)\s*(?:\\text\s*\{{)?(US\$|[{re.escape(CURRENCY_SIGNS)}]|{_CODES})\}}?\s*(.*)", re.DOTALL
)
_SYMBOL: Final = re.compile(r"[a-zA-Z]")
_LONG_RUN: Final = re.compile(rf"[a-zA-Z]{{{LONG_WORD},}}")


def infinity(text: str) -> Leaf | None:
    """An infinity with its sign."""
    match = _INFINITY.fullmatch(text)
    return None if match is None else Leaf(known=MINUS_INFINITY if match[1] == "-" else INFINITY)


_ENGINEERING: Final = re.compile(r"[-+]?\s*\d*\.?\d+\s*[-+]\s*\d*\.?\d*\s*j")
_LETTER_DIGITS: Final = re.compile(r"([0-9A-F]{1,200})\s*_\s*\{?\s*(1[1-6])\s*\}?")
_REAL_SYMBOLS: Final = {r"\mathbb{R}": REALS, r"\emptyset": EMPTY}


def scalar(text: str) -> Node:
    """A single expression, whatever it is."""
    if not text:
        raise NotParsed("nothing between separators")
    if text in _REAL_SYMBOLS:
        return Fixed(value=_REAL_SYMBOLS[text])
    if _ENGINEERING.fullmatch(text):
        text = text[:-1] + "i"
    in_letters = _LETTER_DIGITS.fullmatch(text)
    if in_letters and all(int(digit, 36) < int(in_letters[2]) for digit in in_letters[1]):
        return Leaf(number=Fraction(int(in_letters[1], int(in_letters[2]))))
    simple = infinity(text) or _with_currency(text) or _scaled(text, NO_MEASURE) or computed(text)
    if simple is not None:
        return simple
    return _with_unit(text) or _expression(text, NO_MEASURE)


def _expression(text: str, unit: Measure) -> Leaf:
    if len(text) > MAX_EXPRESSION:
        raise NotParsed("too long an expression")
    plain = re.sub(r"\\[a-zA-Z]+", " ", text)
    if not _SYMBOL.search(text) or _LONG_RUN.search(plain):
        raise NotParsed("not a mathematical expression")
    return Leaf(request=("value", text), measure=unit)


def _with_currency(text: str) -> Leaf | None:
    """A sign or code before or after the amount."""
    match = _CURRENCY.fullmatch(text)
    if match:
        sign, name, rest = match.groups()
        unit = measure(CURRENCY[name.lower()])
    elif text[-1] in CURRENCY_SIGNS:
        sign, rest, unit = "", text[:-1], measure(CURRENCY.get(text[-1], text[-1]))
    else:
        return None
    amount = rest.strip()
    leaf = plain_number(amount) or _scaled(amount, unit or NO_MEASURE) or computed(amount) or _with_unit(amount)
    if leaf is None or leaf.number is None or unit is None:
        return None
    number = numeric.negate(leaf.number) if sign == "-" else leaf.number
    return Leaf(number=number, measure=unit, long_decimal=leaf.long_decimal)


def _scaled(text: str, unit: Measure) -> Leaf | None:
    """A number with a scale word, and perhaps a unit after it: "1.5 million dollars"."""
    match = _SCALE.fullmatch(text)
    if match is None:
        return None
    leaf = plain_number(match[1].strip()) or computed(match[1].strip())
    if leaf is None or leaf.number is None:
        return None
    rest = TEXT_COMMAND.sub(r"\1", match[3]).strip()
    after = measure(rest) if rest else NO_MEASURE
    if after is None:
        return None
    number = numeric.multiply(leaf.number, Fraction(SCALES[match[2].lower()]))
    return Leaf(number=number, measure=after if after.dimension else unit)


_UNIT_TOKEN: Final = re.compile(r"\\text\s*\{[^{}]*\}|[^\W\d_]+|\s+|[/^.{}'()-]|[23]|\\cdot|\\circ|\\mu")
_SINGLE_LETTERS: Final = frozenset("mgshL")
_MAX_UNIT_TOKENS: Final = 24


def _with_unit(text: str) -> Leaf | None:
    """An expression and the unit after it; a bare letter is a unit only after a space and a plain number."""
    tokens = tokenize(text)
    first = len(tokens)
    while first > 0 and len(tokens) - first < _MAX_UNIT_TOKENS and _UNIT_TOKEN.fullmatch(tokens[first - 1]):
        first -= 1
    for start in range(first, len(tokens)):
        if start and _starts_unit(tokens[start:]):
            before, after = "".join(tokens[:start]), "".join(tokens[start:])
            leaf = _unit_reading(before, after)
            if leaf is not None:
                return leaf
    return None


def _starts_unit(tokens: Tokens) -> bool:
    return tokens[0][0].isalpha() or tokens[0].startswith(r"\text") or "".join(tokens[:2]).startswith(r"^\circ")


def _unit_reading(before: str, after: str) -> Leaf | None:
    written_as_text = r"\text" in after or r"\circ" in after
    body = TEXT_COMMAND.sub(r" \1 ", after).replace("^\\circ", "°").strip()
    unit = measure(re.sub(r"°\s+(?=[CF]\b)", "°", body))
    if unit is None or (not written_as_text and not _is_bare_unit(before, body)):
        return None
    stripped = before.strip()
    leaf = plain_number(stripped) or computed(stripped)
    if leaf is not None:
        return Leaf(number=leaf.number, known=leaf.known, measure=unit, long_decimal=leaf.long_decimal)
    return _expression(stripped, unit) if written_as_text and _SYMBOL.search(stripped) else None


def _is_bare_unit(before: str, body: str) -> bool:
    """Whether letters after a number are a unit rather than variables."""
    words = re.findall(r"[^\W\d_]+", body)
    spaced = before.endswith(" ")
    if any(word in FUNCTION_NAMES for word in words) or not (is_closed(before.strip())):
        return False
    if len(words[0]) == 1 and words[0].isascii():
        return spaced and plain_number(before.strip()) is not None and words[0] in _SINGLE_LETTERS
    return is_known(words[0]) or all(is_word(word.lower()) or is_known(word) for word in words)


_MEASURED: Final = r"(\d[\d.]*)\s*(?:\\text\s*\{\s*)?([a-zA-Z]+)\.?(?:\s*\})?"
_COMPOUND: Final = re.compile(rf"{_MEASURED}(?:\s*,)?\s+(?:(?:\\text\s*\{{\s*)?and(?:\s*\}})?\s+)?{_MEASURED}")


_DEGREES: Final = re.compile(r"(\d{1,9})\s*\^\s*\\circ\s*(\d{1,9})\s*'(?:\s*(\d{1,9}(?:\.\d{1,99})?)\s*(?:''|\"))?")


def compound(text: str, parse: Parse) -> Node | None:
    """Two measures of one dimension, the second smaller: "2 hours and 4 minutes"; degrees with minutes and seconds."""
    angle = _DEGREES.fullmatch(text)
    if angle:
        degrees = Fraction(angle[1]) + Fraction(angle[2]) / 60 + Fraction(angle[3] or 0) / 3600
        return Leaf(number=degrees, measure=measure("°") or NO_MEASURE)
    match = _COMPOUND.fullmatch(text)
    if match is None:
        return None
    large, small = measure(match[2]), measure(match[4])
    if large is None or small is None or large.dimension != small.dimension or not large.size > small.size:
        return None
    whole, part = computed(match[1]), computed(match[3])
    if whole is None or part is None or whole.number is None or part.number is None:
        return None
    return Leaf(number=whole.number + part.number * small.size / large.size, measure=large)
