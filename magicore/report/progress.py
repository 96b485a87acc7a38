"""A run's progress in the terminal: problems sampled and answered, accuracy so far, tokens, errors, time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.progress import TaskID

from magicore.llms.calls import Call
from magicore.report.bars import progress_bars
from magicore.report.figures import Figures
from magicore.runtime.observer import RunObserver
from magicore.types import Problem, Result

_REDRAWN_S = 0.2


class ProgressObserver(RunObserver):
    """Bars on stderr, gone when the run ends; nothing where stderr is no terminal, unless ``shown`` is given."""

    def __init__(self, title: str = "answered", *, shown: bool | None = None) -> None:
        self._title = title
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._progress = progress_bars(shown=self._shown)
        self._sampled: TaskID | None = None
        self._answered: TaskID | None = None
        self._graded = self._correct = self._tokens = 0
        self._calls = Figures()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, problems: int | None) -> None:
        self._graded = self._correct = self._tokens = 0
        self._calls = Figures()
        for task in (self._sampled, self._answered):
            if task is not None:
                self._progress.remove_task(task)
        self._sampled = self._progress.add_task("sampled", total=problems, visible=False, figures="")
        self._answered = self._progress.add_task(self._title, total=problems, figures="")

    def calling(self, model: str, samples: int) -> None:
        self._calls.calling(samples)

    def called(self, call: Call) -> None:
        self._calls.called(call)
        now = time.monotonic()
        if self._shown and self._answered is not None and now > self._drawn + _REDRAWN_S:
            self._drawn = now
            self._progress.update(self._answered, figures=self._figures())

    def prepared(self, problem: Problem) -> None:
        if self._sampled is not None:
            self._progress.update(self._sampled, advance=1, visible=True)

    def answered(self, result: Result) -> None:
        if result.correct is not None:
            self._graded += 1
            self._correct += result.correct
        self._tokens += sum(entry.usage.total for entry in result.usage)
        if self._answered is not None:
            self._progress.update(self._answered, advance=1, figures=self._figures())

    def _figures(self) -> str:
        right = f"{100 * self._correct / self._graded:.1f} % right, " if self._graded else ""
        calls = f", {self._calls}" if self._calls.tokens or self._calls.errors else ""
        return f"{right}{self._tokens:,} tokens{calls}"
