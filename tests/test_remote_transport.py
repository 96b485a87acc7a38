"""The scoring clients' connections, against real sockets: balance, retries, and a typed error for every failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fake_servers import Answer, Call, serving
from reward_models.errors import RewardModelError, ScoringServerError
from reward_models.remote.transport import Patience, StatusError, Transport, UnreachableError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


class Pauses:
    """Sleeps that are noted instead of waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def run(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(make())


async def posted(transport: Transport, path: str = "/x", body: dict[str, Any] | None = None, **more: Any) -> Any:
    try:
        return await transport.post(path, body or {}, **more)
    finally:
        await transport.aclose()


def test_answer_and_request_are_json() -> None:
    with serving(lambda call: Answer({"got": call.body})) as server:
        transport = Transport([server.url], model="m")
        assert run(lambda: posted(transport, body={"text": "\ud800 ы"})) == {"got": {"text": "\ud800 ы"}}
        assert server.calls[0].headers["content-type"] == "application/json"
        assert "authorization" not in server.calls[0].headers
        assert transport.calls == 1


def test_failures_that_pass_are_retried_with_growing_pauses() -> None:
    left = [Answer({"error": "boom"}, status=500), Answer(reset=True), Answer(b"{half", status=200), Answer([1])]
    pauses = Pauses()
    with serving(lambda _: left.pop(0)) as server:
        transport = Transport([server.url], model="m", sleep=pauses)
        assert run(lambda: posted(transport)) == [1]
        assert len(server.calls) == 4
    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert all(low <= seconds <= high for seconds, (low, high) in zip(pauses.seconds, bounds, strict=True))


def test_gives_up_after_the_last_attempt_with_the_servers_words() -> None:
    pauses = Pauses()
    with serving(lambda _: Answer({"error": {"message": "out of\nmemory"}}, status=503)) as server:
        transport = Transport([server.url], model="m", sleep=pauses, patience=Patience(attempts=3))
        with pytest.raises(
            StatusError, match=r"reward model 'm': .*/x failed with status 503 \(out of memory\)"
        ) as caught:
            run(lambda: posted(transport))
        assert len(server.calls) == 3
    assert caught.value.retryable
    assert caught.value.status == 503


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer({"detail": "no task"}, status=400), r"refused the request with status 400 \(no task\)"),
        (Answer({}, status=401), "wants a key"),
        (Answer({"error": "not you"}, status=403), r"does not let this key score \(not you\)"),
        (Answer({}, status=404), "refused the request with status 404"),
        (Answer({}, status=307, headers={"location": "http://other/"}), "redirects to http://other/"),
        (Answer("not implemented", status=501), "failed with status 501"),
    ],
)
def test_refusals_are_not_retried(answer: Answer, words: str) -> None:
    with serving(lambda _: answer) as server:
        transport = Transport([server.url], model="m", sleep=Pauses())
        with pytest.raises(StatusError, match=words) as caught:
            run(lambda: posted(transport))
        assert len(server.calls) == 1
    assert not caught.value.retryable


def test_a_server_that_asks_to_slow_down_is_waited_for_and_that_is_no_failed_attempt() -> None:
    left = [Answer({}, status=429, headers={"retry-after": "7"}) for _ in range(10)]
    pauses = Pauses()
    with serving(lambda _: left.pop() if left else Answer("done")) as server:
        transport = Transport([server.url], model="m", sleep=pauses, patience=Patience(attempts=2))
        assert run(lambda: posted(transport)) == "done"
    assert len(pauses.seconds) == 10
    assert all(7.0 <= seconds <= 7.0 + 0.1 * 60 for seconds in pauses.seconds)


def test_nothing_listens() -> None:
    pauses = Pauses()
    transport = Transport(["http://127.0.0.1:1"], model="m", sleep=pauses)
    with pytest.raises(
        UnreachableError, match=r"http://127\.0\.0\.1:1/x refuses the connection; is the server running\?"
    ):
        run(lambda: posted(transport))
    assert len(pauses.seconds) == 1  # a wrong address is told soon


def test_silence_is_given_up() -> None:
    let_go = threading.Event()

    def silent(_: Call) -> Answer:
        let_go.wait(5)
        return Answer({})

    with serving(silent) as server:
        transport = Transport([server.url], model="m", sleep=Pauses(), patience=Patience(idle_s=0.1))
        with pytest.raises(UnreachableError, match=r"sent nothing for 0\.1 s"):
            run(lambda: posted(transport))
        let_go.set()


