"""Numbers written in words: English cardinals and fractions, and Chinese numerals."""

import re
from fractions import Fraction
from typing import Final

_UNITS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()
CARDINALS: Final[dict[str, int]] = {word: value for value, word in enumerate(_UNITS)} | {
    word: 20 + 10 * index for index, word in enumerate(_TENS)
}
SCALES: Final[dict[str, int]] = {
    "hundred": 10**2,
    "thousand": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "mn": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_PARTS: Final = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
_MAX_WORDS: Final = 24
_WORD: Final = re.compile(r"[a-z]+")

_CHINESE_DIGITS: Final = {char: value for value, char in enumerate("零一二三四五六七八九")} | {
    "\u3007": 0, "两": 2, "兩": 2, "壹": 1, "贰": 2, "叁": 3, "肆": 4, "伍": 5, "陆": 6, "柒": 7, "捌": 8, "玖": 9,
}  # fmt: skip
_CHINESE_PLACES: Final = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_CHINESE_SCALES: Final = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
CHINESE_NUMERAL: Final = "".join((*_CHINESE_DIGITS, *_CHINESE_PLACES, *_CHINESE_SCALES))
"""Every character that may stand in a Chinese numeral."""


def words_value(text: str) -> Fraction | None:
    """The value of an English number in words ("forty-two", "one and a half", "three quarters"), else None."""
    words = _WORD.findall(text.lower())
    if words and words[0] in {"minus", "negative"}:
        value = words_value(" ".join(words[1:]))
        return None if value is None else -value
    if not words or len(words) > _MAX_WORDS or re.search(r"[^a-zA-Z\s-]", text):
        return None
    if words[-1] in _PARTS:
        return _with_part(words[:-1], Fraction(1, _PARTS[words[-1]]))
    whole = _cardinal(words)
    return None if whole is None else Fraction(whole)


def _with_part(words: list[str], part: Fraction) -> Fraction | None:
    """`words` before a fraction word: nothing, "a", a count, or "WHOLE and COUNT"."""
    head: list[str] = []
    if "and" in words:
        split = len(words) - 1 - words[::-1].index("and")
        head, words = words[:split], words[split + 1 :]
    whole = _cardinal(head) if head else 0
    count = 1 if words in ([], ["a"], ["an"]) else _cardinal(words)
    return None if whole is None or count is None else whole + count * part


def _cardinal(words: list[str]) -> int | None:
    """An English cardinal of plain words, strictly in falling order ("two hundred and five thousand")."""
    if not words or words[0] == "and" or words[-1] == "and":
        return None
    total, group, step, seen = 0, 0, 10**15, False
    for word in words:
        if word in CARDINALS:
            value = CARDINALS[word]
            room = 10 if group % 100 >= 20 and group % 10 == 0 else 1
            if seen and not (group % 100 == 0 or (room == 10 and 0 < value < room)):
                return None
            group, seen = group + value, True
        elif word in {"a", "an"} and not seen and not total:
            group, seen = 1, True
        elif word == "hundred" and group < 100 and (group or not seen):
            group, seen = (group or 1) * 100, True
        elif word in SCALES and word != "hundred" and (group or not seen) and SCALES[word] < step:
            step = SCALES[word]
            total, group, seen = total + (group or 1) * step, 0, False
        elif word != "and":
            return None
    return total + group


def chinese_value(text: str) -> int | None:
    """The value of a Chinese numeral ("三", "一百二十三", "两万", "二〇二四"), else None."""
    if not text or len(text) > _MAX_WORDS or any(char not in CHINESE_NUMERAL for char in text):
        return None
    if all(char in _CHINESE_DIGITS for char in text):
        return int("".join(str(_CHINESE_DIGITS[char]) for char in text))
    total, section, digit = 0, 0, 0
    for char in text:
        if char in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[char]
        elif char in _CHINESE_PLACES:
            section, digit = section + (digit or 1) * _CHINESE_PLACES[char], 0
        else:
            total, section, digit = (total + section + digit or 1) * _CHINESE_SCALES[char], 0, 0
    return total + section + digit
