"""Scoring and refining a file of solutions, in batches, with progress and resumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import track

from magicore._sync import run_sync
from magicore.api import refine_batch, score_solutions
from magicore.cli.running import EXIT_INTERRUPTED, AskTerminal, show_run
from magicore.config import RunConfig, load_config
from magicore.datasets import load_problems
from magicore.runtime.budget import Halt
from magicore.runtime.directory import CHAINS, STORE
from magicore.runtime.open import open_engine
from magicore.store.files import ChainRecord, write_chain_records
from magicore.store.run_store import RunStore
from magicore.store.solutions import GivenSolution, read_solutions
from magicore.types import Problem, ScoredChain

BATCH = 64


def score_file(
    source: Path,
    out: Path,
    *,
    orm: str | None,
    prm: str | None,
    data: str | None,
    settings: Mapping[str, Any],
    config: Path | None,
) -> None:
    """Score a file into ``out/chains.jsonl``. Every batch is stored when it is done, so nothing is scored twice: the
    first Ctrl-C lets the batch in hand finish and ends the command, and the same command goes on from there.
    """
    named = {name: value for name, value in (("orm", orm), ("prm", prm)) if value is not None}
    chosen = load_config(config, {**settings, **named})
    solutions = read_solutions(source, _questions(data))
    out.mkdir(parents=True, exist_ok=True)
    store, halt = RunStore(out / STORE), Halt()
    try:
        scored = run_sync(_score_in_batches(solutions, chosen, store, halt), interrupted=halt.set)
    finally:
        store.close()
    if len(scored) < len(solutions):
        Console(stderr=True, highlight=False).print(
            f"interrupted; {len(scored):,} of {len(solutions):,} solutions are scored and kept, and the same command "
            "goes on from here"
        )
        raise typer.Exit(EXIT_INTERRUPTED)
    write_chain_records(out / CHAINS, [ChainRecord(scored=chain) for chain in scored])
    console = Console()
    missing = {"outcome": sum(c.o is None for c in scored) if chosen.orm else 0}
    missing["process"] = sum(c.s is None for c in scored) if chosen.prm else 0
    console.print(f"{len(scored)} solutions scored", highlight=False)
    for kind, count in missing.items():
        if count:
            console.print(f"[yellow]{count} have no {kind} score; `unscored` in {CHAINS} says why[/]", highlight=False)
    console.print(f"written to {out}", highlight=False)


async def _score_in_batches(
    solutions: Sequence[GivenSolution], config: RunConfig, store: RunStore, halt: Halt
) -> list[ScoredChain]:
    """The scores of all, or of those that were done when ``halt`` was set."""
    scored: list[ScoredChain] = []
    async with open_engine(config, store, generation=False) as engine:
        starts = range(0, len(solutions), BATCH)
        for start in track(starts, description="scored", console=Console(stderr=True), transient=True):
            if halt:
                break
            scored.extend(await score_solutions(engine, solutions[start : start + BATCH]))
    return scored


def refine_file(
    source: Path,
    out: Path,
    settings: Mapping[str, Any],
    *,
    data: str | None,
    config: Path | None,
    force: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Refine a file into ``out``, as a run of the method ``refine``."""
    solutions = read_solutions(source, _questions(data), kind=settings.get("kind"))
    finished = refine_batch(solutions, out=out, config=config, approval=AskTerminal(yes=yes), force=force, **settings)
    show_run(finished, out, as_json=as_json)


def _questions(data: str | None) -> list[Problem] | None:
    """The problems file that a chains.jsonl, which holds no questions, was made from."""
    return None if data is None else load_problems(data)
