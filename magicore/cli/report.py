"""``magicore report``: one HTML file about one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    directories: Annotated[
        list[Path], typer.Argument(help="Directories of runs; later ones are tested against the first.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("report.html"),
    csv: Annotated[Path | None, typer.Option("--csv", help="Also write the summary table to this CSV file.")] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap.")] = 0,
) -> None:
    """Write a report that needs no network: accuracy, cost, routing, refinement, calibration, and every case."""
    from rich.console import Console
    from rich.filesize import decimal

    from magicore.report.html import report_data, write_report

    data = report_data(directories, resamples=resamples, seed=seed)
    written = write_report(data, out, csv=csv)
    Console(soft_wrap=True, highlight=False, markup=False).print(f"{written} ({decimal(written.stat().st_size)})")
