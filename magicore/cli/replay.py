"""``magicore replay``: run methods on recorded responses and count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    files: Annotated[list[Path], typer.Argument(help="Files of recorded responses.")],
    reading: Annotated[
        str, typer.Option("--reading", help="careful, or published: the papers' own parsers.")
    ] = "careful",
    rules: Annotated[
        str | None, typer.Option("--rules", help="mars or peer-review; told from the file's name if left out.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a file, on stdout.")] = False,
) -> None:
    """Run each file's method on what real models said, through the method's own code path, and count what is right.

    The method is told from the lines: independent responses, MARS reviews, debates, self-correction, peer review or
    self-reflection.
    """
    from json import dumps
    from typing import Any, cast

    from rich.console import Console

    from magicore.recordings import replay_run

    console = Console(highlight=False)
    for file in files:
        finished, counts = replay_run(file, reading=cast(Any, reading), rules=cast(Any, rules))
        n = len(finished.results)
        if json:
            typer.echo(
                dumps({"file": str(file), "method": finished.method.name, "n": n, "reading": reading, "counts": counts})
            )
            continue
        console.print(f"{file.name}: {finished.method.name} on {n} questions, {reading} reading", style="bold")
        for name, value in counts.items():
            console.print(f"  {name.replace('_', ' ')}: {_shown(value)}", markup=False)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
