"""When two answers are equal.

The rule, for every kind: two answers are equal if their canonical keys are, or if one of two relaxations holds.

* A unit or currency on one side only is no difference: 5 equals 5 cm. Two units must agree: 5 km is not 5 m, and 1 km
  is 1000 m.
* A decimal of twelve or more significant digits equals whatever agrees with it in twelve: 0.333333333333 is 1/3, and
  1.4142135623730951 is the root of two. Shorter decimals are exact: 0.33 is not 1/3, and 0.99999 is not 1.
"""

import json
from fractions import Fraction
from typing import Any, Final

from magicore.answers import numeric
from magicore.answers.arithmetic import LONG_DECIMAL
from magicore.answers.canonical import Key, canonical_keys
from magicore.answers.extract import Options
from magicore.answers.kinds import Kind


def equivalent(a: str | None, b: str | None, kind: Kind, options: Options | None = None) -> bool:
    """Whether two answers are equal. Symmetric; a missing or blank answer equals nothing, not even another.

    Args:
        a: An answer.
        b: Another.
        kind: How both are read.
        options: For "choice": the options, as for `extract`.

    Raises:
        WorkerError: The answers need a worker process and none can be started.

    >>> equivalent("0.5", r"\\frac{1}{2}", "math"), equivalent("(1,2)", "(2,1)", "math")
    (True, False)
    """
    first, second = canonical_keys([a, b], kind, options)
    return first is not None and second is not None and same(first, second)


def same(first: Key, second: Key) -> bool:
    """Whether two keys are of equal answers."""
    if bool(first.unit) != bool(second.unit):
        written = first.bare if first.unit else second.bare
        other = second if first.unit else first
        return written is not None and _agree(written, other.value, first.approximate or second.approximate)
    return first.unit == second.unit and _agree(first.value, second.value, first.approximate or second.approximate)


def _agree(first: str, second: str, approximate: bool) -> bool:
    return first == second or (approximate and _close(json.loads(first), json.loads(second)))


def _close(first: Any, second: Any) -> bool:
    """Whether two values have one shape and all their numbers agree in `LONG_DECIMAL` digits."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(_close(a, b) for a, b in zip(first, second, strict=True))
    if first == second:
        return True
    if not (isinstance(first, str) and isinstance(second, str)):
        return False
    try:
        return close_numbers(numeric.decode(first), numeric.decode(second))
    except ValueError:  # names of types, infinities
        return False


_TEN: Final = 10


def close_numbers(first: numeric.Number, second: numeric.Number) -> bool:
    """Whether two numbers differ by less than one unit in the twelfth significant digit of the smaller."""
    smaller = min(abs(numeric.inexact(first)), abs(numeric.inexact(second)))
    if smaller == 0:
        return bool(first == second)
    context = numeric.context()
    place = int(context.floor(context.log10(smaller))) - LONG_DECIMAL + 1
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return abs(first - second) < Fraction(_TEN) ** place
    return bool(abs(numeric.inexact(first) - numeric.inexact(second)) < context.mpf(_TEN) ** place)
