"""``magicore grade``: answers or whole responses against gold, and what was read where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt

SHOWN = 40


def grade(
    path: Annotated[Path, typer.Argument(help="Rows of {answer (gold), kind?, prediction | response, ...}.")],
    kind: opt.Kind = None,
    field: Annotated[str | None, typer.Option("--field", help="The field that holds the whole response.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write each row's grade to this JSONL file.")] = None,
    json: opt.Json = False,
    wrong: Annotated[bool, typer.Option("--wrong", help="Show only rows that are not right.")] = False,
) -> None:
    """Grade a file, and show for each row the answer, the words it was read from, and why there is none."""
    import sys
    from json import dumps

    from rich.table import Table

    from magicore.evaluate.accuracy import wilson
    from magicore.evaluate.grade import Grade, grade_file
    from magicore.report.tables import show
    from magicore.store.json_lines import write_json_lines

    def row(found: Grade) -> dict[str, object]:
        read = found.read
        return {
            "id": found.problem.id,
            "kind": found.problem.kind,
            "gold": found.problem.answer,
            "value": found.value,
            "correct": found.correct,
            "read": None if read is None else read.text,
            "span": None if read is None or read.span is None else list(read.span),
            "marker": None if read is None else read.marker,
            "certainty": None if read is None else read.certainty,
            "reason": None if read is None else read.reason,
        }

    rows = [row(found) for found in grade_file(path, kind=kind, field=field)]
    graded = [found for found in rows if found["correct"] is not None]
    right = sum(found["correct"] is True for found in graded)
    interval = wilson(right, len(graded)) if graded else None
    summary = {
        "n": len(rows),
        "graded": len(graded),
        "correct": right,
        "accuracy": right / len(graded) if graded else None,
        "accuracy_low": None if interval is None else interval.low,
        "accuracy_high": None if interval is None else interval.high,
        "without_answer": sum(found["value"] is None for found in rows),
    }
    if out is not None:
        write_json_lines(out, rows)
    if json:
        sys.stdout.write(dumps(summary, indent=2) + "\n")
        return
    shown = [found for found in rows if not wrong or found["correct"] is not True]
    table = Table(title=f"{right:,} of {len(graded):,} right; the first {min(SHOWN, len(shown))} rows")
    for name in ("id", "kind", "gold", "value", "right", "read from", "marker", "why none"):
        table.add_column(name, overflow="fold")
    for found in shown[:SHOWN]:
        cells = (found[name] for name in ("id", "kind", "gold", "value", "correct", "read", "marker", "reason"))
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    show(table)
