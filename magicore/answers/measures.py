"""Units as dimensions and sizes, so that 1 km is 1000 m, 5 km is not 5 m, and an apple is no unit.

`units` knows how units are spelled; this module knows what they amount to. Counted nouns ("12 apples", "5 ways") are
descriptions, not units: they keep no two numbers apart.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from magicore.answers.units import CURRENCY, known_unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """What a unit amounts to.

    Attributes:
        dimension: Base units with their powers ("m", "m^2", "m s^-1", "$"); empty for a counted noun.
        size: How many base units one of it is.
    """

    dimension: str = ""
    size: Fraction = Fraction(1)


NO_MEASURE: Final = Measure()

_INCH: Final = Fraction(254, 10_000)
_POUND: Final = Fraction(45_359_237, 100_000_000)
_SIZES: Final[dict[str, tuple[str, Fraction]]] = {
    "mm": ("m", Fraction(1, 1000)), "cm": ("m", Fraction(1, 100)), "m": ("m", Fraction(1)),
    "km": ("m", Fraction(1000)), "in": ("m", _INCH), "ft": ("m", 12 * _INCH), "yd": ("m", 36 * _INCH),
    "mi": ("m", 63_360 * _INCH),
    "mg": ("kg", Fraction(1, 10**6)), "g": ("kg", Fraction(1, 1000)), "kg": ("kg", Fraction(1)), "lb": ("kg", _POUND),
    "oz": ("kg", _POUND / 16), "t": ("kg", Fraction(1000)),
    "s": ("s", Fraction(1)), "min": ("s", Fraction(60)), "h": ("s", Fraction(3600)), "d": ("s", Fraction(86_400)),
    "week": ("s", Fraction(604_800)), "month": ("month", Fraction(1)), "year": ("month", Fraction(12)),
    "°": ("°", Fraction(1)), "°c": ("°c", Fraction(1)), "°f": ("°f", Fraction(1)), "rad": ("rad", Fraction(1)),
    "¢": ("$", Fraction(1, 100)),
    "kb": ("byte", Fraction(10**3)), "mb": ("byte", Fraction(10**6)), "gb": ("byte", Fraction(10**9)),
    "w": ("w", Fraction(1)), "kw": ("w", Fraction(1000)), "kwh": ("j", Fraction(3_600_000)), "j": ("j", Fraction(1)),
}  # fmt: skip
_COMPOUND: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "km/h": (("km", 1), ("h", -1)), "mph": (("mi", 1), ("h", -1)), "m/s": (("m", 1), ("s", -1)),
    "sq ft": (("ft", 2),), "sq m": (("m", 2),), "cc": (("cm", 3),),
}  # fmt: skip
_VOLUMES: Final = {"ml": Fraction(1, 10**6), "l": Fraction(1, 1000), "gal": 231 * _INCH**3}
_LAND: Final = {"acre": Fraction(43_560) * (12 * _INCH) ** 2, "hectare": Fraction(10_000), "ha": Fraction(10_000)}
_POWER_WORDS: Final = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_ANSWER_WORDS: Final = frozenset(("unit", "units"))
_ATOM: Final = re.compile(r"([^\s^/]+?)\.?(?:\s*\^\s*\{?\s*(-?\d)\s*\}?)?(?=[\s/]|$)")
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_MAX_UNIT: Final = 60
_STEM: Final = 3


def measure(text: str) -> Measure | None:
    """What the unit `text` amounts to: a known unit, a counted noun (`NO_MEASURE`), or None if it is neither.

    >>> measure("km/h").dimension, measure("square inches").dimension, measure("apples")
    ('m s^-1', 'm^2', Measure(dimension='', size=Fraction(1, 1)))
    """
    body = re.sub(r"\s+", " ", text.strip(" .,;-"))
    if not body or len(body) > _MAX_UNIT:
        return None
    powers = _powers(body)
    if powers is None:
        return NO_MEASURE if _is_noun(body) else None
    size, dimensions = Fraction(1), dict[str, int]()
    for name, power in powers:
        for base, exponent, factor in _bases(name):
            dimensions[base] = dimensions.get(base, 0) + exponent * power
            size *= factor**power
    parts = [base if power == 1 else f"{base}^{power}" for base, power in sorted(dimensions.items()) if power]
    return Measure(dimension=" ".join(parts), size=size)


def is_known(word: str) -> bool:
    """Whether `word` alone names a measure or a currency."""
    return known_unit(word) is not None or _singular(word) in _LAND


def _is_noun(body: str) -> bool:
    words = re.sub(r"\^\s*\{?\s*[23]\s*\}?", " ", body).split()
    return all(_WORD.fullmatch(word.strip(".,()")) for word in words)


def _powers(body: str) -> list[tuple[str, int]] | None:
    """The known units in `body` with their powers, or None if any word of it is not one."""
    whole = known_unit(body)
    if whole:
        return [(whole, 1)]
    body = re.sub(r"\\cdot|·|⋅", " ", body)
    found: list[tuple[str, int]] = []
    sign, pending = 1, 1
    for piece in re.split(r"(\s*/\s*|\s+per\s+|\s+a\s+|\s+)", body.replace("^ ", "^").replace(" ^", "^")):
        separator = piece.strip()
        if separator in {"/", "per", "a"}:
            sign = -1
        elif separator:
            word = separator.rstrip(".").lower()
            if word in _POWER_WORDS:
                pending = _POWER_WORDS[word]
                if word in {"squared", "cubed"} and found:
                    found[-1] = (found[-1][0], found[-1][1] * pending)
                    pending = 1
                continue
            atom = _atom(separator)
            if atom is None:
                return None
            found.append((atom[0], atom[1] * sign * pending))
            pending = 1
    return found or None


def _atom(text: str) -> tuple[str, int] | None:
    match = _ATOM.fullmatch(text)
    if match is None:
        return None
    name = known_unit(match[1]) or known_unit(match[1] + ".")
    singular = _singular(match[1])
    name = name or (singular if singular in _LAND else None)
    return None if name is None else (name, int(match[2] or 1))


def _singular(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") and len(lower) > _STEM else lower


def _bases(name: str) -> list[tuple[str, int, Fraction]]:
    """Base unit, its power and the size, for each factor of a named unit."""
    if name in _VOLUMES:
        return [("m", 3, _VOLUMES[name])]
    if name in _LAND:
        return [("m", 2, _LAND[name])]
    if name in _COMPOUND:
        return [(_SIZES[part][0], power, _SIZES[part][1] ** power) for part, power in _COMPOUND[name]]
    if name in _SIZES:
        base, factor = _SIZES[name]
        return [(base, 1, factor)]
    return [(CURRENCY.get(name, name), 1, Fraction(1))]
