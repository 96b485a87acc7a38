"""A run as JSON lines: one object an event, for machines to follow (``--log-json``)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from magicore import __version__
from magicore.errors import StoreError
from magicore.llms.calls import Call
from magicore.runtime.observer import RunObserver
from magicore.store.json_lines import unwritable
from magicore.types import Problem, Result


class RunLog(RunObserver):
    """Appends events to a file: ``started``, ``call``, ``prepared``, ``answered``, ``finished``.

    Each has ``at``, seconds since the epoch. A call is one that has ended: its sizes and times, and where it failed the
    error and when it is made again; never a prompt, a completion or a key.

    Raises:
        StoreError: The file cannot be opened or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        try:
            self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise StoreError(f"the log {path} cannot be opened: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:
            if error is None:
                raise unwritable(self._path, failure) from failure

    def started(self, problems: int | None) -> None:
        self._write("started", problems=problems, version=__version__)

    def called(self, call: Call) -> None:
        self._write("call", **call_row(call))

    def prepared(self, problem: Problem) -> None:
        self._write("prepared", problem=problem.id)

    def answered(self, result: Result) -> None:
        failure = None if result.error is None else {"type": result.error.type, "message": result.error.message}
        self._write(
            "answered",
            problem=result.id,
            stop=result.stop,
            correct=result.correct,
            rounds=len(result.rounds),
            error=failure,
        )

    def finished(self, summary: Mapping[str, Any]) -> None:
        self._write("finished", summary=dict(summary))

    def _write(self, event: str, **values: Any) -> None:
        row = {"at": round(self._clock(), 6), "event": event, **values}
        try:
            self._file.write(json.dumps(row, default=str) + "\n")
        except OSError as error:
            raise unwritable(self._path, error) from error


def call_row(call: Call) -> dict[str, Any]:
    """A call as a JSON object."""
    key, usage = call.key, call.usage
    return {
        "model": call.model,
        "role": key.role,
        "problem": key.problem,
        "instance": key.instance,
        "round": key.round,
        "parent": key.parent,
        "asked": call.asked,
        "given": call.given,
        "cut": call.cut,
        "lost": call.lost,
        "attempt": call.attempt,
        "queued_s": round(call.queued_s, 6),
        "seconds": round(call.seconds, 6),
        "prompt": usage.prompt,
        "cached": usage.cached,
        "completion": usage.completion,
        "reasoning": usage.reasoning,
        "error": None if call.error is None else {"type": type(call.error).__name__, "message": str(call.error)},
        "retry_in": None if call.retry_in is None else round(call.retry_in, 6),
    }
