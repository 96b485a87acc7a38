"""Evaluate arithmetic exactly, over fractions.

Text is data: it is never evaluated as code, and every quantity is bounded (digits of a number, exponents, tokens of an
expression), so that no text takes long. What is not plain arithmetic with known numbers (a variable, a function, a unit
that may be a variable) raises :class:`Unreadable`: the caller abstains rather than guesses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, isqrt
from typing import Literal, NamedTuple

from reward_models.notation import Kind, Token
from reward_models.units import (
    AFTER_SLASH,
    LINKING_WORDS,
    LONGEST_UNIT,
    MEASURES,
    OPERATIONS,
    SCALES,
    SENTENCE_WORDS,
    SHORT_UNITS,
    is_unit,
)

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
            proper = top.isdecimal() and bottom.isdecimal() and len(bottom) < 6 and 0 < int(top) < int(bottom)
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
        if token and token.kind == "word" and (scale := SCALES.get(token.text.lower().removesuffix("s"))):
            divides = self.position > 1 and self.tokens[self.position - 2].text == "/"
            if divides and self._wants("scale-of-fraction"):
                self.position += 1
                value /= scale
            elif not self._wants("scale-as-unit"):
                self.position += 1
                value = self._scaled(value, Fraction(scale), rounded=False)
        self._named = False
        for count in range(LONGEST_UNIT + 1):
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
        linking = count > 0 and word in LINKING_WORDS
        known = is_unit(word) or linking or (slash and count > 0 and word in AFTER_SLASH)
        if (glued and word not in SHORT_UNITS and word not in MEASURES) or word.lower() in OPERATIONS:
            raise Unreadable(f"{word!r} may be a variable")
        if not known:
            if slash or (len(word) <= 2 and word.lower() not in SENTENCE_WORDS):
                raise Unreadable(f"{word!r} may be a variable")
            return False
        if not slash and count == LONGEST_UNIT:
            return False
        if slash or word == "per":
            self._rated = True
        elif measure := MEASURES.get(word):
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
