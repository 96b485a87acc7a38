"""Numbers as canonical text: how an extracted number is written, stored and shown."""

from fractions import Fraction
from typing import Final

from magicore.answers.number import ParsedNumber

_LONGEST_DECIMAL: Final = 30


def canonical_number(number: ParsedNumber) -> str:
    """The value as text: a decimal where it ends, else a fraction; a percentage keeps its sign.

    >>> canonical_number(ParsedNumber(value=Fraction(33, 250), percent=True))
    '13.2%'
    """
    value = number.value * 100 if number.percent else number.value
    text = _decimal(value) or f"{value.numerator}/{value.denominator}"
    return f"{text}%" if number.percent else text


def _decimal(value: Fraction) -> str | None:
    """`value` as a terminating decimal, or None if it has none of reasonable length."""
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1 or places > _LONGEST_DECIMAL:
        return None
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, part = (digits[:-places], digits[-places:].rstrip("0")) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + (f".{part}" if part else "")
