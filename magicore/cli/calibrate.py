"""``magicore calibrate``: from a finished run to a file that routes questions one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def calibrate(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; by default DIR/calibration.json.")
    ] = None,
) -> None:
    """Make a calibration file from the first chains of a run with both reward models.

    --calibration FILE of `magicore run` and `magicore serve` then routes single questions by it.
    """
    from magicore.store.calibration import calibrate

    stats, path = calibrate(directory, out)
    Console(highlight=False, soft_wrap=True).print(
        f"mu = {stats.mu:.4f}, sigma = {stats.sigma:.4f} over {stats.n} chains, written to {path}", markup=False
    )
