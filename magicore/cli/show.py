"""``magicore show``: one problem's whole story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    directory: Annotated[Path, typer.Argument(help="The directory of a run.")],
    id: Annotated[str, typer.Option("--id", help="Which problem.")],
) -> None:
    """Print one problem's story: chains, step scores, verdict and why, reviews, refinements, votes, answer, cost."""
    from rich.console import Console

    from magicore.report.story import story
    from magicore.store.story import read_story

    console = Console(highlight=False)
    for part in story(read_story(directory, id)):
        console.print(part)
