"""Bounded arithmetic on real and complex numbers, exact while it is rational and small enough.

A number is a `Fraction` while it is rational and short, else an mpmath real or complex of `WORK_DIGITS` digits. Every
operation costs a bounded amount of time and memory: what would be larger than `MAX_EXACT_BITS` becomes inexact, what
would overflow `MAX_LOG2` or lose an operand below the working precision is refused with `Unrepresentable`, so that
a refusal, never a wrong equality, is the worst that model text can cause.
"""

import hashlib
import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, TypeAlias

import mpmath
from mpmath.libmp import from_man_exp, round_nearest

Number: TypeAlias = Any
"""A `Fraction`, or an mpmath `mpf` or `mpc` of this module's context (mpmath publishes no types)."""

WORK_DIGITS: Final = 160
NEGLIGIBLE_DIGITS: Final = 110
"""An inexact sum this many digits below its terms is zero."""
KEY_BITS: Final = 150
"""Significant bits (45 digits) by which two inexact numbers are told apart."""
KEY_DIGITS: Final = 44
"""A term so many digits below another could not be told from nothing in their inexact sum, which is refused."""
MAX_EXACT_BITS: Final = 1 << 17
MAX_LOG2: Final = 1 << 40
MAX_ANGLE_BITS: Final = 2000
MAX_EXACT_FACTORIAL: Final = 6000
MAX_EXACT_BINOMIAL: Final = 60_000
SNAP_DENOMINATOR: Final = 10**6
SNAP_DIGITS: Final = 100
MAX_WRITTEN_BITS: Final = 2048
"""Longer exact numbers are encoded by a digest."""


class Unrepresentable(ValueError):
    """The value is undefined, or too large, too small or too finely balanced to be computed within bounds."""


_local = threading.local()


def context() -> Any:
    """This thread's mpmath context; mpmath's global one is neither read nor changed."""
    ctx = getattr(_local, "context", None)
    if ctx is None:
        ctx = mpmath.MPContext()
        ctx.dps = WORK_DIGITS
        _local.context = ctx
        _local.negligible = ctx.mpf(10) ** -NEGLIGIBLE_DIGITS
        _local.indistinct = ctx.mpf(10) ** -KEY_DIGITS
    return ctx


def inexact(value: Number) -> Any:
    """`value` as an mpmath number."""
    if isinstance(value, Fraction):
        return context().mpf(value.numerator) / value.denominator
    return value


def is_complex(value: Number) -> bool:
    """Whether `value` has an imaginary part."""
    return isinstance(value, context().mpc)


def bits(value: Fraction) -> int:
    """The bits that numerator and denominator take."""
    return value.numerator.bit_length() + value.denominator.bit_length()


def _checked(value: Any) -> Any:
    """An mpmath result, refused if it is not finite or out of range; real if its imaginary part is negligible."""
    ctx = context()
    if isinstance(value, ctx.mpc):
        real, imag = _checked(value.real), _checked(value.imag)
        if imag == 0 or abs(imag) < _local.negligible * abs(real):
            return real
        return ctx.mpc(0, imag) if abs(real) < _local.negligible * abs(imag) else value
    if not ctx.isfinite(value):
        raise Unrepresentable("not a finite number")
    if value != 0 and abs(ctx.mag(value)) > MAX_LOG2:
        raise Unrepresentable("too large or too small a number")
    return value


