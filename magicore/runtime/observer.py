"""Watching a run: what progress bars, logs and traces are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magicore.llms.calls import Call
from magicore.types import Problem, Result


class RunObserver:
    """Watches a run; this one does nothing. Progress bars, logs and traces override what they need."""

    def started(self, problems: int | None) -> None:
        """The models are open, and so many problems wait; ``None`` where that is not known."""

    def calling(self, model: str, samples: int) -> None:
        """A call for so many samples goes out to a language model."""

    def called(self, call: Call) -> None:
        """A call has ended."""

    def prepared(self, problem: Problem) -> None:
        """The initial chains of a problem are drawn and scored (calibrated methods only)."""

    def answered(self, result: Result) -> None:
        """A problem has its result, or its failure."""

    def finished(self, summary: Mapping[str, Any]) -> None:
        """All problems have; ``summary`` is what summary.json holds."""


class Observers(RunObserver):
    """Several observers as one."""

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = tuple(observers)

    def started(self, problems: int | None) -> None:
        for one in self._observers:
            one.started(problems)

    def calling(self, model: str, samples: int) -> None:
        for one in self._observers:
            one.calling(model, samples)

    def called(self, call: Call) -> None:
        for one in self._observers:
            one.called(call)

    def prepared(self, problem: Problem) -> None:
        for one in self._observers:
            one.prepared(problem)

    def answered(self, result: Result) -> None:
        for one in self._observers:
            one.answered(result)

    def finished(self, summary: Mapping[str, Any]) -> None:
        for one in self._observers:
            one.finished(summary)
