"""The limiter finds an endpoint's capacity, halves when asked to slow down, and lets nobody starve."""

from __future__ import annotations

import asyncio
import heapq

import pytest

from magicore.llms.limiter import Limiter, waiting_line


class Server:
    """A simulated server: ``slots`` calls at once, one second each, a queue before them. Time is simulated."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.now = 0.0
        self.free_at = [0.0] * slots

    def clock(self) -> float:
        return self.now

    def finish_of(self, start: float) -> float:
        end = max(start, heapq.heappop(self.free_at)) + 1.0
        heapq.heappush(self.free_at, end)
        return end


def run_simulated(limiter: Limiter, server: Server, calls: int) -> float:
    """Drive the limiter with calls that all wait from the start; gives the simulated seconds until the last is done."""

    async def run() -> None:
        ends: list[tuple[float, int, asyncio.Event]] = []
        left = calls

        async def call(number: int) -> None:
            nonlocal left
            async with limiter.slots(1):
                over = asyncio.Event()
                heapq.heappush(ends, (server.finish_of(server.now), number, over))
                await over.wait()
            limiter.succeeded(1, 100)
            left -= 1

        tasks = [asyncio.ensure_future(call(number)) for number in range(calls)]
        while left:
            for _ in range(3):
                await asyncio.sleep(0)
            if ends:
                server.now, _, over = heapq.heappop(ends)
                over.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    return server.now


@pytest.mark.parametrize("slots", [16, 64, 256])
def test_it_finds_the_capacity(slots: int) -> None:
    server = Server(slots)
    limiter = Limiter(initial=8, clock=server.clock)
    calls = 60 * slots
    seconds = run_simulated(limiter, server, calls)
    assert seconds <= 1.25 * calls / slots
    assert slots * 0.9 <= limiter.limit <= slots * 5


def test_a_fixed_limit_stays() -> None:
    server = Server(100)
    limiter = Limiter(initial=10, maximum=10, clock=server.clock)
    assert run_simulated(limiter, server, 200) == pytest.approx(20.0)
    assert limiter.limit == 10


def test_slowing_down_halves_once_for_all_calls_under_way() -> None:
    now = 10.0
    limiter = Limiter(initial=64, clock=lambda: now)
    for _ in range(20):
        limiter.throttled(started=9.0)
    assert limiter.limit == 32
    now = 12.0
    limiter.throttled(started=11.0)
    assert limiter.limit == 16
    for started in range(13, 40):
        now = started + 1.0
        limiter.throttled(started=started)
    assert limiter.limit == 1


def test_nothing_starts_before_retry_after() -> None:
    now = 0.0
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    limiter = Limiter(clock=lambda: now, sleep=sleep)
    limiter.throttled(started=0.0, retry_after=5.0)

    async def run() -> None:
        async with limiter.slots(1):
            assert now >= 5.0

    asyncio.run(run())
    assert waits == [5.0]


def test_first_come_first_served_and_a_large_call_is_let_in_alone() -> None:
    order: list[str] = []
    limiter = Limiter(initial=4, maximum=4)

    async def call(name: str, count: int) -> None:
        async with limiter.slots(count):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    async def run() -> None:
        await asyncio.gather(call("a", 3), call("large", 9), call("b", 1))

    asyncio.run(run())
    assert order == ["a in", "a out", "large in", "large out", "b in", "b out"]
    assert limiter.in_flight == 0


def test_lines_take_turns() -> None:
    order: list[str] = []
    limiter = Limiter(initial=1, maximum=1)

    async def call(name: str) -> None:
        async with limiter.slots(1):
            order.append(name)
            await asyncio.sleep(0)

    async def request(name: str, calls: int) -> None:
        waiting_line.set(name)
        await asyncio.gather(*(call(f"{name}{number}") for number in range(calls)))

    async def run() -> None:
        await asyncio.gather(request("a", 5), request("b", 2), request("c", 1))

    asyncio.run(run())
    assert order == ["a0", "a1", "b0", "c0", "a2", "b1", "a3", "a4"]
    assert limiter.in_flight == 0


def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    async def run() -> list[str]:
        limiter = Limiter(initial=1, maximum=1)
        done: list[str] = []

        async def call(name: str) -> None:
            async with limiter.slots(1):
                await asyncio.sleep(0)
                done.append(name)

        first, second, third = (asyncio.ensure_future(call(name)) for name in "abc")
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)
        assert limiter.in_flight == 0
        return done

    assert asyncio.run(run()) == ["a", "c"]


def test_cancelled_at_the_moment_of_admission_no_slot_is_lost() -> None:
    async def run() -> int:
        limiter = Limiter(initial=1, maximum=1)

        async def call() -> None:
            async with limiter.slots(1):
                await asyncio.sleep(0)

        first, second = asyncio.ensure_future(call()), asyncio.ensure_future(call())
        await first  # its end admits the second
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        return limiter.in_flight

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(("initial", "maximum"), [(0, 5), (6, 5)])
def test_limits_that_make_no_sense(initial: int, maximum: int) -> None:
    with pytest.raises(ValueError, match="a limiter needs 1 <= initial <= maximum"):
        Limiter(initial=initial, maximum=maximum)


def complete(limiter: Limiter, clock: list[float], *, samples: int, at: float, seconds: float) -> None:
    """So many samples of 50 tokens each come by ``at``, each having taken ``seconds``."""
    limiter.succeeded(0, 0)
    clock[0] = at
    for _ in range(samples):
        limiter.succeeded(1, 50, seconds)


def test_a_single_refusal_is_forgotten_and_many_are_not() -> None:
    clock = [0.0]
    limiter = Limiter(initial=64, clock=lambda: clock[0])
    complete(limiter, clock, samples=63, at=1.0, seconds=1.0)
    limiter.throttled(started=0.5)
    assert limiter.limit == 32
    complete(limiter, clock, samples=32, at=2.0, seconds=1.0)
    assert limiter.limit == 64
    for number in range(10):
        limiter.throttled(started=1.5 + number / 100)
    assert limiter.limit == 32
    complete(limiter, clock, samples=32, at=3.0, seconds=1.0)
    assert limiter.limit == 48


def test_it_eases_off_when_work_takes_longer_and_no_more_gets_done() -> None:
    clock = [0.0]
    limiter = Limiter(initial=40, clock=lambda: clock[0])
    complete(limiter, clock, samples=40, at=1.0, seconds=1.0)
    complete(limiter, clock, samples=40, at=2.0, seconds=4.0)
    assert limiter.limit == 20
    complete(limiter, clock, samples=20, at=2.5, seconds=2.0)
    assert limiter.limit >= 20


def test_easing_off_that_costs_throughput_is_taken_back() -> None:
    clock = [0.0]
    limiter = Limiter(initial=40, clock=lambda: clock[0])
    complete(limiter, clock, samples=40, at=1.0, seconds=1.0)
    complete(limiter, clock, samples=40, at=5.0, seconds=4.0)
    assert limiter.limit == 20
    complete(limiter, clock, samples=20, at=9.0, seconds=4.0)
    assert limiter.limit == 40
    complete(limiter, clock, samples=40, at=13.0, seconds=4.0)
    assert limiter.limit == 40


def test_calls_that_began_before_the_easing_off_do_not_ease_it_again() -> None:
    clock = [0.0]
    limiter = Limiter(initial=40, clock=lambda: clock[0])
    complete(limiter, clock, samples=40, at=1.0, seconds=1.0)
    complete(limiter, clock, samples=40, at=2.0, seconds=4.0)
    assert limiter.limit == 20
    for at in (2.5, 3.0, 3.5):
        complete(limiter, clock, samples=20, at=at, seconds=4.0)
        assert limiter.limit >= 20