def add(left: Number, right: Number) -> Number:
    """The sum; exact zero if the terms cancel, refused if one vanishes beside the other."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        if bits(left) + bits(right) <= MAX_EXACT_BITS:
            return left + right
    elif left == 0 or right == 0:
        return right if left == 0 else left
    a, b = inexact(left), inexact(right)
    total = a + b
    larger, smaller = max(abs(a), abs(b)), min(abs(a), abs(b))
    if smaller != 0 and smaller < _local.indistinct * larger:
        raise Unrepresentable("a term is too small beside another")
    if abs(total) < _local.negligible * larger:
        return Fraction(0)
    return _checked(total)


def negate(value: Number) -> Number:
    """The opposite."""
    return -value


def multiply(left: Number, right: Number) -> Number:
    """The product."""
    if isinstance(left, Fraction) and isinstance(right, Fraction) and bits(left) + bits(right) <= MAX_EXACT_BITS:
        return left * right
    if left == 0 or right == 0:
        return Fraction(0)
    return _checked(inexact(left) * inexact(right))


def divide(left: Number, right: Number) -> Number:
    """The quotient; division by zero is refused."""
    right = snapped(right)
    if right == 0:
        raise Unrepresentable("division by zero")
    if isinstance(right, Fraction):
        return multiply(left, 1 / right)
    return _checked(inexact(left) / right)


def power(base: Number, exponent: Number) -> Number:
    """`base ** exponent`: real roots of negative numbers where the denominator is odd, else the principal value."""
    exponent, base = snapped(exponent), snapped(base)
    if isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            return _integer_power(base, exponent.numerator)
        if not is_complex(base) and base < 0 and exponent.denominator % 2:
            size = power(-base, exponent)
            return negate(size) if exponent.numerator % 2 else size
    if base == 0:
        if not is_complex(exponent) and exponent > 0:
            return Fraction(0)
        raise Unrepresentable("zero to a power that is not positive")
    ctx = context()
    logarithm = ctx.log(inexact(base))
    growth = inexact(exponent) * logarithm
    _bounded(growth)
    return _checked(ctx.exp(growth))


def _integer_power(base: Number, exponent: int) -> Number:
    if base == 0 and exponent <= 0:
        raise Unrepresentable("zero to a power that is not positive")
    if isinstance(base, Fraction) and (base in {0, 1, -1} or bits(base) * abs(exponent) <= MAX_EXACT_BITS):
        return base ** (exponent if abs(base) != 1 else exponent % 2)
    if exponent.bit_length() > MAX_LOG2.bit_length():
        raise Unrepresentable("too large an exponent")
    value = inexact(base)
    _bounded(context().log(abs(value)) * exponent)
    return _checked(value**exponent)


def _bounded(exponent: Any) -> None:
    """Refuses to exponentiate past `MAX_LOG2`, before it is tried."""
    if abs(exponent) > MAX_LOG2:
        raise Unrepresentable("too large or too small a number")


def factorial(value: Number) -> Number:
    """`value!`, by the gamma function where it is no small integer."""
    value = snapped(value)
    if isinstance(value, Fraction) and value.denominator == 1:
        if value < 0:
            raise Unrepresentable("factorial of a negative integer")
        if value <= MAX_EXACT_FACTORIAL:
            return Fraction(math.factorial(value.numerator))
    return gamma(add(value, Fraction(1)))


def gamma(value: Number) -> Number:
    """Euler's gamma function."""
    argument = inexact(value)
    if abs(argument) > MAX_LOG2 // 64:
        raise Unrepresentable("too large a factorial")
    return _function(lambda ctx: ctx.gamma(argument))


def binomial(upper: Number, lower: Number) -> Number:
    """The binomial coefficient."""
    upper, lower = snapped(upper), snapped(lower)
    exact = all(isinstance(part, Fraction) and part.denominator == 1 for part in (upper, lower))
    if exact and 0 <= upper <= MAX_EXACT_BINOMIAL:
        return Fraction(math.comb(upper.numerator, lower.numerator) if 0 <= lower <= upper else 0)
    return divide(factorial(upper), multiply(factorial(lower), factorial(add(upper, negate(lower)))))


def _function(call: Callable[[Any], Any]) -> Number:
    try:
        return _checked(call(context()))
    except (ValueError, ZeroDivisionError, OverflowError, ArithmeticError) as error:
        raise Unrepresentable(str(error) or "undefined") from None


def absolute(value: Number) -> Number:
    """The absolute value."""
    return abs(value)


def floor(value: Number) -> Number:
    """The largest integer not above a real value."""
    value = snapped(value)
    if is_complex(value):
        raise Unrepresentable("floor of a complex number")
    if isinstance(value, Fraction):
        return Fraction(math.floor(value))
    if abs(context().mag(value)) > MAX_ANGLE_BITS:
        raise Unrepresentable("too large a number to round")
    return Fraction(int(context().floor(value)))


def ceiling(value: Number) -> Number:
    """The smallest integer not below a real value."""
    return negate(floor(negate(value)))


def logarithm(value: Number, base: Number | None = None) -> Number:
    """The natural logarithm, or the one to `base`."""
    value = snapped(value)
    if value == 0:
        raise Unrepresentable("logarithm of zero")
    natural = _function(lambda ctx: ctx.log(inexact(value)))
    return natural if base is None else divide(natural, logarithm(base))


