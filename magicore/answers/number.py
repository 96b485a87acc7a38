"""Numbers as people write them, read to exact rationals.

`parse_number` reads a text that is one number and nothing else. It evaluates nothing: digits, separators,
fractions, powers of ten, words, units and currencies are recognised, everything else is not a number.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from magicore.answers.characters import plain, visible
from magicore.answers.latex import without_wrappers
from magicore.answers.numerals import SCALES, chinese_value, words_value
from magicore.answers.units import CURRENCY, CURRENCY_SIGNS, canonical_unit, known_unit

MAX_LENGTH: Final = 2000
"""Longer texts are not read as one number."""
MAX_DIGITS: Final = 1000
"""Numbers with more digits, written out or by exponent, are not read."""


@dataclass(frozen=True, kw_only=True)
class ParsedNumber:
    """One number with what was written around it.

    Attributes:
        value: The exact value. A percentage is its hundredth: "50%" is 1/2.
        percent: Whether a percent sign or word was written.
        unit: Unit or currency in one spelling ("$", "km", "apple"), or None.
        decimals: Digits after the point as written, before any percent sign (0 for an integer); None for forms that
            are exact whatever their digits: fractions, mixed numbers, repeating decimals, words, powers of ten, times.
    """

    value: Fraction
    percent: bool = False
    unit: str | None = None
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Magnitude:
    value: Fraction
    decimals: int | None
    end: int


def parse_number(text: str) -> ParsedNumber | None:
    """Reads `text` as one number, or gives None.

    Accepts signs (also U+2212), thousands separators (1,234 and 1 234 and 1'234, Indian 12,34,567, European
    1.234,56), digits of any script, fractions, mixed numbers, vulgar fractions, percentages, scientific notation,
    repeating decimals, clock times (2:30 is 5/2), scale words, English and Chinese number words, currencies and units,
    with LaTeX or Markdown around them, and a leading "x =". A lone "1.234" is a decimal and a lone "1,234" is grouped.
    Ranges ("3-5"), sums, powers other than of ten, and numbers past `MAX_DIGITS` give None.

    >>> parse_number(r"\\$1,250.50")
    ParsedNumber(value=Fraction(2501, 2), percent=False, unit='$', decimals=2)
    """
    if len(text) > MAX_LENGTH:
        return None
    body = _NAME_BEFORE.sub("", without_wrappers(plain(visible(text))), count=1)
    body = _ABOUT.sub("", body, count=1).strip()
    if not body:
        return None
    spelled = words_value(body)
    if spelled is not None:
        return ParsedNumber(value=spelled)
    return _signed(body) or _duration(body) or _spelled_with_unit(body)


_NAME_BEFORE: Final = re.compile(r"^(?:[A-Za-z][A-Za-z _]{0,40}|\\[a-z]+|[A-Za-z]\([A-Za-z0-9]\)) ?= ?(?=[^=]+$)")
_ABOUT: Final = re.compile(r"^(?:~|≈|\\approx|about|approximately|approx\.?|around|roughly|exactly)\s*", re.IGNORECASE)
_MONEY: Final = rf"(?:US\$|[{re.escape(CURRENCY_SIGNS)}]|\b(?:USD|EUR|GBP|INR|JPY|CNY|RMB|Rs\.?)(?=[\s\d]))"
_PREFIX: Final = re.compile(rf"([-+–—]?)\s*({_MONEY})?\s*([-+–—]?)\s*")
_GROUPED: Final = r"\d+(?:[ ,.'_]\d+)*"
DIGITS: Final = rf"(?:{_GROUPED}|\.\d+)"
"""A run of digits with separators between them; `plain_decimal` says what it means, if anything."""
_DIGITS: Final = re.compile(DIGITS)
_FRACTION: Final = re.compile(
    rf"\\frac\s*(?:\{{([^{{}}]*)\}}|(\d))\s*(?:\{{([^{{}}]*)\}}|(\d))|({DIGITS})\s?/\s?({DIGITS})"
)
_MIXED_GAP: Final = re.compile(r"\s*(?=\\frac)|\s+(?:and\s+)?(?=\d+\s?/\s?\d)")
_EXPONENT: Final = re.compile(
    r"[eE]([+-]?\d+)(?![\w.])|\s*(?:\\times|\\cdot|[x×*·])\s*10\s*(?:\^|\*\*)\s*\{?\s*([+-]?\s?\d+)\s*\}?"
)
_POWER_OF_TEN: Final = re.compile(r"10\s*(?:\^|\*\*)\s*(?:\{\s*([+-]?\s?\d+)\s*\}|([+-]?\d+))")
_REPEATING: Final = re.compile(
    r"(\d*)\.(\d*)(?:\\(?:overline|bar|dot)\s*(?:\{(\d+)\}|(\d))|\((\d+)\)|((?:\d[\u0304\u0305\u0307])+))"
)
_CLOCK: Final = re.compile(r"(\d{1,2}):([0-5]\d)(?::[0-5]\d)?(?!\d)")
_SCALE: Final = re.compile(rf"\s*({'|'.join(SCALES)})s?\b", re.IGNORECASE)
_MONEY_SCALE: Final = re.compile(r"([kKmMbB])\b")
_PERCENT: Final = re.compile(r"\s*(?:%|(?:percent(?:age)?|per cent|pct)\b(?: points?\b)?)", re.IGNORECASE)
_MONEY_SCALES: Final = {"k": 10**3, "m": 10**6, "b": 10**9}


def _signed(body: str) -> ParsedNumber | None:
    """Sign, currency, magnitude, scale, percent, unit: in this order and to the end of `body`."""
    prefix = _PREFIX.match(body)
    if prefix is None or (prefix[1] and prefix[3]):  # pragma: no cover - the prefix may be empty, so it matches
        return None
    money = CURRENCY.get((prefix[2] or "").lower())
    magnitude = _magnitude(body, prefix.end())
    if magnitude is None:
        return None
    value, decimals, end = magnitude.value, magnitude.decimals, magnitude.end
    scale = _SCALE.match(body, end)
    short = _MONEY_SCALE.match(body, end) if money else None
    if scale:
        value, decimals, end = value * SCALES[scale[1].lower()], None, scale.end()
    elif short:
        value, decimals, end = value * _MONEY_SCALES[short[1].lower()], None, short.end()
    percent = _PERCENT.match(body, end)
    if percent:
        value, end = value / 100, percent.end()
    negative = (prefix[1] or prefix[3]) not in {"", "+"}
    value = -value if negative else value
    rest = body[end:]
    if not rest.strip(" ."):
        return ParsedNumber(value=value, percent=bool(percent), unit=money, decimals=decimals)
    unit = _unit_after(rest, money)
    return None if unit is None else ParsedNumber(value=value, percent=bool(percent), unit=unit, decimals=decimals)


def _unit_after(rest: str, money: str | None) -> str | None:
    """The unit written after a number; letters stuck to the digits must name a known one."""
    unit = canonical_unit(rest.lstrip("-")) if not rest.startswith((" -", "--")) else None
    if unit is None:
        return None
    first = rest.strip().split()[0]
    glued = rest[0].isalpha() and rest[0].isascii()
    if glued and known_unit(re.split(r"[\^²³/]", first)[0].rstrip(".,")) is None:
        return None
    if money and unit in CURRENCY.values():
        return unit if unit == money else None
    return money or unit


def _magnitude(body: str, start: int) -> _Magnitude | None:
    for read in (_read_repeating, _read_clock, _read_power_of_ten, _read_mixed, _read_fraction, _read_decimal):
        magnitude = read(body, start)
        if magnitude is not None:
            return magnitude
    return _read_chinese(body, start)


def _read_repeating(body: str, start: int) -> _Magnitude | None:
    match = _REPEATING.match(body, start)
    if match is None or match.end() - match.start() > MAX_DIGITS:
        return None
    repeated = next(part for part in match.groups()[2:] if part)
    repeated = "".join(char for char in repeated if char.isdigit())
    whole, once = match[1] or "0", match[2]
    nines = Fraction(int(repeated), 10 ** len(repeated) - 1) / 10 ** len(once)
    return _Magnitude(value=Fraction(f"{whole}.{once or '0'}") + nines, decimals=None, end=match.end())


def _read_clock(body: str, start: int) -> _Magnitude | None:
    match = _CLOCK.match(body, start)
    if match is None:
        return None
    return _Magnitude(value=int(match[1]) + Fraction(int(match[2]), 60), decimals=None, end=match.end())


def _read_power_of_ten(body: str, start: int) -> _Magnitude | None:
    match = _POWER_OF_TEN.match(body, start)
    power = _power_of_ten(match[1] or match[2]) if match else None
    return _Magnitude(value=power, decimals=None, end=match.end()) if match and power else None


def _read_mixed(body: str, start: int) -> _Magnitude | None:
    digits = _DIGITS.match(body, start)
    if digits is None:
        return None
    whole_text, whole_end = digits.group(), digits.end()
    gap = _MIXED_GAP.match(body, whole_end)
    if gap is None and " " in whole_text and re.match(r"\s?/", body[whole_end:]):
        whole_end = start + whole_text.rindex(" ")
        whole_text = body[start:whole_end]
        gap = _MIXED_GAP.match(body, whole_end)
    whole = plain_decimal(whole_text)
    fraction = _read_fraction(body, gap.end()) if gap else None
    if whole is None or fraction is None or whole.denominator != 1 or not 0 <= fraction.value < 1:
        return None
    return _Magnitude(value=whole + fraction.value, decimals=None, end=fraction.end)


def _read_fraction(body: str, start: int) -> _Magnitude | None:
    match = _FRACTION.match(body, start)
    if match is None:
        return None
    over, under = match[1] or match[2] or match[5] or "", match[3] or match[4] or match[6] or ""
    top, bottom = _fraction_part(over), _fraction_part(under)
    if top is None or not bottom:
        return None
    return _Magnitude(value=top / bottom, decimals=None, end=match.end())


def _fraction_part(text: str) -> Fraction | None:
    """A numerator or denominator: a decimal, signed or in scientific notation, no unit."""
    sign = -1 if text.strip().startswith("-") else 1
    body = text.strip().lstrip("+-").strip()
    decimal = _read_decimal(body, 0)
    return sign * decimal.value if decimal and decimal.end == len(body) else None


def _read_decimal(body: str, start: int) -> _Magnitude | None:
    match = _DIGITS.match(body, start)
    if match is None:
        return None
    value = plain_decimal(match.group())
    if value is None:
        return None
    end = match.end()
    exponent = _EXPONENT.match(body, end)
    if exponent:
        power = _power_of_ten(exponent[1] or exponent[2])
        return None if power is None else _Magnitude(value=value * power, decimals=None, end=exponent.end())
    if body.startswith(".", end) and not body.startswith("..", end):
        end += 1
    elif body.startswith("...", end):
        end += 3
    return _Magnitude(value=value, decimals=_places(match.group()), end=end)


def _read_chinese(body: str, start: int) -> _Magnitude | None:
    end = start
    while end < len(body) and chinese_value(body[start : end + 1]) is not None:
        end += 1
    value = chinese_value(body[start:end])
    return None if value is None else _Magnitude(value=Fraction(value), decimals=None, end=end)


def _power_of_ten(exponent: str) -> Fraction | None:
    digits = exponent.replace(" ", "")
    if len(digits) > len(str(MAX_DIGITS)) + 1 or abs(int(digits)) > MAX_DIGITS:
        return None
    return Fraction(10) ** int(digits)


def plain_decimal(digits: str) -> Fraction | None:
    """The value of digits with separators, or None where no reading of the separators fits.

    A separator is a decimal mark or groups digits: by threes, or the Indian way (two, and three at the end). A mark
    that could be either is grouping if it is a comma ("1,234") and decimal if it is a point ("1.234").
    """
    if len(digits) > MAX_DIGITS:
        return None
    split = _decimal_mark(digits)
    whole, part = (digits[:split], digits[split + 1 :]) if split is not None else (digits, "")
    if re.search(r"\D", part) or not _grouped(whole):
        return None
    return Fraction(f"{re.sub(r'[^0-9]', '', whole) or '0'}.{part or '0'}")


def _places(digits: str) -> int:
    split = _decimal_mark(digits)
    return 0 if split is None else len(digits) - split - 1


def _decimal_mark(digits: str) -> int | None:
    """Where the decimal mark stands in digits with separators; None if there is none."""
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and point >= 0:
        return max(comma, point)
    if point >= 0:
        return point if digits.count(".") == 1 else None
    if comma < 0 or digits.count(",") > 1:
        return None
    groups = re.fullmatch(r"[1-9]\d{0,2}(?:[ '_]\d{3})*,\d{3}", digits)
    return None if groups else comma


_GROUPS: Final = re.compile(r"\d*|\d{1,3}(?P<mark>[ ,.'_])\d{3}(?:(?P=mark)\d{3})*|\d{1,2}(?:,\d{2})+,\d{3}")


def _grouped(whole: str) -> bool:
    return _GROUPS.fullmatch(whole) is not None


_DURATION: Final = re.compile(rf"({DIGITS})\s*([a-z]+),?\s+(?:and\s+)?({DIGITS})\s*([a-z]+)", re.IGNORECASE)
_SIZES: Final = {"week": 604800, "d": 86400, "h": 3600, "min": 60, "s": 1}
_LENGTHS: Final = {"yd": 36, "ft": 12, "in": 1}
_SYSTEMS: Final = (_SIZES, _LENGTHS, {"lb": 16, "oz": 1}, {"$": 100, "¢": 1})


def _duration(body: str) -> ParsedNumber | None:
    """Two measures of one kind, the second smaller: "2 hours and 30 minutes" is 5/2 h."""
    match = _DURATION.fullmatch(body)
    if match is None:
        return None
    large, small = plain_decimal(match[1]), plain_decimal(match[3])
    units = (known_unit(match[2]) or "", known_unit(match[4]) or "")
    sizes = next((system for system in _SYSTEMS if units[0] in system and units[1] in system), None)
    if large is None or small is None or sizes is None or sizes[units[0]] <= sizes[units[1]]:
        return None
    return ParsedNumber(value=large + small * Fraction(sizes[units[1]], sizes[units[0]]), unit=units[0])


def _spelled_with_unit(body: str) -> ParsedNumber | None:
    """Number words and a unit: "twelve apples", "two million dollars"."""
    words = body.split()
    for cut in range(min(len(words) - 1, 6), 0, -1):
        value = words_value(" ".join(words[:cut]))
        if value is not None and words[:cut] not in (["a"], ["an"]):
            rest = " ".join(words[cut:])
            if _PERCENT.fullmatch(rest):
                return ParsedNumber(value=value / 100, percent=True)
            unit = canonical_unit(rest)
            return None if unit is None else ParsedNumber(value=value, unit=unit)
    return None
