"""Work on many items at once, and give the values in item order, with bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")

AHEAD = 4096
"""How far finished items may be ahead of the first unfinished one before no further item is started."""


async def in_order(
    items: Iterable[ItemT], work: Callable[[ItemT], Awaitable[ValueT]], *, concurrency: int, ahead: int = AHEAD
) -> AsyncIterator[ValueT]:
    """Yield ``await work(item)`` for each item, in item order, with up to ``concurrency`` items in work.

    Items are taken from the iterable only when their turn comes. The first exception of any item is raised at once, and
    the rest are cancelled.
    """
    waiting = iter(items)
    tasks: deque[asyncio.Task[ValueT]] = deque()
    running = 0
    exhausted = False
    ended = asyncio.Event()
    failures: list[BaseException] = []

    async def one(item: ItemT) -> ValueT:
        nonlocal running
        try:
            return await work(item)
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            running -= 1
            ended.set()

    try:
        while True:
            while not exhausted and running < concurrency and len(tasks) < max(ahead, concurrency):
                try:
                    item = next(waiting)
                except StopIteration:
                    exhausted = True
                    break
                running += 1
                tasks.append(asyncio.create_task(one(item)))
            if failures:
                raise failures[0]
            if not tasks:
                return
            if tasks[0].done():
                yield tasks.popleft().result()
                continue
            ended.clear()
            await ended.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
