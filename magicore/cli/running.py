"""Running with a progress bar, and showing what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from magicore.ablations.comparison import method_row
from magicore.api import Run, run
from magicore.errors import MagicoreError
from magicore.report.tables import method_table, show, verdict_table
from magicore.runtime.run import RunObserver
from magicore.types import Problem, Result


class ProgressObserver(RunObserver):
    """Two bars on stderr: problems whose chains are there, and problems answered."""

    def __init__(self, title: str = "answered") -> None:
        self._title = title
        self._progress = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks: tuple[TaskID, TaskID] | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, problems: Sequence[Problem]) -> None:
        add = self._progress.add_task
        self._tasks = (add("sampled", total=len(problems), visible=False), add(self._title, total=len(problems)))

    def prepared(self, problem: Problem) -> None:
        if self._tasks is not None:
            self._progress.update(self._tasks[0], advance=1, visible=True)

    def answered(self, result: Result) -> None:
        if self._tasks is not None:
            self._progress.advance(self._tasks[1])


def run_with_progress(settings: Mapping[str, Any], *, config: Path | None, out: Path | None) -> Run:
    """Run as :func:`magicore.run` does, with progress on stderr, and print a summary table.

    Raises:
        MagicoreError: as :func:`magicore.arun`; also when every problem failed.
    """
    with ProgressObserver() as observer:
        finished = run(config=config, out=out, observer=observer, **settings)
    show_run(finished, out)
    return finished


def show_run(finished: Run, out: Path | None) -> None:
    """Print the summary, and what failed.

    Raises:
        MagicoreError: every problem failed.
    """
    console = Console()
    show(method_table([method_row(finished.config.method, finished.results, finished.outcome.wall_s)]))
    if any(result.verdict is not None for result in finished.results):
        show(verdict_table(finished.results))
    failures = [result for result in finished.results if result.error is not None]
    if failures:
        first = failures[0].error
        why = first.message if first is not None else ""
        sentence = f"{len(failures)} of {len(finished.results)} problems failed; the first: {why}"
        if len(failures) == len(finished.results):
            raise MagicoreError(sentence)
        console.print(f"[yellow]warning:[/] {sentence}", highlight=False)
    if out is not None:
        console.print(f"written to {out}", highlight=False)
