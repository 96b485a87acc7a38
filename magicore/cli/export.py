"""``magicore export``: everything in a run's store, as files that other tools read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What files are written."""

    jsonl = "jsonl"
    parquet = "parquet"


def export(
    directory: Annotated[Path, typer.Argument(help="The directory of a run.")],
    format: Annotated[Format, typer.Option("--format", help="jsonl or parquet.")] = Format.jsonl,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; DIR/export if left out.")] = None,
) -> None:
    """Write the store's completions and scores, and the run's results and chains where it has finished."""
    from rich.console import Console

    from magicore.store.export import export_run

    for path, rows in export_run(directory, out or directory / "export", format.value):
        Console(highlight=False).print(f"{path}: {rows:,} rows")
