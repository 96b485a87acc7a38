"""Arithmetic as models write it: tokens, and an exact evaluator over fractions.

Text is data: it is never evaluated as code, and every quantity is bounded (digits of a number, exponents, tokens of an
expression), so that no text takes long. What is not plain arithmetic with known numbers (a variable, a function, a unit
that may be a variable) raises :class:`Unreadable`: the caller abstains rather than guesses.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, isqrt
from typing import Literal, NamedTuple

Kind = Literal["num", "op", "rel", "open", "close", "mark", "frac", "sqrt", "dots", "word", "var", "stop"]
Mode = Literal[
    "percent-as-unit",
    "percent-of-left",
    "scale-as-unit",
    "scale-of-fraction",
    "mixed-as-product",
    "paren-apart",
    "implicit-tight",
]
"""Other readings of an ambiguous expression; see :class:`Parser`."""

MOST_TOKENS = 48
"""The longest expression that is read, in tokens."""
_MOST_DIGITS = 30
_MOST_BITS = 2048
_MOST_FACTORIAL = 60


class Unreadable(Exception):
    """Not plain arithmetic, or too large: no verdict on it."""


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


# Units. Only what cannot be a variable is passed over.

_SHORT_UNITS = frozenset(
    "kg mg cm mm km mi ft yd lb lbs oz ml mL cl dl hr hrs min mins sec secs mph kph kmh th st nd rd am pm gal qt pt "
    "pts KB MB GB TB kW kWh Hz MHz GHz USD EUR GBP cents cent".split()
)
_AFTER_SLASH = frozenset({"h", "s", "g", "m", "l", "L"})
_MEASURES: dict[str, tuple[str, str]] = {
    word: (dimension, unit)
    for dimension, units in {
        "time": {
            "s": "second seconds sec secs",
            "min": "minute minutes min mins",
            "h": "hour hours hr hrs",
            "day": "day days",
            "week": "week weeks",
            "month": "month months",
            "year": "year years yr yrs",
        },
        "length": {
            "mm": "mm millimeter millimeters millimetre millimetres",
            "cm": "cm centimeter centimeters centimetre centimetres",
            "m": "meter meters metre metres",
            "km": "km kilometer kilometers kilometre kilometres",
            "in": "inch inches",
            "ft": "foot feet ft",
            "yd": "yard yards yd",
            "mi": "mile miles mi",
        },
        "weight": {
            "mg": "mg milligram milligrams",
            "g": "gram grams",
            "kg": "kg kilogram kilograms",
            "oz": "ounce ounces oz",
            "lb": "pound pounds lb lbs",
            "t": "ton tons tonne tonnes",
        },
        "volume": {
            "ml": "ml mL milliliter milliliters millilitre millilitres",
            "l": "liter liters litre litres",
            "gal": "gallon gallons gal",
            "pt": "pint pints pt",
            "qt": "quart quarts qt",
            "cup": "cup cups",
        },
        "money": {
            "cent": "cent cents penny pennies",
            "nickel": "nickel nickels",
            "dime": "dime dimes",
            "quarter": "quarter quarters",
            "dollar": "dollar dollars USD",
        },
        "data": {"KB": "KB kilobytes", "MB": "MB megabytes", "GB": "GB gigabytes", "TB": "TB terabytes"},
        "count": {"dozen": "dozen dozens", "pair": "pair pairs"},
    }.items()
    for unit, words in units.items()
    for word in words.split()
}
_SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# Words that belong to the sentence and not to a quantity.
_SENTENCE_WORDS = frozenset(
    "a an and are as at be became because been being but by can could did do does during each every find for from "
    "gave get gets give gives giving got had has have having he hence her here his how however i if in into is it "
    "its just leaves make makes making means my need needs not now on only or our out pay pays plus she since so "
    "spend spends spent than that the their them then there therefore these they this those thus to until used "
    "was we were what when where which while who will with would you your answer equation step calculate compute "
    "solve simplify subtract add multiply divide substitute remainder modulo mod sin cos tan log ln exp sqrt gcd "
    "lcm max abs floor ceil".split()
)
_LINKING_WORDS = frozenset({"per", "of", "a", "an", "each", "every"})
_LONGEST_UNIT = 3  # words
_OPERATIONS = frozenset({"squared", "cubed", "factorial", "choose", "halved", "doubled", "tripled"})


def _is_unit(word: str) -> bool:
    return (len(word) > 2 and word.lower() not in _SENTENCE_WORDS) or word in _SHORT_UNITS  # noqa: PLR2004


class Written(NamedTuple):
    """How a number alone is written: the values of its last digit and of its last digit that is not zero, and whether
    it is given as rounded numbers are, with decimal places or as a percentage."""

    unit: Fraction
    significant: Fraction
    rounded: bool


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """An evaluated expression.

    Attributes:
        value: Its exact value.
        operations: How many operations it took; 0 for a number alone.
        written: How a number alone is written.
        decimals: Whether a number in it has two or more decimal places.
        additive: Whether it adds or subtracts.
        measures: The units of measurement it names, as (dimension, unit); those after a slash or "per" left out.
        rated: Whether it names a unit after a slash or "per".
        named: Whether words follow its last number.
        end: Index of the token after it.
    """

    value: Fraction
    operations: int
    written: Written | None
    decimals: bool
    additive: bool
    measures: frozenset[tuple[str, str]]
    rated: bool
    named: bool
    end: int


def readings(tokens: Sequence[Token], start: int = 0, *, left: bool) -> list[Quantity]:
    """The expression at ``start``, the likeliest reading first, then others where it is ambiguous.

    ``left`` says that an equals sign follows the tokens, and otherwise goes before: ``5! =`` is a factorial and
    ``= 5!`` an exclamation, ``= - 5`` begins with a sign and ``... - 5 =`` with a dash.

    Raises:
        Unreadable: There is no plain arithmetic there.
    """
    first = Parser(tokens, start, frozenset(), left)
    found = [first.quantity()]
    touched = sorted(first.touched)
    for size in (1, 2):
        for modes in itertools.combinations(touched, size):
            try:
                found.append(Parser(tokens, start, frozenset(modes), left).quantity())
            except Unreadable:
                continue
    return found


class Parser:
    """Recursive descent over tokens.

    Where models' arithmetic is ambiguous, ``touched`` names the other readings, and ``modes`` selects them: ``20%``
    as 20 units; ``150 + 10%`` as 10 % of 150; ``3 million`` and ``2 dozen`` as 3 and 2 of a unit; ``1/2 dozen`` as half
    a dozen; ``2(1/2)`` as a product and no mixed number; ``24 (...)`` as a number and a remark; ``6/2(1+2)`` as
    6/(2(1+2)).
    """

    def __init__(self, tokens: Sequence[Token], start: int, modes: frozenset[Mode], left: bool) -> None:
        self.tokens = tokens
        self.position = start
        self.modes = modes
        self.touched: set[Mode] = set()
        self._first = start
        self._left = left
        self._operations = 0
        self._additive = False
        self._decimals = False
        self._named = False
        self._rated = False
        self._measures: set[tuple[str, str]] = set()
        self._written: Written | None = None
        self._percent_at = -1  # position behind the last percentage

    def quantity(self) -> Quantity:
        value = self._expression()
        return Quantity(
            value=value,
            operations=self._operations,
            written=self._written if self._operations == 0 else None,
            decimals=self._decimals,
            additive=self._additive,
            measures=frozenset(self._measures),
            rated=self._rated,
            named=self._named,
            end=self.position,
        )

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self.position + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def _is(self, kind: Kind, text: str | None = None, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == kind and (text is None or token.text == text)

    def _wants(self, mode: Mode) -> bool:
        self.touched.add(mode)
        return mode in self.modes

    def _operation(self, value: Fraction) -> Fraction:
        self._operations += 1
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
            raise Unreadable("the numbers are too large")
        return value

    def _expression(self) -> Fraction:
        value = self._term()
        while (token := self._peek()) and token.kind == "op" and token.text in "+-":
            after = self._peek(1)
            if token.text == "-" and token.spaced and after is not None and after.kind == "word":
                break  # a dash
            self.position += 1
            right = self._term()
            if self._percent_at == self.position and self._wants("percent-of-left"):
                right *= value
            self._additive = True
            value = self._operation(value + right if token.text == "+" else value - right)
        return value

    def _term(self) -> Fraction:
        value, factor, divides = Fraction(1), self._signed(), False
        while True:
            token = self._peek()
            if token is None:
                break
            if token.kind == "op" and token.text in ("*", "/", "of"):
                if token.text == "of" and self._percent_at != self.position and not divides:
                    break
                self.position += 1
                value, factor, divides = self._times(value, factor, divides), self._signed(), token.text == "/"
                self._operation(factor)
            elif token.kind in ("open", "frac") and not (token.spaced and token.kind == "open"):
                right = self._operation(self._power())
                if divides and not self._wants("implicit-tight"):
                    value, factor, divides = self._times(value, factor, divides), right, False
                else:
                    factor *= right
            elif token.kind == "open" and (apart := self._group_apart()) is not None:
                factor *= self._operation(apart)
            else:
                break
        return self._times(value, factor, divides)

    @staticmethod
    def _times(value: Fraction, factor: Fraction, divides: bool) -> Fraction:
        if divides and factor == 0:
            raise Unreadable("division by zero")
        return value / factor if divides else value * factor

    def _group_apart(self) -> Fraction | None:
        """A group in brackets after white space: a factor, or a remark that is no part of the expression."""
        if self._wants("paren-apart"):
            return None
        before = self.position
        try:
            return self._power()
        except Unreadable:
            self.position = before
            return None

    def _signed(self) -> Fraction:
        token, after = self._peek(), self._peek(1)
        if token is None or token.kind != "op" or token.text not in "+-":
            return self._power()
        if after is None or (after.spaced and self.position == self._first and self._left):
            raise Unreadable("a sign without a number")
        if after.kind == "op":
            raise Unreadable("two signs")
        self.position += 1
        value = self._power()
        return -value if token.text == "-" else value

    def _power(self) -> Fraction:
        value = self._atom()
        goes_on = self._is("op", ahead=1) or self._is("close", ahead=1) or (self._left and self._peek(1) is None)
        if self._is("mark", "!") and goes_on:
            if value.denominator != 1 or not 0 <= value <= _MOST_FACTORIAL:
                raise Unreadable("a factorial out of range")
            self.position += 1
            value = self._operation(Fraction(factorial(int(value))))
        if not self._is("op", "^"):
            return value
        self.position += 1
        exponent = self._signed()
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if exponent.denominator != 1 or bits * abs(exponent) > _MOST_BITS or (value == 0 and exponent < 0):
            raise Unreadable("a power out of range")
        return self._operation(value ** int(exponent))

    def _atom(self) -> Fraction:
        token = self._peek()
        if token is None:
            raise Unreadable("nothing there")
        self.position += 1
        if token.kind == "num":
            value = self._number(token)
        elif token.kind == "open":
            self.position -= 1
            value = self._group()
        elif token.kind == "frac":
            over = self._group()
            value = self._operation(self._times(over, self._group(), True))
        elif token.kind == "sqrt":
            value = self._operation(_root(self._group() if self._is("open") else self._atom()))
        else:
            raise Unreadable(f"{token.text!r} is no number")
        return self._suffix(value)

    def _group(self) -> Fraction:
        if not self._is("open"):
            raise Unreadable("a bracket is missing")
        self.position += 1
        value = self._expression()
        if not self._is("close"):
            raise Unreadable("a bracket is not closed")
        self.position += 1
        return value

    def _number(self, token: Token) -> Fraction:
        digits = token.text.replace(",", "")
        if len(digits) > _MOST_DIGITS:
            raise Unreadable("too many digits")
        value = Fraction(digits)
        mantissa = digits.lower().partition("e")[0]
        places = len(mantissa.partition(".")[2])
        self._decimals = self._decimals or places > 1
        unit = Fraction(1, 10**places)
        if "e" in digits.lower():
            unit *= Fraction(f"1{digits[len(mantissa) :]}")
        if self._is("dots"):  # cut off, so off by up to its last digit, not by half of it
            self.position += 1
            unit *= 2
        zeros = len(digits) - len(digits.rstrip("0")) if places == 0 and value else 0
        self._written = Written(unit, unit * 10**zeros, places > 0)
        return self._mixed(value) if places == 0 else value

    def _mixed(self, value: Fraction) -> Fraction:
        """The fraction of a mixed number, ``2 1/2`` or ``2\\frac{1}{2}``, if there is one."""
        plain = [("num", True), ("op", False), ("num", False)]
        frac = [("frac", None), ("open", None), ("num", None), ("close", None), ("open", None), ("num", None)]
        group = [("open", False), ("num", None), ("op", None), ("num", None), ("close", None)]
        for shape, over, under in ((plain, 0, 2), (frac, 2, 5), (group, 1, 3)):
            ahead = [self._peek(index) for index in range(len(shape))]
            fits = all(
                token is not None and token.kind == kind and spaced in (None, token.spaced)
                for token, (kind, spaced) in zip(ahead, shape, strict=True)
            )
            if not fits or any(token is not None and token.kind == "op" and token.text != "/" for token in ahead):
                continue
            top, bottom = (token.text if (token := ahead[index]) else "" for index in (over, under))
            proper = top.isdecimal() and bottom.isdecimal() and len(bottom) < 6 and 0 < int(top) < int(bottom)  # noqa: PLR2004
            if not proper or (shape is not plain and self._wants("mixed-as-product")):
                continue
            self.position += len(shape) + (shape is frac)
            self._written = None
            return value + Fraction(int(top), int(bottom))
        return value

    def _suffix(self, value: Fraction) -> Fraction:
        """What may follow a number: a percent sign, a scale such as ``million``, the words of a unit."""
        if self._is("mark", "%"):
            self.position += 1
            if not self._wants("percent-as-unit"):
                value = self._scaled(value, Fraction(1, 100), rounded=True)
            self._percent_at = self.position
        token = self._peek()
        if token and token.kind == "word" and (scale := _SCALES.get(token.text.lower().removesuffix("s"))):
            divides = self.position > 1 and self.tokens[self.position - 2].text == "/"
            if divides and self._wants("scale-of-fraction"):
                self.position += 1
                value /= scale
            elif not self._wants("scale-as-unit"):
                self.position += 1
                value = self._scaled(value, Fraction(scale), rounded=False)
        self._named = False
        for count in range(_LONGEST_UNIT + 1):
            if not self._unit_word(count):
                break
            self._named = True
        if self._named and self._is("op", "^") and self._is("num", ahead=1):
            self.position += 2  # square and cubic units
        return value

    def _scaled(self, value: Fraction, scale: Fraction, *, rounded: bool) -> Fraction:
        if self._written is not None:
            unit, significant, was = self._written
            self._written = Written(unit * scale, significant * scale, was or rounded)
        return value * scale

    def _unit_word(self, count: int) -> bool:
        """Pass over one word of a unit, or ``/`` and a word."""
        slash = self._is("op", "/")
        token = self._peek(1 if slash else 0)
        if token is None or token.kind != "word":
            return False
        word, glued = token.text, not token.spaced and not slash
        linking = count > 0 and word in _LINKING_WORDS
        known = _is_unit(word) or linking or (slash and count > 0 and word in _AFTER_SLASH)
        if (glued and word not in _SHORT_UNITS and word not in _MEASURES) or word.lower() in _OPERATIONS:
            raise Unreadable(f"{word!r} may be a variable")
        if not known:
            if slash or (len(word) <= 2 and word.lower() not in _SENTENCE_WORDS):  # noqa: PLR2004
                raise Unreadable(f"{word!r} may be a variable")
            return False
        if not slash and count == _LONGEST_UNIT:
            return False
        if slash or word == "per":
            self._rated = True
        elif measure := _MEASURES.get(word):
            self._measures.add(measure)
        self.position += 2 if slash else 1
        return True


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise Unreadable("a root of a negative number")
    over, under = isqrt(value.numerator), isqrt(value.denominator)
    if over * over != value.numerator or under * under != value.denominator:
        raise Unreadable("an irrational root")
    return Fraction(over, under)
