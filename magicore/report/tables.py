"""Tables for the terminal, as plain text and as CSV, from the same rows."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from difficulty.metrics import Confusion
from magicore.evaluate import Accuracy, Comparison, accuracy
from magicore.types import Result

_ABSENT: Final = "-"
_WIDEST: Final = 1000
_MINUTE: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One method of a comparison. ``tokens``, ``calls`` and ``wall_s`` are of the whole run, ``None`` where unknown."""

    method: str
    accuracy: Accuracy
    tokens: int | None = None
    calls: int | None = None
    wall_s: float | None = None


def method_table(rows: Iterable[MethodRow], *, title: str | None = None) -> Table:
    """Method, accuracy, its 95 % Wilson interval, tokens, calls and time."""
    table = _table(title, ["Method"], ["Accuracy", "95 % interval", "Right", "Tokens", "Calls", "Time"])
    for row in rows:
        table.add_row(
            Text(row.method),
            *_accuracy_cells(row.accuracy),
            _count(row.tokens),
            _count(row.calls),
            _duration(row.wall_s),
        )
    return table


def method_csv(rows: Iterable[MethodRow]) -> str:
    """The rows of :func:`method_table` as CSV, numbers unrounded and missing ones empty."""
    header = [
        "method",
        "n",
        "graded",
        "correct",
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "tokens",
        "calls",
        "wall_s",
    ]
    return _csv(
        header,
        (
            [
                row.method,
                row.accuracy.n,
                row.accuracy.graded,
                row.accuracy.correct,
                row.accuracy.value,
                *(row.accuracy.interval or (None, None)),
                row.tokens,
                row.calls,
                row.wall_s,
            ]
            for row in rows
        ),
    )


def verdict_table(results: Sequence[Result], *, title: str | None = None) -> Table:
    """Easy, hard and unrouted problems: how many, and how often they were answered right."""
    table = _table(title, ["Routed"], ["Problems", "Accuracy", "95 % interval", "Right"])
    for name, group in _by_verdict(results).items():
        table.add_row(Text(name), _count(len(group)), *_accuracy_cells(accuracy(group)))
    return table


def confusion_table(routers: Mapping[str, Confusion], *, title: str | None = None) -> Table:
    """Routers against the oracle; hard is the positive class."""
    columns = [
        "Routed hard",
        "Precision",
        "Recall",
        "F1",
        "Hard as hard",
        "Easy as hard",
        "Hard as easy",
        "Easy as easy",
    ]
    table = _table(title, ["Router"], columns)
    for name, found in routers.items():
        shares = (found.hard_rate, found.precision, found.recall, found.f1)
        counts = (found.hard_as_hard, found.easy_as_hard, found.hard_as_easy, found.easy_as_easy)
        table.add_row(Text(name), *map(_percent, shares), *map(_count, counts))
    return table


def confusion_csv(routers: Mapping[str, Confusion]) -> str:
    """The rows of :func:`confusion_table` as CSV, shares in [0, 1]."""
    counts = ["hard_as_hard", "easy_as_hard", "hard_as_easy", "easy_as_easy"]
    names = ["hard_rate", "precision", "recall", "f1", *counts]
    return _csv(
        ["router", *names], ([name, *(getattr(found, key) for key in names)] for name, found in routers.items())
    )


def comparison_table(comparisons: Mapping[str, Comparison], baseline: str, *, title: str | None = None) -> Table:
    """Methods against a baseline: difference in points with its bootstrap interval, and McNemar's exact p."""
    table = _table(
        title, ["Method"], [f"Against {escape(baseline)}", "Interval", "Gained", "Lost", "p", "p (Holm)", "Reading"]
    )
    for name, found in comparisons.items():
        table.add_row(
            Text(name),
            _points(found.difference),
            f"{_points(found.interval.low)} to {_points(found.interval.high)}",
            _count(found.only_method),
            _count(found.only_baseline),
            _p_value(found.p_value),
            _p_value(found.p_adjusted),
            found.verdict,
        )
    return table


def comparison_csv(comparisons: Mapping[str, Comparison], baseline: str) -> str:
    """The rows of :func:`comparison_table` as CSV, with the bootstrap's resamples and seed."""
    fields = ["n", "unpaired", "accuracy", "baseline", "difference"]
    counts = ["only_method", "only_baseline", "p_value", "p_adjusted", "confidence", "resamples", "seed"]
    return _csv(
        ["method", "against", *fields, "low", "high", *counts, "verdict"],
        (
            [
                name,
                baseline,
                *(getattr(found, key) for key in fields),
                *found.interval,
                *(getattr(found, key) for key in counts),
                found.verdict,
            ]
            for name, found in comparisons.items()
        ),
    )


def as_text(table: Table, *, encoding: str = "utf-8") -> str:
    """The table as plain text, as wide as it needs to be, without colour or control characters.

    Lines are drawn with what ``encoding`` has; a character that it lacks becomes a question mark.
    """
    data = io.BytesIO()
    sheet = io.TextIOWrapper(data, encoding=encoding, errors="replace", newline="\n")
    console = Console(file=sheet, color_system=None, force_terminal=False, width=_WIDEST)
    console.print(table, width=Measurement.get(console, console.options, table).maximum, crop=False)
    sheet.flush()
    return "".join(f"{line.rstrip()}\n" for line in data.getvalue().decode(encoding).split("\n")[:-1])


def show(table: Table, file: TextIO | None = None) -> None:
    """Print the table: fitted to a terminal, whole and plain into a file or a pipe."""
    target = sys.stdout if file is None else file
    if target.isatty():
        Console(file=target).print(table)
    else:
        target.write(as_text(table, encoding=target.encoding or "utf-8"))


def _table(title: str | None, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(
        title=None if title is None else Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False
    )
    for name in left:
        table.add_column(name, justify="left", overflow="fold")
    for name in right:
        table.add_column(name, justify="right", overflow="fold")
    return table


def _by_verdict(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {"easy": [], "hard": []}
    for result in results:
        name = "not routed" if result.verdict is None else "easy" if result.verdict.easy else "hard"
        groups.setdefault(name, []).append(result)
    return groups


def _accuracy_cells(found: Accuracy) -> tuple[str, str, str]:
    if found.interval is None:
        return _ABSENT, _ABSENT, _ABSENT
    low, high = found.interval
    return _percent(found.value), f"{100 * low:.1f} to {100 * high:.1f}", f"{found.correct:,} of {found.graded:,}"


def _percent(share: float | None) -> str:
    return _ABSENT if share is None else f"{100 * share:.1f} %"


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def _p_value(value: float | None) -> str:
    if value is None:
        return _ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _count(value: int | None) -> str:
    return _ABSENT if value is None else f"{value:,}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return _ABSENT
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), int(_MINUTE))
    hours, minutes = divmod(minutes, int(_MINUTE))
    return f"{hours}:{minutes:02d}:{rest:02d} h" if hours else f"{minutes}:{rest:02d} min"


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return sheet.getvalue()
