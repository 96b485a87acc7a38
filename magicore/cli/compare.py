"""``magicore compare``: two runs over the same problems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    a: Annotated[Path, typer.Argument(help="The directory of the run that is the baseline.")],
    b: Annotated[Path, typer.Argument(help="The directory of the run that is compared with it.")],
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare two runs problem by problem: accuracies, their difference and its interval, what was fixed and broken."""
    import sys
    from json import dumps

    from rich.console import Console
    from rich.table import Table

    from magicore.report.compare_runs import compare_runs, run_comparison_tables
    from magicore.report.story import plain
    from magicore.report.tables import show

    found = compare_runs(a, b, resamples=resamples, seed=seed)
    if json:
        sys.stdout.write(dumps(found.row(), indent=2) + "\n")
        return
    for part in run_comparison_tables(found):
        if isinstance(part, Table):
            show(part)
        else:
            Console(soft_wrap=True, highlight=False, markup=False).out(plain(part.plain), highlight=False)