_UNARY: Final = (
    "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "asec", "acsc",
    "sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh",
)  # fmt: skip
_LONG_NAMES: Final = {"arc" + name[1:]: name for name in _UNARY if name.startswith("a")}
_ARC_HYPERBOLIC: Final = {"ar" + name[1:]: name for name in _UNARY if name.startswith("a") and name.endswith("h")}
UNARY_FUNCTIONS: Final[dict[str, str]] = {name: name for name in _UNARY} | _LONG_NAMES | _ARC_HYPERBOLIC
"""Names of functions of one argument, as written, to mpmath's."""


def apply(name: str, argument: Number) -> Number:
    """The function `name` of `UNARY_FUNCTIONS` at `argument`, angles in radians."""
    value = inexact(argument)
    if abs(context().mag(value) if value != 0 else 0) > MAX_ANGLE_BITS:
        raise Unrepresentable("too large an argument")
    result = _function(lambda ctx: getattr(ctx, UNARY_FUNCTIONS[name])(value))
    ctx = context()
    return Fraction(0) if not is_complex(result) and abs(result) < ctx.mpf(10) ** -NEGLIGIBLE_DIGITS else result


def exponential(value: Number) -> Number:
    """e to the power of `value`."""
    argument = inexact(value)
    _bounded(argument)
    return _function(lambda ctx: ctx.exp(argument))


def constant(name: str) -> Number:
    """The number called `name`: "pi", "e" or "i"."""
    ctx = context()
    if name == "i":
        return ctx.mpc(0, 1)
    return +ctx.pi if name == "pi" else +ctx.e


def snapped(value: Number) -> Number:
    """`value`, or the short rational it equals to `SNAP_DIGITS` digits."""
    if isinstance(value, Fraction):
        return value
    ctx = context()
    if isinstance(value, ctx.mpc):
        return snapped(value.real) if value.imag == 0 else value
    if value == 0:
        return Fraction(0)
    if abs(ctx.mag(value)) > KEY_BITS:
        return value
    near = _nearest_short(value)
    return near if abs(inexact(near) - value) <= abs(value) * ctx.mpf(10) ** -SNAP_DIGITS else value


def _nearest_short(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    exact = Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)
    return (-exact if sign else exact).limit_denominator(SNAP_DENOMINATOR)


def encode(value: Number) -> str | list[str]:
    """`value` as text that is equal for equal numbers: "3/4", "b:MANTISSApEXPONENT", or ["complex", re, im]."""
    value = snapped(value)
    if is_complex(value):
        return ["complex", *(str(encode(part)) for part in (value.real, value.imag))]
    return _encode_exact(value) if isinstance(value, Fraction) else _encode_inexact(value)


def encode_rounded(value: Number) -> str | list[str]:
    """Like `encode`, and the same whether the value was computed exactly or not: rationals are rounded as well."""
    value = inexact(value)
    if is_complex(value):
        return ["complex", *(_encode_inexact(part) for part in (value.real, value.imag))]
    return _encode_inexact(value)


def _encode_inexact(value: Any) -> str:
    if value == 0:
        return "0"
    sign, mantissa, exponent, _ = value._mpf_
    _, mantissa, exponent, _ = from_man_exp(mantissa, exponent, KEY_BITS, round_nearest)
    return f"b:{'-' if sign else ''}{mantissa:x}p{exponent}"


def _encode_exact(value: Fraction) -> str:
    if bits(value) <= MAX_WRITTEN_BITS:
        return str(value)
    digest = hashlib.sha256(f"{value.numerator:x}/{value.denominator:x}".encode()).hexdigest()
    return f"#{encode(inexact(value))}:{digest}"


def decode(text: str) -> Number:
    """The real number that `encode` wrote, to `KEY_BITS` bits if it was inexact or long."""
    if text.startswith("#"):
        text = text[1:].rpartition(":")[0]
    if text.startswith("b:"):
        mantissa, _, exponent = text[2:].partition("p")
        return context().mpf((int(mantissa, 16), int(exponent)))
    return Fraction(text)


def order(value: Number) -> Any:
    """A value to sort and compare real numbers by."""
    return inexact(value)
