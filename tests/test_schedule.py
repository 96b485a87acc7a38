"""Ordered, bounded concurrency."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magicore.runtime.schedule import in_order


def run(delays: list[int], concurrency: int, ahead: int) -> tuple[list[int], int, int]:
    """Values in order, the most items in work at once, and the most taken beyond those given back."""

    async def go() -> tuple[list[int], int, int]:
        working = most = furthest = 0
        taken = 0
        values: list[int] = []

        def items() -> Iterator[tuple[int, int]]:
            nonlocal taken
            for item in enumerate(delays):
                taken += 1
                yield item

        async def work(item: tuple[int, int]) -> int:
            nonlocal working, most
            working += 1
            most = max(most, working)
            for _ in range(item[1]):
                await asyncio.sleep(0)
            working -= 1
            return item[0]

        async for value in in_order(items(), work, concurrency=concurrency, ahead=ahead):
            furthest = max(furthest, taken - len(values))
            values.append(value)
        return values, most, furthest

    return asyncio.run(go())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 20), max_size=40), st.integers(1, 8), st.integers(1, 10))
def test_values_come_in_item_order_within_both_bounds(delays: list[int], concurrency: int, ahead: int) -> None:
    values, most, furthest = run(delays, concurrency, ahead)
    assert values == list(range(len(delays)))
    assert most <= concurrency and furthest <= max(ahead, concurrency) + 1


def test_the_first_failure_is_raised_at_once_and_the_rest_are_cancelled() -> None:
    cancelled: list[int] = []

    async def work(item: int) -> int:
        if item == 1:
            raise KeyError(item)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    async def go() -> None:
        async for _ in in_order(itertools.count(), work, concurrency=3):
            pass

    with pytest.raises(KeyError):
        asyncio.run(asyncio.wait_for(go(), 5))
    assert sorted(cancelled)[:2] == [0, 2]
