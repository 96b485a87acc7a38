"""The process in which model text is parsed as mathematics: `python -m magicore.answers.worker`.

It reads frames (a length of four bytes, then JSON) from its standard input: `{"jobs": [REQUEST, ...]}`, and writes one
frame for each job as soon as it is done: `{"value": ...}` or `{"error": "why it was not parsed"}`. It starts with
`{"ready": true}`. Memory is bounded by the operating system. The time of a job is bounded in processor seconds, so that
a busy machine changes no result: a timer interrupts the job, a second one ends the process if the first could not.
Where the platform has neither, the parent's own limit remains. Nothing else is read or written.
"""

import importlib
import json
import os
import signal
import sys
from typing import IO, Any, Final

MEMORY_LIMIT: Final = 512 << 20
"""Bytes of address space that a worker may use; a fresh one takes about 75 million."""
TIME_LIMIT: Final = 1.0
"""Processor seconds that one job may take."""
END_LIMIT: Final = 1.2
"""Processor seconds after which the operating system ends the process, whatever code it is in."""
_LENGTH: Final = 4


class _TimeUp(BaseException):
    """The timer rang; no handler of `Exception` in a library may swallow it."""


def read_frame(stream: IO[bytes]) -> Any:
    """The next frame's content, None at the end of the stream."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    body = stream.read(int.from_bytes(head, "big"))
    return json.loads(body)


def write_frame(stream: IO[bytes], content: object) -> None:
    """Sends one frame."""
    body = json.dumps(content, ensure_ascii=True).encode()
    stream.write(len(body).to_bytes(_LENGTH, "big") + body)
    stream.flush()


def limit_memory() -> None:
    """Bounds this process's address space where the platform has such a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ValueError, OSError):  # the platform has the name but not the limit
        return


def _ring(signum: int, frame: object) -> None:
    raise _TimeUp


def _timers(time_limit: float, end_limit: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, time_limit)
        signal.setitimer(signal.ITIMER_PROF, end_limit)


def _reply(job: list[str]) -> dict[str, Any]:
    from magicore.answers.forms import NotParsed
    from magicore.answers.numeric import Unrepresentable
    from magicore.answers.symbolic import answer

    try:
        _timers(TIME_LIMIT, END_LIMIT)
        try:
            return {"value": answer(tuple(job))}
        finally:
            _timers(0, 0)
    except _TimeUp:
        return {"error": "time limit"}
    except MemoryError:
        return {"error": "memory limit"}
    except RecursionError:
        return {"error": "too deeply nested"}
    except (NotParsed, Unrepresentable) as error:
        return {"error": str(error)}


def main() -> None:
    """Serves jobs until the parent closes the pipe."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    importlib.import_module("magicore.answers.symbolic")  # before memory is limited, and before the first job

    limit_memory()
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, _ring)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    write_frame(replies, {"ready": True})
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        for job in frame["jobs"]:
            write_frame(replies, _reply(job))


if __name__ == "__main__":
    main()
