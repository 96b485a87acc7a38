"""The studies by name, and how each is shown."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from magicore.errors import UnknownNameError


def _easy_hard(directory: Path, csv: Path | None, console: Console) -> None:
    from magicore.ablations.easy_hard import easy_hard
    from magicore.report.tables import confusion_table, method_csv, method_table

    found = easy_hard(directory)
    console.print(method_table(found.strategies, title="Easy and hard"))
    console.print(f"refining everything fixed {found.fixed} answers and broke {found.broken}", highlight=False)
    if found.confusion is not None:
        console.print(confusion_table({"route": found.confusion}, title="The router against the oracle"))
    if csv is not None:
        csv.write_text(method_csv(found.strategies), encoding="utf-8")


STUDIES: dict[str, Callable[[Path, Path | None, Console], None]] = {"easy-hard": _easy_hard}


def run_study(name: str, directory: Path, *, csv: Path | None, console: Console) -> None:
    """Run a study by name and print it.

    Raises:
        UnknownNameError: there is no such study.
    """
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"studies: {', '.join(STUDIES)}"
        raise UnknownNameError(f"there is no study {name!r}; {hint}")
    STUDIES[name](directory, csv, console)
