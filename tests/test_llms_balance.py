"""Several servers of one model: the least busy one is asked, a dead one is left alone and tried again."""

from __future__ import annotations

import asyncio

import pytest

from magicore.errors import ConnectionFailed, RequestRefused
from magicore.llms.balance import Balanced
from magicore.llms.base import Generation, Request, Sampling, messages
from magicore.types import CallKey, Completion


def request(k: int = 1, max_tokens: int = 10) -> Request:
    return Request(
        messages=messages(("user", "hi")),
        key=CallKey(problem="p", role="solver"),
        indices=tuple(range(k)),
        sampling=Sampling(max_tokens=max_tokens),
    )


class Replica:
    """Answers when ``gate`` is open; dead while ``dead``."""

    def __init__(self) -> None:
        self.name = "m"
        self.fingerprint = "f"
        self.calls = 0
        self.dead = False
        self.gate: asyncio.Event | None = None
        self.closed = False

    async def generate(self, request: Request) -> Generation:
        self.calls += 1
        if self.dead:
            raise ConnectionFailed("refused")
        if self.gate is not None:
            await self.gate.wait()
        return Generation(completions=(Completion(index=0, text="x", stop="stop"),))

    async def aclose(self) -> None:
        self.closed = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_one_with_the_fewest_tokens_outstanding_is_asked() -> None:
    async def run() -> list[int]:
        gate = asyncio.Event()
        replicas = [Replica(), Replica()]
        for replica in replicas:
            replica.gate = gate
        balanced = Balanced(replicas)
        tasks = [asyncio.ensure_future(balanced.generate(request(max_tokens=100)))]
        for _ in range(4):
            await asyncio.sleep(0)
            tasks.append(asyncio.ensure_future(balanced.generate(request(k=2, max_tokens=10))))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        return [replica.calls for replica in replicas]

    assert asyncio.run(run()) == [1, 4]  # 100 tokens on the one are more than 4 times 20 on the other


def test_a_dead_server_costs_nothing_and_is_tried_again_later() -> None:
    clock = Clock()
    replicas = [Replica(), Replica()]
    balanced = Balanced(replicas, clock=clock)
    replicas[0].dead = True

    async def ask(times: int) -> None:
        for _ in range(times):
            assert (await balanced.generate(request())).completions

    asyncio.run(ask(5))
    assert [replica.calls for replica in replicas] == [1, 5]
    clock.now = 1.5  # its first rest is one second
    asyncio.run(ask(1))
    assert replicas[0].calls == 2
    clock.now = 3.0  # the second is two
    asyncio.run(ask(3))
    assert replicas[0].calls == 2
    replicas[0].dead = False
    clock.now = 4.0
    asyncio.run(ask(4))
    assert replicas[0].calls > 2


def test_when_all_are_dead_that_is_said_after_each_was_tried_once() -> None:
    replicas = [Replica() for _ in range(3)]
    for replica in replicas:
        replica.dead = True
    balanced = Balanced(replicas, clock=Clock())
    for tries in (1, 2):  # resting or not: a request is worth a try
        with pytest.raises(ConnectionFailed):
            asyncio.run(balanced.generate(request()))
        assert [replica.calls for replica in replicas] == [tries] * 3


def test_other_errors_are_no_reason_to_ask_elsewhere() -> None:
    class Refusing(Replica):
        async def generate(self, request: Request) -> Generation:
            self.calls += 1
            raise RequestRefused("no")

    replicas = [Refusing(), Refusing()]
    with pytest.raises(RequestRefused):
        asyncio.run(Balanced(replicas).generate(request()))
    assert sum(replica.calls for replica in replicas) == 1


def test_it_is_one_model_and_closes_all() -> None:
    replicas = [Replica(), Replica()]
    balanced = Balanced(replicas)
    assert (balanced.name, balanced.fingerprint) == ("m", "f")
    asyncio.run(balanced.aclose())
    assert all(replica.closed for replica in replicas)
    with pytest.raises(ValueError, match="at least one replica"):
        Balanced([])
