r"""Closed arithmetic, read and computed in one pass: numbers, fractions, roots, powers, functions of numbers.

The grammar is LaTeX as `notation.tidy` leaves it and the plain text people write: `\frac12`, `3\sqrt{13}`, `2^10`,
`-4 4/9`, `\sqrt(3)/2`, `1.5e3`, `\log_2 8`, `\sin 30^\circ`, `4210_7`, `0.\overline{3}`, `5!`. Products without a sign
and quotients bind alike, from the left: `1/2\pi` is half of pi. A text with a symbol in it is not closed and gives
None; nothing is ever evaluated as code.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from magicore.answers import numeric
from magicore.answers.numeric import Number, Unrepresentable

LONG_DECIMAL: Final = 12
"""A decimal of this many significant digits stands for every value it agrees with to so many digits."""
MAX_DEPTH: Final = 100
MAX_LENGTH: Final = 20_000
MAX_LITERAL: Final = 39_000
_CHUNK: Final = 4000
_MIN_BASE, _MAX_BASE = 2, 36

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![\d.]))?)"
    r"|(?P<command>\\[a-zA-Z]+|\\.)|(?P<char>\S))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """The value of a closed expression.

    Attributes:
        value: A number of `magicore.answers.numeric`.
        long_decimal: Whether a decimal of `LONG_DECIMAL` digits or more was written in it.
    """

    value: Number
    long_decimal: bool = False


class _NotClosed(Exception):
    """The text holds a symbol or does not parse; another reader may know it."""


def closed(text: str) -> Closed | None:
    r"""The value of `text`, None if it is no closed arithmetic.

    Raises:
        Unrepresentable: It is closed arithmetic, and its value is undefined or out of bounds.

    >>> closed(r"\frac{1}{2} + 0.25").value
    Fraction(3, 4)
    """
    if len(text) > MAX_LENGTH:
        raise Unrepresentable("too long an expression")
    parser = _Parser(text)
    try:
        value = parser.expression()
        parser.expect_end()
    except _NotClosed:
        return None
    except RecursionError:
        raise Unrepresentable("too deeply nested") from None
    return Closed(value=value, long_decimal=parser.long_decimal)


def literal(text: str) -> Fraction | None:
    """The exact value of decimal digits with at most one point, however long; None past `MAX_LITERAL` digits."""
    if len(text) > MAX_LITERAL:
        return None
    whole, _, part = text.partition(".")
    return Fraction(_integer(whole + part or "0"), 1) / Fraction(10) ** len(part)


def _integer(digits: str) -> int:
    """`int(digits)`, past Python's limit on the length of the text."""
    value = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def significant_digits(text: str) -> int:
    """How many significant digits the decimal `text` shows after leading and trailing zeros are taken off."""
    if "." not in text:
        return 0
    return len(text.replace(".", "").strip("0"))


class _Token(NamedTuple):
    kind: str
    text: str
    spaced: bool


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind], match[0][0].isspace()))
    return tokens


