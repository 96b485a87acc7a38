"""A study in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from magicore.ablations.study import Study, StudyTable
from magicore.report.tables import as_text

_ABSENT = "-"
_MOST_ROWS = 60
_SHARES = frozenset(
    {"accuracy", "coverage", "selection", "lost_in_choosing", "never_right", "own"}
    | {"precision", "recall", "f1", "hard_rate", "share", "expected"}
)
_TITLES = {"p_value": "p", "p_adjusted": "p (Holm)", "wall_s": "time, s", "difference": "against baseline"}
_BOUNDS = ("_low", "_high")


def show_study(study: Study, console: Console) -> None:
    """Print every table of the study that has rows, and its remarks. A pipe or a file gets whole lines."""
    for table in study.tables:
        if any(table.brief is None or table.brief(row) for row in table.rows):
            made = study_table(table)
            if console.is_terminal:
                console.print(made)
            else:
                console.file.write(as_text(made, encoding=console.encoding) + "\n")
    for remark in study.remarks:
        console.print(remark, highlight=False, markup=False, soft_wrap=True)


def study_table(table: StudyTable) -> Table:
    """One table as the terminal shows it: shares in per cent, differences in points, each with its interval in
    brackets, and the brief rows only."""
    columns = [name for name in table.shown or tuple(table.rows[0]) if not name.endswith(_BOUNDS)]
    shown = Table(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in columns:
        text = any(isinstance(row.get(name), str) for row in table.rows)
        shown.add_column(
            Text(_TITLES.get(name, name.replace("_", " "))), justify="left" if text else "right", overflow="fold"
        )
    rows = [row for row in table.rows if table.brief is None or table.brief(row)]
    for row in rows[:_MOST_ROWS]:
        shown.add_row(*(Text(_cell(name, row)) for name in columns))
    if len(rows) > _MOST_ROWS:
        shown.caption = f"{len(rows) - _MOST_ROWS} more rows in {table.name}.csv"
    return shown


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value = row.get(name)
    if value is None:
        return _ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    low, high = (row.get(f"{name}{bound}") for bound in _BOUNDS)
    if name == "difference":
        return f"{100 * value:+.1f}" + (
            "" if low is None or high is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
        )
    if name in _SHARES:
        return f"{100 * value:.1f} %" + (
            "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
        )
    if name.startswith("p_"):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    if isinstance(value, int) or value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 1 else f"{value:,.1f}"
