"""Words that may stand beside a number in a solution: units, scales, and what is no part of a quantity."""

from __future__ import annotations

SHORT_UNITS = frozenset(
    "kg mg cm mm km mi ft yd lb lbs oz ml mL cl dl hr hrs min mins sec secs mph kph kmh th st nd rd am pm gal qt pt "
    "pts KB MB GB TB kW kWh Hz MHz GHz USD EUR GBP cents cent".split()
)
"""Units of two letters and those that may be glued to a number; other short words may be variables."""

AFTER_SLASH = frozenset({"h", "s", "g", "m", "l", "L"})
"""Units of one letter, known as such only after a slash: km/h."""

MEASURES: dict[str, tuple[str, str]] = {
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
"""Units of measurement, as (dimension, unit): two of one dimension in an equation mean that it converts."""

SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
"""Words that multiply the number before them."""

SENTENCE_WORDS = frozenset(
    "a an and are as at be became because been being but by can could did do does during each every find for from "
    "gave get gets give gives giving got had has have having he hence her here his how however i if in into is it "
    "its just leaves make makes making means my need needs not now on only or our out pay pays plus she since so "
    "spend spends spent than that the their them then there therefore these they this those thus to until used "
    "was we were what when where which while who will with would you your answer equation step calculate compute "
    "solve simplify subtract add multiply divide substitute remainder modulo mod sin cos tan log ln exp sqrt gcd "
    "lcm max abs floor ceil".split()
)
"""Words that belong to the sentence and not to a quantity."""

LINKING_WORDS = frozenset({"per", "of", "a", "an", "each", "every"})
"""Words within a unit: dollars per box."""

LONGEST_UNIT = 3
"""The most words of a unit."""

OPERATIONS = frozenset({"squared", "cubed", "factorial", "choose", "halved", "doubled", "tripled"})
"""Words that change the number before them in ways that are not evaluated."""


def is_unit(word: str) -> bool:
    """Whether a word beside a number is a unit or a thing counted, and cannot be a variable."""
    return (len(word) > 2 and word.lower() not in SENTENCE_WORDS) or word in SHORT_UNITS
