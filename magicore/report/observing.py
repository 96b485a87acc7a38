"""The observers that a run is asked for, opened and closed together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from magicore.report.progress import ProgressObserver
from magicore.report.run_log import RunLog
from magicore.report.traces import Traces
from magicore.runtime.observer import Observers, RunObserver


@contextmanager
def observed(
    progress: bool | RunObserver | None = None, *, log_json: Path | None = None, traces: bool = False
) -> Iterator[RunObserver]:
    """A progress bar (by default where stderr is a terminal) or the observer given, a JSON log, OpenTelemetry spans.

    Raises:
        StoreError: the log cannot be opened.
        MissingExtraError: OpenTelemetry is not installed.
    """
    with ExitStack() as stack:
        watching: list[RunObserver] = []
        if isinstance(progress, RunObserver):
            watching.append(progress)
        else:
            watching.append(stack.enter_context(ProgressObserver(shown=progress)))
        if log_json is not None:
            watching.append(stack.enter_context(RunLog(log_json)))
        if traces:
            watching.append(stack.enter_context(Traces()))
        yield watching[0] if len(watching) == 1 else Observers(watching)
