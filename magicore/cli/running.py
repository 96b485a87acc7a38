"""Running with a progress bar, asking before much is spent, and showing what came of it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from magicore.ablations.comparison import method_row
from magicore.api import Approval, solve_batch
from magicore.distributed import RayCluster
from magicore.errors import InputError, MagicoreError
from magicore.report.tables import method_table, show, verdict_table
from magicore.runtime.batch import Run
from magicore.runtime.directory import CONFIG, saved_config
from magicore.runtime.estimate import ASK_ABOVE_CALLS, Estimate

EXIT_INTERRUPTED = 130
CUT_SHARE = 0.1
"""A run with a larger share of chains cut at the token limit gets a warning."""


class AskTerminal(Approval):
    """Says what a remote run may cost, and asks above :data:`ASK_ABOVE_CALLS` calls.

    ``yes`` answers beforehand; without a terminal to ask at, the run is refused.
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes

    def __call__(self, cost: Estimate) -> None:
        Console(stderr=True, highlight=False).print(f"this run takes {cost}")
        if self._yes or cost.most_calls <= ASK_ABOVE_CALLS:
            return
        if not sys.stdin.isatty():
            raise InputError(
                f"a run of up to {cost.most_calls:,} calls needs a yes: give --yes, or fewer problems or chains"
            )
        if not typer.confirm("go on?", err=True):
            raise InputError("not started")


def resumed(directory: Path, config: Path | None, out: Path | None) -> tuple[Path, Path]:
    """The configuration and the directory of a run that is to go on.

    Raises:
        InputError: another configuration or directory is given beside it, or the run's problems came from Python.
        StoreError: there is no run in the directory.
    """
    if config is not None or out is not None:
        raise InputError("--resume takes settings and store from its directory: leave --config and --out out")
    if "data" not in saved_config(directory):
        raise InputError(f"the problems of {directory} were given from Python, so it can go on from there only")
    return directory / CONFIG, directory


def chosen_engine(engine: str, places: Mapping[str, Any]) -> str | RayCluster:
    """The engine of a run, with what is said of its cluster.

    Raises:
        InputError: a cluster is spoken of and the engine is none.
    """
    if places and engine != "ray":
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in places)
        raise InputError(f"{flags}: this is for a run on a Ray cluster; give --engine ray beside it")
    return RayCluster(**places) if engine == "ray" else engine


def run_with_progress(
    settings: Mapping[str, Any],
    *,
    config: Path | None = None,
    out: Path | None = None,
    force: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> Run:
    """Run as :func:`magicore.solve_batch` does, and print a summary.

    Raises:
        MagicoreError: as :func:`magicore.asolve_batch`; also when every problem failed.
    """
    finished = solve_batch(None, config, out=out, force=force, approval=AskTerminal(yes=yes), **settings)
    show_run(finished, out, as_json=as_json)
    return finished


def show_run(finished: Run, out: Path | None, *, as_json: bool = False) -> None:
    """Print the summary (a table, or JSON), what failed, and what was cut.

    Raises:
        MagicoreError: every problem failed.
    """
    notes = Console(stderr=True, highlight=False)
    prepared = "stage" in finished.summary
    if as_json:
        sys.stdout.write(json.dumps(finished.summary, indent=2) + "\n")
    elif not prepared:
        show(method_table([method_row(finished.config.method, finished.results, finished.outcome.wall_s)]))
        if any(result.verdict is not None for result in finished.results):
            show(verdict_table(finished.results))
    for sentence in (cut_warning(finished), *finished.summary.get("warnings", ())):
        if sentence is not None:
            notes.print(f"[yellow]warning:[/] {escape(sentence)}")
    if prepared:
        _show_prepared(finished, notes)
    failures = [result.error for result in finished.results if result.error is not None]
    if failures:
        sentence = f"{len(failures)} of {len(finished.results)} problems failed; the first: {failures[0].message}"
        if len(failures) == len(finished.results):
            raise MagicoreError(sentence)
        notes.print(f"[yellow]warning:[/] {sentence}")
    if out is not None:
        notes.print(f"written to {out}")
    if finished.interrupted:
        notes.print(f"interrupted; {_goes_on(finished, out)} goes on from here")
        raise typer.Exit(EXIT_INTERRUPTED)


def _goes_on(finished: Run, out: Path | None) -> str:
    """What an interrupted run is taken up again by."""
    on_cluster = finished.summary.get("engine") is not None
    if out is None or finished.config.data is None or finished.config.shard is not None or on_cluster:
        return "the same command with the same --out"
    stage = " --stage prepare" if finished.summary.get("stage") == "prepare" else ""
    return f"magicore run --resume {shlex.quote(str(out))}{stage}"


def _show_prepared(finished: Run, notes: Console) -> None:
    """Say how many problems were prepared.

    Raises:
        MagicoreError: not one could be.
    """
    n, failed = finished.summary["n"], finished.summary["failed"]
    if failed:
        sentence = f"{failed:,} of {n:,} problems could not be prepared; the same command again tries them once more"
        if failed == n:
            raise MagicoreError(sentence)
        notes.print(f"[yellow]warning:[/] {sentence}")
    if not finished.interrupted:
        shard = "" if finished.config.shard is None else f" of shard {finished.config.shard}"
        many = "problem" if n - failed == 1 else "problems"
        notes.print(f"{n - failed:,} {many}{shard} prepared, {finished.summary['chains']:,} chains drawn and scored")


def cut_warning(finished: Run) -> str | None:
    """One sentence when more than a tenth of the chains were cut at the token limit."""
    chains, cut = finished.outcome.chains, finished.outcome.cut
    if cut <= CUT_SHARE * chains:
        return None
    return f"{cut:,} of {chains:,} chains were cut at {finished.config.max_tokens} tokens; give a larger --max-tokens"
