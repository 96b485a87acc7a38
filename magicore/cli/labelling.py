"""Labelling a file of solutions, and what is said of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console

from magicore.cli.running import EXIT_INTERRUPTED
from magicore.datasets import load_problems
from magicore.store.solutions import read_solutions
from magicore.training.label_rules import read_worked
from magicore.training.label_steps import LABELS, label_steps
from magicore.training.labels import LabelSource


def label_file(
    source_file: Path,
    out: Path,
    settings: Mapping[str, Any],
    *,
    source: str,
    n: int,
    soft: bool,
    gold: str | None,
    data: str | None,
    config: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Label a file into ``out`` and print the counts."""
    problems = None if data is None else load_problems(data)
    found = label_steps(
        read_solutions(source_file, problems, kind=settings.get("kind")),
        source=cast(LabelSource, source),
        n=n,
        soft=soft,
        worked=None if gold is None else read_worked(gold),
        out=out,
        config=config,
        force=force,
        **settings,
    )
    summary = found.summary
    if as_json:
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    else:
        console = Console(highlight=False)
        console.print(
            f"{summary['labelled']:,} of {summary['steps']:,} steps of {summary['solutions']:,} solutions labelled, "
            f"{summary['above_half']:,} of them above one half"
        )
        for code, count in summary["unlabelled"].items():
            console.print(f"[yellow]{count:,} steps have no label: {code}[/]")
        console.print(f"written to {out / LABELS}")
    if found.interrupted:
        Console(stderr=True).print("interrupted; the same command with the same --out goes on from here")
        raise typer.Exit(EXIT_INTERRUPTED)
