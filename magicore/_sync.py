"""Synchronous calls into asynchronous code: one background thread with one event loop, started when first needed.

Every synchronous function of the library goes through :func:`run_sync`, also when the caller is itself inside a running
event loop (a notebook), where ``asyncio.run`` is not possible. Clients and limiters live on this loop, so they may be
shared by successive calls. This is the only place where magicore starts an event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop behind the synchronous calls; started on first use, on a daemon thread."""
    global _loop  # noqa: PLW0603 - the one process-wide loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="magicore-loop", daemon=True).start()
        return _loop


def run_sync(coroutine: Coroutine[Any, Any, T], *, interrupted: Callable[[], None] | None = None) -> T:
    """Run ``coroutine`` on the background loop and wait for its value.

    Interrupting the wait (Ctrl-C) cancels it; with ``interrupted``, the first interruption calls that instead, and goes
    on waiting.

    Raises:
        RuntimeError: called from the background loop itself, which would wait for ever.
    """
    loop = background_loop()
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise RuntimeError("a synchronous magicore call was made from inside magicore's own event loop; await instead")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    while True:
        try:
            return future.result()
        except KeyboardInterrupt:
            if interrupted is None:
                future.cancel()
                raise
            interrupted()
            interrupted = None