def test_requests_go_to_the_server_with_the_least_outstanding() -> None:
    together = threading.Barrier(3)

    def wait(_: Call) -> Answer:
        together.wait(5)
        return Answer({})

    async def three(transport: Transport) -> None:
        try:
            heavy = asyncio.create_task(transport.post("/heavy", {}, weight=100))
            await asyncio.sleep(0.05)
            await asyncio.gather(heavy, transport.post("/a", {}, weight=10), transport.post("/b", {}, weight=10))
        finally:
            await transport.aclose()

    with serving(wait) as first, serving(wait) as second:
        transport = Transport([first.url, second.url], model="m")
        run(lambda: three(transport))
        assert first.paths() == ["/heavy"]
        assert sorted(second.paths()) == ["/a", "/b"]


def test_a_dead_server_is_passed_over_without_a_pause_and_then_left_alone() -> None:
    now = [0.0]
    pauses = Pauses()

    async def several(transport: Transport) -> None:
        try:
            for _ in range(4):
                await transport.post("/x", {})
        finally:
            await transport.aclose()

    with serving(lambda _: Answer(reset=True)) as dead, serving(lambda _: Answer({})) as alive:
        transport = Transport([dead.url, alive.url], model="m", sleep=pauses, clock=lambda: now[0])
        run(lambda: several(transport))
        assert (len(dead.calls), len(alive.calls)) == (1, 4)
        now[0] = 1.5  # its rest is over: it is tried again, and rests twice as long
        run(lambda: several(transport))
        assert (len(dead.calls), len(alive.calls)) == (2, 8)
        assert pauses.seconds == []


def test_connections_are_reused_and_limited() -> None:
    busy, most = [0], [0]
    lock = threading.Lock()

    def count(_: Call) -> Answer:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        threading.Event().wait(0.01)
        with lock:
            busy[0] -= 1
        return Answer({})

    async def many(transport: Transport) -> None:
        try:
            await asyncio.gather(*(transport.post("/x", {}) for _ in range(20)))
        finally:
            await transport.aclose()

    with serving(count) as server:
        run(lambda: many(Transport([server.url], model="m", concurrency=3)))
        assert len({call.client for call in server.calls}) <= 3
    assert most[0] <= 3


def test_works_from_one_event_loop_after_another() -> None:
    with serving(lambda _: Answer(1)) as server:
        transport = Transport([server.url], model="m")
        assert [run(lambda: posted(transport)), run(lambda: posted(transport))] == [1, 1]


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORING_SECRET", "s3cret-value")

    def echo(call: Call) -> Answer:
        return Answer({"error": f"bad key {call.headers['authorization']}"}, status=400)

    with serving(echo) as server:
        transport = Transport([server.url], model="m", api_key_env="SCORING_SECRET")
        with pytest.raises(StatusError, match=r"bad key Bearer \*\*\*") as caught:
            run(lambda: posted(transport))
    assert "s3cret" not in f"{caught.value}{transport!r}"


def test_a_key_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCORING_SECRET", raising=False)
    with pytest.raises(RewardModelError, match="api_key_env names SCORING_SECRET, which is not set"):
        Transport(["http://127.0.0.1:1"], model="m", api_key_env="SCORING_SECRET")


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_models.remote.transport._LARGEST_ANSWER", 1 << 20)
    with serving(lambda _: Answer(b"[" + b"0," * (1 << 20) + b"0]")) as server:
        transport = Transport([server.url], model="m", sleep=Pauses())
        with pytest.raises(ScoringServerError, match="more than 1 MiB"):
            run(lambda: posted(transport))
        assert len(server.calls) == 1


def test_each_server_is_asked() -> None:
    async def ask(transport: Transport) -> Any:
        try:
            return await transport.get_each("/v1/models")
        finally:
            await transport.aclose()

    with serving(lambda _: Answer("a")) as first, serving(lambda _: Answer("b")) as second:
        transport = Transport([first.url, second.url], model="m")
        assert run(lambda: ask(transport)) == ["a", "b"]
        assert [call.method for call in first.calls + second.calls] == ["GET", "GET"]
