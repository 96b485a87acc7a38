"""Dates and clock times brought to ISO form, to be compared as text.

A date of three numbers is read as year-month-day if the year leads, with the day first if it is written with points or
if its first number can be no month, else with the month first (as in the United States). What is not said is left
out: "June 2014" is 2014-06, "5 June" is --06-05, "20:34:00" is 20:34.
"""

import calendar
import re
from typing import Final

from magicore.answers.characters import plain, visible
from magicore.answers.latex import without_wrappers

_MONTHS: Final = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_TOKENS: Final = "|".join([*_MONTHS, "sept", *(name[:3] for name in _MONTHS)])
_CENTURY: Final = 100
_PIVOT: Final = 69
"""Two-digit years from here on are of the twentieth century (POSIX)."""
_MAX_MONTH: Final = 12
_NOON: Final = 12

_NAMED_TIMES: Final = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
_WEEKDAY: Final = re.compile(
    r"^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b[.,]?\s+(?=.*\d)", re.IGNORECASE
)
_CLOCK: Final = re.compile(
    r"(?:^|[\sT])(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))?(?::(?P<second>[0-5]\d)(?:\.0+)?)?"
    r"\s*(?P<half>[ap])?\.?\s?(?(half)m\.?)(?:\s*Z)?$",
    re.IGNORECASE,
)
_NUMERIC: Final = re.compile(r"(\d{1,4})(?P<mark>[-/.])(\d{1,2})(?P=mark)(\d{1,4})")
_COMPACT: Final = re.compile(r"([12]\d{3})(\d{2})(\d{2})")
_MONTH_DAY: Final = re.compile(r"(\d{1,2})/(\d{1,2})")
_YEAR_MONTH: Final = re.compile(r"(\d{4})[-/](\d{1,2})")
_CHINESE: Final = re.compile(r"(\d{4})年(?:(\d{1,2})月(?:(\d{1,2})日?)?)?")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_NAMED: Final = (
    re.compile(rf"(?P<month>{_TOKENS})\.?\s+{_DAY}(?:,?\s+(?P<year>\d{{1,4}}))?", re.IGNORECASE),
    re.compile(
        rf"(?:the\s+)?{_DAY}(?:\s+of)?[\s-]+(?P<month>{_TOKENS})\.?(?:,?[\s-]+(?P<year>\d{{1,4}}))?", re.IGNORECASE
    ),
    re.compile(rf"(?P<month>{_TOKENS})\.?(?:\s+of)?,?\s+(?P<year>\d{{4}})", re.IGNORECASE),
)
_YEAR: Final = re.compile(r"(?:in\s+)?(\d{1,4})(?P<decade>s)?(?:\s*(?P<era>AD|CE|BCE?))?", re.IGNORECASE)


def iso(text: str) -> str | None:
    """The date, time or both that `text` is, None if it is neither.

    >>> iso("Jun 5, 2014"), iso("31.12.1999"), iso("8:34 p.m.")
    ('2014-06-05', '1999-12-31', '20:34')
    """
    body = _WEEKDAY.sub("", without_wrappers(plain(visible(text)))).strip(" .,")
    if body.lower() in _NAMED_TIMES:
        return _NAMED_TIMES[body.lower()]
    day = _date(body)
    if day is not None:
        return day
    clock = _CLOCK.search(body)
    if clock is None or not (clock["minute"] or clock["half"]):
        return None
    time = _time(clock)
    before = body[: clock.start()].strip(" ,T")
    if not before or time is None:
        return time
    day = _date(before.removesuffix(" at").strip(" ,"))
    return None if day is None else f"{day}T{time}"


def _time(match: re.Match[str]) -> str | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = (match["half"] or "").lower()
    if half:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if half == "p" else 0)
    if hour > 24 or (hour == 24 and minute):
        return None
    second = match["second"]
    return f"{hour % 24:02}:{minute:02}" + (f":{second}" if second and second != "00" else "")


def _date(body: str) -> str | None:
    numeric = _NUMERIC.fullmatch(body)
    if numeric:
        return _from_numbers(numeric[1], numeric[3], numeric[4], numeric["mark"])
    compact = _COMPACT.fullmatch(body)
    if compact:
        return _checked(*(int(part) for part in compact.groups()))
    month_day = _MONTH_DAY.fullmatch(body)
    if month_day:
        first, second = int(month_day[1]), int(month_day[2])
        return _checked(None, second, first) if first > _MAX_MONTH else _checked(None, first, second)
    year_month = _YEAR_MONTH.fullmatch(body)
    if year_month:
        return _checked(int(year_month[1]), int(year_month[2]), None)
    chinese = _CHINESE.fullmatch(body)
    if chinese:
        return _checked(*(int(part) if part else None for part in chinese.groups()))
    for form in _NAMED:
        named = form.fullmatch(body)
        if named:
            fields = named.groupdict()
            day = int(fields["day"]) if fields.get("day") else None
            return _checked(_year(fields["year"]) if fields["year"] else None, _month(fields["month"]), day)
    year = _YEAR.fullmatch(body)
    if year is None or (len(year[1]) < 3 and not year["era"]):
        return None
    before_christ = (year["era"] or "").upper().startswith("B")
    return ("-" if before_christ else "") + year[1].zfill(4) + ("s" if year["decade"] else "")


def _from_numbers(first: str, second: str, third: str, mark: str) -> str | None:
    if len(first) > 2:
        return _checked(int(first), int(second), int(third))
    day_first = int(first) > _MAX_MONTH or (mark == "." and int(second) <= _MAX_MONTH)
    day, month = (first, second) if day_first else (second, first)
    return _checked(_year(third), int(month), int(day))


def _year(digits: str) -> int:
    year = int(digits)
    if len(digits) > 2:
        return year
    return year + (1900 if year >= _PIVOT else 2000)


def _month(name: str) -> int:
    return next(number for month, number in _MONTHS.items() if month.startswith(name.lower()[:3]))


def _checked(year: int | None, month: int | None, day: int | None) -> str | None:
    """The parts in ISO form, None if there is no such day."""
    if month is not None and not 1 <= month <= _MAX_MONTH:
        return None
    if day is not None and month is not None and not 1 <= day <= calendar.monthrange(year or 2000, month)[1]:
        return None
    parts = [f"{year:04}" if year is not None else "-"]
    parts += [f"{part:02}" for part in (month, day) if part is not None]
    return "-".join(parts)
