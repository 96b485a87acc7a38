"""Gathers concurrent requests for one model, so that what many problems wait for is scored together.

No timer: the worker takes whatever is waiting the moment it is free. A lone request is scored at once; while a batch is
being scored the next one gathers. Ten problems of 8 chains cost about what one problem of 80 costs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from reward_models.errors import RewardModelError, StepCountError
from reward_models.types import Solution

ScoreT = TypeVar("ScoreT")
ScoreT_co = TypeVar("ScoreT_co", covariant=True)


class Scores(Protocol[ScoreT_co]):
    """A reward model of either kind."""

    @property
    def name(self) -> str: ...

    def score(self, solutions: Sequence[Solution]) -> Sequence[ScoreT_co]: ...


@dataclass(eq=False)
class _Request(Generic[ScoreT]):
    solutions: list[Solution]
    future: Future[list[ScoreT]] = field(default_factory=Future)


class Batcher(Generic[ScoreT]):
    """Scores with one model on one thread of its own, whoever asks and however many at once.

    A request is never divided, and its scores come in its own order. A batch that fails is scored again request by
    request, so that an error reaches the caller whose solutions caused it and nobody else.

    Args:
        model: A reward model; only the worker thread calls it.
        most: Requests are gathered up to this many solutions (a larger request goes alone).
    """

    def __init__(self, model: Scores[ScoreT], *, most: int = 2048) -> None:
        self.model = model
        self._most = most
        self._waiting: list[_Request[ScoreT]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"reward-model-{model.name}")

    def submit(self, solutions: Sequence[Solution]) -> Future[list[ScoreT]]:
        """Ask for scores; the future holds one a solution, in order, or the error.

        Raises:
            RewardModelError: The batcher is closed.
        """
        request: _Request[ScoreT] = _Request(list(solutions))
        if not request.solutions:
            request.future.set_result([])
            return request.future
        with self._lock:
            if self._closed:
                raise RewardModelError("scores were asked for after the end of the run", model=self.model.name)
            self._waiting.append(request)
            self._worker.submit(self._flush)
        return request.future

    async def ascore(self, solutions: Sequence[Solution]) -> list[ScoreT]:
        """Await the scores. A caller that is cancelled while it waits takes its own solutions out, and no others."""
        return await asyncio.wrap_future(self.submit(solutions))

    def close(self) -> None:
        """Score what is waiting, then stop the worker. Nothing may be submitted afterwards."""
        with self._lock:
            self._closed = True
        self._worker.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _flush(self) -> None:
        """Score what is waiting. Runs once for each request, and does nothing if that went with an earlier one."""
        batch = [request for request in self._take() if request.future.set_running_or_notify_cancel()]
        if not batch:
            return
        together = [solution for request in batch for solution in request.solutions]
        scores = self._score(together)
        if isinstance(scores, BaseException):
            for request in batch:
                _resolve(request, scores if len(batch) == 1 else self._score(request.solutions))
            return
        start = 0
        for request in batch:
            end = start + len(request.solutions)
            _resolve(request, scores[start:end])
            start = end

    def _take(self) -> list[_Request[ScoreT]]:
        with self._lock:
            size, count = 0, 0
            for request in self._waiting:
                size += len(request.solutions)
                if count and size > self._most:
                    break
                count += 1
            taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _score(self, solutions: list[Solution]) -> list[ScoreT] | BaseException:
        try:
            scores = list(self.model.score(solutions))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller, who waits for it
            return error
        if len(scores) != len(solutions):
            return StepCountError(f"{len(scores)} scores for {len(solutions)} solutions", model=self.model.name)
        return scores


def _resolve(request: _Request[ScoreT], outcome: list[ScoreT] | BaseException) -> None:
    if isinstance(outcome, BaseException):
        request.future.set_exception(outcome)
    else:
        request.future.set_result(outcome)
