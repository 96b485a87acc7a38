"""Synchronous calls of reward models that do I/O: one event loop on a background thread, started when first needed.

Only the synchronous ``score`` of such a model comes here; ``ascore`` runs in its caller's own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _background_loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops or _loops[0].is_closed():
            _loops[:] = [asyncio.new_event_loop()]
            threading.Thread(target=_loops[0].run_forever, name="reward-models-loop", daemon=True).start()
        return _loops[0]


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the background loop and wait for its value; interrupting the wait cancels it.

    Raises:
        RuntimeError: It was called from the background loop itself, which would wait for ever.
    """
    loop = _background_loop()
    try:
        inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        inside = False
    if inside:
        coroutine.close()
        raise RuntimeError("score() was called from inside the reward models' own event loop; await ascore() instead")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
