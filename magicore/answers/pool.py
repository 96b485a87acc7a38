"""Worker processes that parse mathematics, started when they are first needed.

Each is `python -m magicore.answers.worker`, spoken to over pipes, so that the caller's script needs no main guard and
no thread, event loop or fork of the caller's matters. A job that exceeds its time or memory costs its worker at most,
which is replaced.
"""

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from magicore.answers.forms import Request, Value
from magicore.answers.worker import read_frame, write_frame

MAX_WORKERS: Final = 4
MIN_BATCH: Final = 8
MAX_BATCH: Final = 48
"""Requests sent to a worker at a time; fewer than the least start no second one."""
START_LIMIT: Final = 60.0
"""Seconds a worker may take to start."""
REPLY_LIMIT: Final = 10.0
"""Seconds by the clock after which a worker that does not answer is ended; its own limits come first."""
MAX_JOBS: Final = 5000
"""Jobs after which a worker is replaced, so that the parser's caches cannot grow without bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What became of a request: a value, or the reason why it was not parsed."""

    value: Value | None = None
    reason: str | None = None


class _Worker:
    """One process and the thread that reads its replies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.jobs = 0

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply for each request, in order."""
        done: list[Reply] = []
        try:
            while len(done) < len(requests):
                if self.process is None or self.jobs > MAX_JOBS:
                    self.stop()
                    self.start()
                done += self._batch(requests[len(done) :])
        except BaseException:  # interrupted between a request and its reply: the two must not get out of step
            self.stop()
            raise
        return done

    def _batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Replies up to the first request that the worker does not survive."""
        process = self.process
        assert process is not None and process.stdin is not None
        done: list[Reply] = []
        try:
            write_frame(process.stdin, {"jobs": requests})
        except OSError:
            self.stop()
            return [Reply(reason="the worker ended")]
        self.jobs += len(requests)
        for _ in requests:
            try:
                frame = self.replies.get(timeout=REPLY_LIMIT)
            except queue.Empty:
                self.stop()
                return [*done, Reply(reason="time limit")]
            if frame is None:
                timed_out = process.wait() == -getattr(signal, "SIGPROF", 0)
                self.stop()
                return [*done, Reply(reason="time limit" if timed_out else "the worker ended")]
            done.append(Reply(value=frame.get("value"), reason=frame.get("error")))
        return done

    def start(self) -> None:
        """Starts the process and waits until it is ready."""
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "magicore.answers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        except (OSError, TypeError) as error:
            raise _no_worker(f"Cannot start {sys.executable!r} as a worker to parse mathematics: {error}.") from error
        self.replies, self.jobs = queue.SimpleQueue(), 0
        threading.Thread(target=_pump, args=(self.process.stdout, self.replies), daemon=True).start()
        try:
            ready = self.replies.get(timeout=START_LIMIT)
        except queue.Empty:
            ready = None
        if ready is None:
            self.stop()
            raise _no_worker(
                "A worker to parse mathematics did not start; "
                f"run `{sys.executable} -m magicore.answers.worker < /dev/null` to see why."
            )

    def stop(self) -> None:
        """Ends the process, whatever it is doing."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # a frame that the process never took
                    continue


def _pump(stream: Any, replies: "queue.SimpleQueue[Any]") -> None:
    try:
        while (frame := read_frame(stream)) is not None:
            replies.put(frame)
    except (OSError, ValueError):  # the stream was closed or cut inside a frame
        pass
    replies.put(None)


def _no_worker(sentence: str) -> Exception:
    from magicore.errors import WorkerError  # only when needed: it brings in NumPy, which a worker does without

    return WorkerError(sentence)


def _environment() -> dict[str, str]:
    """This process's environment, with the paths it imports from."""
    root = str(Path(__file__).resolve().parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join([root, *(path for path in sys.path if path)])}


class _Pool:
    """Workers that are idle, and the requests spread over them."""

    def __init__(self) -> None:
        self.workers = [_Worker() for _ in range(min(MAX_WORKERS, os.cpu_count() or 1))]
        self.idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self.workers:
            self.idle.put(worker)

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        batch = min(MAX_BATCH, max(MIN_BATCH, -(-len(requests) // len(self.workers))))
        batches = [requests[start : start + batch] for start in range(0, len(requests), batch)]
        if len(batches) == 1:
            return self._with_worker(batches[0])
        with ThreadPoolExecutor(min(len(batches), len(self.workers))) as threads:
            return [reply for replies in threads.map(self._with_worker, batches) for reply in replies]

    def _with_worker(self, requests: Sequence[Request]) -> list[Reply]:
        worker = self.idle.get()
        try:
            return worker.answer(requests)
        finally:
            self.idle.put(worker)

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()


_lock = threading.Lock()
_pools: list[_Pool] = []


def answer(requests: Sequence[Request]) -> list[Reply]:
    """One reply for each request, in order. Safe from any thread, inside an event loop and after a fork.

    Raises:
        WorkerError: No worker can be started.
    """
    if not requests:
        return []
    with _lock:
        if not _pools:
            _pools.append(_Pool())
        pool = _pools[0]
    return pool.answer(requests)


def close() -> None:
    """Ends all workers; the next request starts new ones."""
    with _lock:
        while _pools:
            _pools.pop().close()


def _forget() -> None:
    """After a fork the workers are the parent's."""
    global _lock  # noqa: PLW0603 - the parent may have held it
    _lock = threading.Lock()
    _pools.clear()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
