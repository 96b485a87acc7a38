"""``magicore ablate``: a study over a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ablate(
    study: Annotated[str, typer.Argument(help="The study: easy-hard.")],
    directory: Annotated[Path, typer.Argument(help="The directory of a run.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Also write the table to this CSV file.")] = None,
) -> None:
    """Answer a question about a finished run; what is missing is drawn once and kept in its directory."""
    from rich.console import Console

    from magicore.ablations.registry import run_study

    run_study(study, directory, csv=csv, console=Console())
