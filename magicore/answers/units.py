"""Names of currencies and units, brought to one spelling each."""

import re
from typing import Final

_CURRENCIES: Final = {
    "$": "$ us$ usd dollar dollars buck bucks",
    "€": "€ eur euro euros",
    "£": "£ gbp pound-sterling quid",
    "¥": "¥ ￥ jpy cny rmb yen yuan 元 円",
    "₹": "₹ inr rs rs. rupee rupees",
    "₩": "₩ krw won",
    "₽": "₽ rub ruble rubles",
    "¢": "¢ cent cents",
    "฿": "฿ baht",
    "₫": "₫ vnd dong",
    "₺": "₺ lira",
    "₪": "₪ shekel shekels",
    "₴": "₴ hryvnia",
}
_MEASURES: Final = {
    "mm": "millimeter millimetre", "cm": "centimeter centimetre", "m": "meter metre", "km": "kilometer kilometre 公里",
    "in": "inch inches", "ft": "foot feet", "yd": "yard", "mi": "mile",
    "mg": "milligram", "g": "gram 克", "kg": "kilogram kilo 千克 公斤", "lb": "lbs pound", "oz": "ounce",
    "t": "ton tonne",
    "ml": "milliliter millilitre mL", "l": "L liter litre", "gal": "gallon",
    "s": "sec secs second 秒", "min": "mins minute 分钟", "h": "hr hrs hour 小时", "d": "day 天", "week": "wk wks",
    "month": "mo", "year": "yr yrs 年",
    "km/h": "kmh kph", "mph": "", "m/s": "",
    "w": "W watt", "kw": "kW kilowatt", "j": "J joule", "n": "N newton", "v": "V volt", "a": "A amp ampere",
    "hz": "Hz hertz", "pa": "Pa pascal", "mol": "mole", "k": "K kelvin",
    "°": "deg degree", "°c": "C degrees-celsius celsius", "°f": "F fahrenheit", "rad": "radian",
    "sq ft": "", "sq m": "", "cc": "", "kb": "KB", "mb": "MB", "gb": "GB", "kwh": "kWh",
}  # fmt: skip

CURRENCY_SIGNS: Final = "$€£¥￥₹₩₽¢฿₫₺₪₴"
CURRENCY: Final[dict[str, str]] = {word: sign for sign, words in _CURRENCIES.items() for word in words.split()}
"""Currency words and codes (lower case) to their sign."""


def _spellings() -> dict[str, str]:
    table: dict[str, str] = {}
    for short, words in _MEASURES.items():
        table[short] = short
        for word in words.split():
            table[word] = short
            if word.isascii() and len(word) > 2:
                table[word + "s"] = short
    return table


MEASURE: Final[dict[str, str]] = _spellings()
"""Spellings of common measures to their short name."""

_SUPERSCRIPTS: Final = str.maketrans({"²": "^2", "³": "^3"})
_UNIT_WORDS: Final = 6
_UNIT_CHARS: Final = re.compile(r"[^\W\d_]|[°'\"²³/·.\-() ^*%2-3]")
_BRACED_POWER: Final = re.compile(r"\^\s*\{?\s*([23])\s*\}?")
_POWER: Final = re.compile(r"\^[23]$")
_LONE_VARIABLE: Final = re.compile(r"[a-z]", re.IGNORECASE)
_NOT_UNITS: Final = frozenset("or and to plus minus times x than not is are was if but percent over divided by".split())


def canonical_unit(text: str) -> str | None:
    """One spelling for the unit or currency in `text`; None if `text` is no unit.

    Known measures and currencies get their short name; other nouns are lower-cased and singular.
    A lone letter that is no measure is a variable, not a unit.

    >>> canonical_unit("dollars"), canonical_unit("Miles"), canonical_unit("x")
    ('$', 'mi', None)
    """
    unit = _BRACED_POWER.sub(r"^\1", text.translate(_SUPERSCRIPTS)).strip(" .,;:")
    unit = re.sub(r"\s+", " ", unit)
    if unit.lower() in CURRENCY:
        return CURRENCY[unit.lower()]
    if not unit or not all(_UNIT_CHARS.match(char) for char in unit):
        return None
    words = unit.split()
    if len(words) > _UNIT_WORDS or _NOT_UNITS.intersection(unit.lower().replace("-", " ").split()):
        return None
    power = _POWER.search(unit)
    stem = unit[: power.start()].strip() if power else unit
    if re.search(r"[\d^*%]", stem) or stem.count("(") != stem.count(")"):
        return None
    known = known_unit(stem)
    if known is None and (not stem or _LONE_VARIABLE.fullmatch(stem) or stem[0] in ".-)/"):
        return None
    return (known or _singular(stem.lower())) + (power.group() if power else "")


def _singular(noun: str) -> str:
    for plural, singular in (("ies", "y"), ("xes", "x"), ("ses", "s"), ("ches", "ch"), ("shes", "sh")):
        if noun.endswith(plural) and len(noun) > len(plural) + 1:
            return noun[: -len(plural)] + singular
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") and len(noun) > 3 else noun


def known_unit(word: str) -> str | None:
    """The short name of a currency or common measure, or None."""
    lower = word.lower()
    return MEASURE.get(word) or CURRENCY.get(lower) or MEASURE.get(lower)