_END: Final = _Token("end", "", False)
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", "|": "|"}
_CONSTANTS: Final = {r"\pi": "pi", "e": "e", "i": "i"}
_PAIRS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    r"\frac": numeric.divide,
    r"\binom": numeric.binomial,
}
_FUNCTIONS: Final[dict[str, Callable[[Number], Number]]] = {
    r"\ln": numeric.logarithm,
    r"\exp": numeric.exponential,
}
_INVERSES: Final = {name: f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_MINUS_ONE: Final = Fraction(-1)


class _Parser:
    """Recursive descent over the tokens; every level of nesting is counted and bounded."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.index = 0
        self.depth = 0
        self.in_angle = 0
        self.in_bars = 0
        self.long_decimal = False

    # Tokens.

    def peek(self, ahead: int = 0) -> _Token:
        place = self.index + ahead
        return self.tokens[place] if place < len(self.tokens) else _END

    def take(self) -> _Token:
        token = self.peek()
        self.index += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise _NotClosed

    def expect_end(self) -> None:
        if self.peek() is not _END:
            raise _NotClosed

    # Grammar.

    def expression(self) -> Number:
        """Terms joined by plus and minus."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unrepresentable("too deeply nested")
        value = self.term()
        while self.peek().text in {"+", "-"}:
            sign = self.take().text
            term = self.term()
            value = numeric.add(value, numeric.negate(term) if sign == "-" else term)
        self.depth -= 1
        return value

    def term(self) -> Number:
        """Factors joined by signs of multiplication and division, or by nothing."""
        negative = self.signs()
        value = self.factor()
        while True:
            token = self.peek()
            if token.text in {r"\cdot", "/"}:
                self.take()
                value = self.joined(value, token.text)
            elif self.starts_factor():
                value = numeric.multiply(value, self.factor())
            else:
                return numeric.negate(value) if negative else value

    def joined(self, value: Number, operator: str) -> Number:
        negative = self.signs()
        factor = self.factor()
        value = numeric.multiply(value, factor) if operator == r"\cdot" else numeric.divide(value, factor)
        return numeric.negate(value) if negative else value

    def signs(self) -> bool:
        """Takes leading signs; whether they amount to a minus."""
        negative = False
        while self.peek().text in {"+", "-"}:
            negative ^= self.take().text == "-"
        return negative

    def starts_factor(self) -> bool:
        """Whether a factor follows without a sign. A number directly after a number is no product."""
        token = self.peek()
        if token.kind == "number":
            return self.tokens[self.index - 1].kind != "number" or self.after_exponent()
        if token.text == "|":
            return not self.in_bars
        return token.text in _FACTOR_STARTS or (token.kind == "command" and token.text not in _NO_FACTORS)

    def after_exponent(self) -> bool:
        """Whether the number just read is a bare exponent: `2^6 3^5`."""
        return self.index > 1 and self.tokens[self.index - 2].text == "^" and self.peek().spaced

    def factor(self) -> Number:
        """A base with factorials, percent signs, degrees and an exponent."""
        base = self.base()
        while True:
            if self.accept("!"):
                base = numeric.factorial(base)
            elif self.accept("%"):
                base = numeric.divide(base, Fraction(100))
            elif self.peek().text == "^":
                self.take()
                base = self.raised(base)
            else:
                return base

    def raised(self, base: Number) -> Number:
        if self.accept(r"\circ"):
            return self.degrees(base)
        return numeric.power(base, self.exponent())

    def degrees(self, base: Number) -> Number:
        if not self.in_angle:
            raise _NotClosed
        return numeric.divide(numeric.multiply(base, numeric.constant("pi")), Fraction(180))

    def exponent(self) -> Number:
        """A signed base; towers bind from the right."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unrepresentable("too deeply nested")
        negative = self.signs()
        value = self.base()
        if self.accept("!"):
            value = numeric.factorial(value)
        if self.accept("^"):
            value = numeric.power(value, self.exponent())
        self.depth -= 1
        return numeric.negate(value) if negative else value

    def base(self) -> Number:
        """One number, constant, bracket, fraction, root or function."""
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.text in _CONSTANTS:
            return numeric.constant(_CONSTANTS[token.text])
        if token.text in _CLOSERS:
            return self.bracket(token.text)
        if token.kind == "command":
            return self.command(token.text)
        raise _NotClosed

    def command(self, name: str) -> Number:
        """The value of a command with its arguments."""
        if name in _PAIRS:
            return _PAIRS[name](self.argument(), self.argument())
        if name == r"\sqrt":
            return self.root()
        if name == r"\log":
            return self.logarithm()
        if name in _FUNCTIONS:
            return self.function(_FUNCTIONS[name])
        if name[1:] in numeric.UNARY_FUNCTIONS:
            return self.trigonometric(name[1:])
        raise _NotClosed

    def bracket(self, opening: str) -> Number:
        self.in_bars += opening == "|"
        value = self.expression()
        self.expect(_CLOSERS[opening])
        self.in_bars -= opening == "|"
        if opening == "|":
            return numeric.absolute(value)
        if opening == r"\lfloor":
            return numeric.floor(value)
        if opening == r"\lceil":
            return numeric.ceiling(value)
        if opening == r"\{":
            raise _NotClosed
        return value

    def number(self, token: _Token) -> Number:
        """A literal, and what may follow it: a repeating part, a base, the fraction of a mixed number."""
        if self.peek().text == "_":
            return self.in_base(token.text)
        if self.peek().text in {r"\overline", r"\bar", r"\dot"} and "." in token.text:
            return self.repeating(token.text)
        value = self.literal(token.text)
        if token.text.isdigit():
            return numeric.add(value, self.mixed_part())
        return value

    def literal(self, text: str) -> Number:
        mantissa, _, exponent = text.replace("E", "e").partition("e")
        value = literal(mantissa)
        if value is None:
            raise Unrepresentable("too long a number")
        self.long_decimal |= significant_digits(mantissa) >= LONG_DECIMAL
        if not exponent:
            return value
        shift = literal(exponent.lstrip("+-"))
        if shift is None:
            raise Unrepresentable("too large an exponent")
        return numeric.multiply(value, numeric.power(Fraction(10), -shift if exponent.startswith("-") else shift))

    def in_base(self, digits: str) -> Number:
        """Digits with the base as subscript."""
        self.take()
        braced = self.accept("{")
        token = self.take()
        if braced:
            self.expect("}")
        base = int(token.text) if token.text.isdigit() and len(token.text) <= len(str(_MAX_BASE)) else 0
        if not _MIN_BASE <= base <= _MAX_BASE or not digits.isdigit() or len(digits) > _CHUNK:
            raise _NotClosed
        if any(int(digit) >= base for digit in digits):
            raise _NotClosed
        return Fraction(int(digits, base))

    def repeating(self, prefix: str) -> Number:
        r"""`0.1\overline{6}`."""
        self.take()
        braced = self.accept("{")
        token = self.take()
        if braced:
            self.expect("}")
        whole = literal(prefix)
        if not token.text.isdigit() or len(token.text) > _CHUNK or whole is None:
            raise _NotClosed
        places = len(prefix.partition(".")[2])
        return whole + Fraction(int(token.text), 10 ** len(token.text) - 1) / Fraction(10) ** places

    def mixed_part(self) -> Fraction:
        r"""The proper fraction that makes a mixed number of the integer before it: `1\frac{4}{5}`, `4 4/9`; else 0."""
        for texts in _MIXED_FORMS:
            window = [self.peek(place) for place in range(len(texts))]
            matched = all(
                token.text == text if text else token.kind == "number" and token.text.isdigit()
                for token, text in zip(window, texts, strict=True)
            )
            if matched and (texts[0] or window[0].spaced) and self.peek(len(texts)).text not in {"^", "!", "_"}:
                top, bottom = (token.text for token, text in zip(window, texts, strict=True) if not text)
                if len(bottom) <= _CHUNK and 0 < int(top) < int(bottom):
                    self.index += len(texts)
                    return Fraction(int(top), int(bottom))
        return Fraction(0)

    def argument(self) -> Number:
        r"""What a command applies to: a group in braces, or one digit or command as in `\frac12` and `\frac\pi2`."""
        if self.accept("{"):
            return self.bracket("{")
        token = self.peek()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.index] = _Token("number", token.text[1:], False)
            return Fraction(int(token.text[0]))
        if token.text in {"+", "-"}:
            raise _NotClosed
        return self.base()

    def root(self) -> Number:
        degree: Number = Fraction(2)
        if self.accept("["):
            degree = self.bracket("[")
        value = self.bracket("{") if self.accept("{") else self.base()
        return numeric.power(value, numeric.divide(Fraction(1), degree))

    def logarithm(self) -> Number:
        """To the base written as subscript, else to ten."""
        base: Number = self.argument() if self.accept("_") else Fraction(10)
        return self.function(lambda value: numeric.logarithm(value, base))

    def trigonometric(self, name: str) -> Number:
        self.in_angle += 1
        power: Number = Fraction(1)
        if self.accept("^"):
            power = self.exponent()
        inverse = power == _MINUS_ONE and name in _INVERSES
        target = _INVERSES[name] if inverse else name
        value = self.function(lambda argument: numeric.apply(target, argument))
        self.in_angle -= 1
        return value if inverse or power == 1 else numeric.power(value, power)

    def function(self, call: Callable[[Number], Number]) -> Number:
        """A function of the bracket that follows, else of the factors up to the next sign."""
        if self.peek().text in {"(", "[", "{"}:
            value = self.bracket(self.take().text)
            return call(self.degrees(value) if self.degree_sign() else value)
        negative = self.signs()
        value = self.factor()
        while self.starts_factor() and self.peek().text not in _FUNCTION_STARTS:
            value = numeric.multiply(value, self.factor())
        return call(numeric.negate(value) if negative else value)

    def degree_sign(self) -> bool:
        if self.peek().text == "^" and self.peek(1).text == r"\circ":
            self.index += 2
            return True
        return False


_MIXED_FORMS: Final = (
    (r"\frac", "{", "", "}", "{", "", "}"),
    ("", "/", ""),
)
_FUNCTION_STARTS: Final = frozenset([r"\ln", r"\log", r"\exp", *(f"\\{name}" for name in numeric.UNARY_FUNCTIONS)])
_FACTOR_STARTS: Final = frozenset(["(", "[", "{", "e", "i"])
_NO_FACTORS: Final = frozenset([r"\cdot", r"\}", r"\rfloor", r"\rceil", r"\circ", r"\overline"])
