"""The gateway on a real port, in front of scripted models and of the hostile endpoint, asked by real clients."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from gateways import ask, client, gateway
from magicore.errors import InputError, StoreError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel, ScriptedReply
from magicore.serve import Limits, create_app, run_server
from magicore.store.accounting import role_accounts
from magicore.store.run_store import RunStore
from magicore.testing.hostile import Faults, Habits, HostileEndpoint, Made, Service, running
from magicore.types import Usage
from reward_models.errors import RewardModelError

REWARDS = {"orm": "likelihood", "prm": "arithmetic"}
NUMBER = {"magicore": {"kind": "number"}}


def stored(out: Path) -> Usage:
    """Everything that a server's store says its language models cost."""
    store = RunStore(out / "store.sqlite")
    try:
        accounts = role_accounts(store.completion_rows(), store.failed_calls())
    finally:
        store.close()
    return sum((account.usage for account in accounts), Usage())


def stated(usage: Any) -> tuple[int, int, int]:
    return usage.prompt_tokens, usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens


@pytest.fixture(scope="module")
def upstream() -> Iterator[HostileEndpoint]:
    with running(HostileEndpoint(habits=Habits(reasoning="reasoning_content"))) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def served(upstream: HostileEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A gateway with both reward models, and its directory."""
    out = tmp_path_factory.mktemp("served") / "out"
    with gateway(model=upstream.name, out=out, **REWARDS) as url:
        yield url, out


class Watched:
    """A scripted model that keeps the requests it got."""

    def __init__(self, script: Callable[[Request, int], Any] | None = None, **options: Any) -> None:
        self.requests: list[Request] = []
        self._script = script or (lambda request, index: f"Step 1: so\nThe answer is {index % 2}.")
        self.model = ScriptedModel(self._reply, **options)

    def _reply(self, request: Request, index: int) -> Any:
        self.requests.append(request)
        return self._script(request, index)

    def of(self, role: str) -> list[Request]:
        return [request for request in self.requests if request.key.role == role]


def test_the_openai_client_gets_an_answer_and_usage_equals_the_store_s(served: tuple[str, Path]) -> None:
    url, out = served
    before = stored(out)
    question: Any = [{"role": "user", "content": "What is 3 plus 4?"}]
    with client(url) as openai_client:
        reply: Any = openai_client.chat.completions.create(
            model="magicore:k=6,router=hard,iterations=1",
            messages=question,
            extra_body=NUMBER,
        )
    after = stored(out)
    assert stated(reply.usage) == (
        after.prompt - before.prompt,
        after.completion - before.completion,
        after.reasoning - before.reasoning,
    )
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    [choice] = reply.choices
    told = choice.magicore
    assert told["verdict"]["easy"] is False and told["rounds"] == 2 and told["kind"] == "number"
    assert told["answer"] in choice.message.content and told["votes"][0]["answer"] == told["answer"]
    assert choice.finish_reason == "stop"
    assert {row["role"] for row in reply.magicore["usage"]} == {"solver", "reviewer", "refiner"}
    assert reply.magicore["calls"] == after.calls - before.calls and reply.magicore["reused"]["calls"] == 0
    store = RunStore(out / "store.sqlite")
    texts = [row.completion.text for row in store.completion_rows() if row.problem == reply.id]
    store.close()
    assert choice.message.content in texts


def test_a_stream_tells_of_progress_then_the_answer_then_usage(served: tuple[str, Path]) -> None:
    url, out = served
    before = stored(out)
    with client(url) as openai_client:
        pieces: list[Any] = list(
            openai_client.chat.completions.create(
                model="magicore:k=4,router=hard,iterations=1",
                messages=[{"role": "user", "content": "What is 30 plus 4?"}],
                stream=True,
                stream_options={"include_usage": True},
                extra_body=NUMBER,
            )
        )
    deltas = [piece.choices[0].delta for piece in pieces if piece.choices]
    reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert "solver: 4 samples" in reasoning and "reviewer, round 1: 1 sample" in reasoning
    assert deltas[0].role == "assistant"
    end, usage = pieces[-2], pieces[-1]
    assert "".join(delta.content or "" for delta in deltas).startswith("Step 1: 30 + 4")
    assert end.choices[0].finish_reason == "stop" and end.choices[0].magicore["answer"] is not None
    after = stored(out)
    assert usage.choices == [] and stated(usage.usage)[:2] == (
        after.prompt - before.prompt,
        after.completion - before.completion,
    )
    assert all(piece.usage is None for piece in pieces[:-1]) and usage.magicore["method"] == "magicore"


def test_progress_can_be_left_out(served: tuple[str, Path]) -> None:
    body = {"stream": True, "magicore": {"kind": "number", "progress": False}}
    lines = ask(served[0], model="self-consistency:k=2", **body).text.splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert lines[-2:] == ["data: [DONE]", ""] and len(events) >= 2
    assert not any("solver:" in json.dumps(event) for event in events)


def test_curl_gets_an_answer(served: tuple[str, Path]) -> None:
    body = {"model": "cot", "messages": [{"role": "user", "content": "What is 5 plus 4?"}], **NUMBER}
    command = ["curl", "-sS", f"{served[0]}/v1/chat/completions", "--json", json.dumps(body), "--noproxy", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reply = json.loads(done.stdout)
    assert reply["object"] == "chat.completion" and reply["choices"][0]["message"]["content"].startswith(
        "Step 1: 5 + 4"
    )


def test_models_are_the_methods(served: tuple[str, Path]) -> None:
    with client(served[0]) as openai_client:
        names = {model.id for model in openai_client.models.list()}
        assert {"magicore", "weighted-self-consistency", "mars", "cot"} <= names
        assert openai_client.models.retrieve("mars:reviewers=3").id == "mars:reviewers=3"
        with pytest.raises(openai.NotFoundError, match="did you mean 'mars'"):
            openai_client.models.retrieve("marz")


def test_the_solver_gets_the_client_s_conversation_and_reviewers_a_question() -> None:
    watched = Watched(logprobs=True)
    turns = [
        {"role": "system", "content": "Be brief.\n"},
        {"role": "user", "content": " What is 1 + 1? "},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "And\n2 + 2?"},
    ]
    with gateway(model=watched.model, **REWARDS) as url:
        reply = ask(url, model="magicore:k=2,router=hard,iterations=1", messages=turns, **NUMBER)
        assert reply.status_code == 200, reply.text
        solver = watched.of("solver")[0]
        assert list(solver.messages) == turns
        asked = watched.of("reviewer")[0].messages[-1]["content"]
        assert "System: Be brief.\n\n\nUser:  What is 1 + 1? \n\nAssistant: 2\n\nUser: And\n2 + 2?" in asked
        own = {"magicore": {"kind": "number", "question": "What is 2 + 2?"}}
        ask(url, model="magicore:k=2,router=hard,iterations=1", messages=turns, **own)
        assert "Question: What is 2 + 2?\n" in watched.of("reviewer")[-1].messages[-1]["content"] + "\n"


def test_the_request_s_own_sampling_is_respected_and_reviews_are_not_cut() -> None:
    watched = Watched(logprobs=True)
    own = {"temperature": 0.3, "top_p": 0.5, "max_completion_tokens": 77, "stop": ["END", ""], "seed": 12}
    with gateway(model=watched.model, temperature=0.9, max_tokens=50, **REWARDS) as url:
        ask(url, model="magicore:k=2,router=hard,iterations=1", **NUMBER, **own)
        ask(url, model="cot", **NUMBER)
    solver, reviewer, refiner = (watched.of(role)[0] for role in ("solver", "reviewer", "refiner"))
    for request in (solver, refiner):
        sampling = request.sampling
        assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.3, 0.5, 77)
        assert sampling.stop == ("END",) and request.seed == 12
    assert reviewer.sampling.stop == () and reviewer.sampling.max_tokens == 77
    default = watched.of("solver")[-1]
    assert (default.sampling.temperature, default.sampling.top_p, default.sampling.max_tokens) == (0.9, 0.95, 50)


def test_equal_seeds_are_answered_from_the_store_and_no_seed_draws_anew(tmp_path: Path) -> None:
    watched = Watched()
    fields = {"model": "self-consistency:k=3", **NUMBER}
    with gateway(model=watched.model, cache=str(tmp_path / "cache.sqlite")) as url:
        first, again = (ask(url, seed=5, **fields).json() for _ in range(2))
        assert len(watched.requests) == 3
        assert first["choices"][0]["message"] == again["choices"][0]["message"] and first["usage"] == again["usage"]
        assert first["magicore"]["reused"]["calls"] == 0 and again["magicore"]["reused"]["calls"] == 1
        fresh = [ask(url, **fields).json()["magicore"]["seed"] for _ in range(2)]
        assert len({5, *fresh}) == 3 and len(watched.requests) == 9
    with gateway(model=watched.model, cache=str(tmp_path / "cache.sqlite"), seed=5) as url:
        assert ask(url, **fields).json()["magicore"]["seed"] == 5
    assert len(watched.requests) == 9


def test_n_answers_are_found_independently() -> None:
    watched = Watched(lambda request, index: f"The answer is {request.seed % 1000}.")
    with gateway(model=watched.model) as url:
        reply = ask(url, model="self-consistency:k=2", n=3, seed=41, **NUMBER).json()
        assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]
        seeds = [choice["magicore"]["seed"] for choice in reply["choices"]]
        assert seeds[0] == 41 and len(set(seeds)) == 3
        assert [choice["magicore"]["answer"] for choice in reply["choices"]] == [str(seed % 1000) for seed in seeds]
        assert reply["magicore"]["calls"] == 3
        assert ask(url, n=17).status_code == 400


def test_an_answer_that_fails_is_left_out_of_several() -> None:
    from magicore.errors import RequestRefused

    def script(request: Request, index: int) -> str:
        if request.seed != 1:
            raise RequestRefused("refused the request with status 400", model="m")
        return "The answer is 1."

    watched = Watched(script)
    with gateway(model=watched.model) as url:
        ask(url, seed=1, **NUMBER)
        reply = ask(url, n=2, seed=1, content="2?", **NUMBER).json()
        assert [choice["index"] for choice in reply["choices"]] == [0]
        assert "1 of 2 answers failed" in reply["choices"][0]["magicore"]["warnings"][0]
        assert ask(url, n=2, seed=2, **NUMBER).json()["error"]["code"] == "upstream_refused"


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"model": "gpt-4o"}, 404, "model", "model_not_found"),
        ({"model": "magicore"}, 404, "model", "model_not_found"),
        ({"model": "mars:k=2"}, 400, "model", "invalid_value"),
        ({"tools": [{"type": "function"}]}, 400, "tools", "unsupported_parameter"),
        ({"logprobs": True}, 400, "logprobs", "unsupported_parameter"),
        ({"top_k": 5}, 400, "top_k", "unknown_parameter"),
        ({"temperature": 9}, 400, "temperature", "invalid_value"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "messages", "invalid_value"),
        ({"messages": "hi"}, 400, "messages", "invalid_value"),
        ({"magicore": {"kind": "poem"}}, 400, "magicore.kind", "invalid_value"),
        ({"magicore": {"frobnicate": 1}}, 400, "magicore", "invalid_value"),
        ({"magicore": {"kind": "choice", "choices": ["a"]}}, 400, "magicore.choices", "invalid_value"),
        ({"magicore": {"budget": {"money": 1}}}, 400, "magicore", "invalid_value"),
        ({"model": "self-consistency:k=5000"}, 400, "model", "too_many_completions"),
        ({"model": "self-consistency:k=600", "n": 2}, 400, "n", "too_many_completions"),
    ],
)
def test_a_wrong_request_gets_an_error_in_openai_s_shape(
    plain: tuple[str, Watched], fields: dict[str, Any], status: int, param: str, code: str
) -> None:
    url, watched = plain
    reply = ask(url, **fields)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert watched.requests == []


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[str, Watched]]:
    """A gateway without reward models, and its model, which no test asks."""
    watched = Watched()
    with gateway(model=watched.model) as url:
        yield url, watched


def test_bodies_and_routes_that_are_none(plain: tuple[str, Watched]) -> None:
    url, _ = plain

    def post(content: bytes, kind: str = "application/json") -> httpx2.Response:
        return httpx2.post(
            f"{url}/v1/chat/completions", content=content, headers={"content-type": kind}, trust_env=False
        )

    for reply in (
        post(b"{"),
        post(b"[1]"),
        post(b"{}"),
        post(b"[" * 100_000),
        post(b"\xff"),
        post(b"{}", "text/plain"),
    ):
        assert reply.status_code == 400 and reply.json()["error"]["type"] == "invalid_request_error"
    assert "content-type application/json" in post(b"{}", "text/plain").json()["error"]["message"]
    assert httpx2.get(f"{url}/v1/completions", trust_env=False).json()["error"]["code"] == "not_found"
    wrong = httpx2.get(f"{url}/v1/chat/completions", trust_env=False)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("habits", "faults", "fields", "status", "code"),
    [
        ({"key": "right"}, None, {}, 502, "upstream_authentication_failed"),
        ({"context": 50}, None, {"max_tokens": 90}, 400, "context_length_exceeded"),
        ({}, {"server-error": 1.0}, {}, 502, "upstream_error"),
        ({}, {"stall": 1.0}, {}, 504, "upstream_timeout"),
    ],
)
def test_what_the_upstream_does_wrong_has_its_status(
    habits: dict[str, Any],
    faults: Any,
    fields: dict[str, Any],
    status: int,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("magicore.llms.sampler.RetryPolicy.wait", lambda *_: 0.0)
    wrong = Faults(rate=1.0, kinds=faults) if faults else Faults()
    with running(HostileEndpoint(habits=Habits(**habits), faults=wrong)) as endpoint:
        table = {"name": "openai:hostile", "urls": list(endpoint.urls), "idle_timeout": 0.1}
        with gateway(model="m", models={"m": table}) as url:
            for stream in (False, True):
                reply = ask(url, stream=stream, **fields, **NUMBER)
                error = reply.json() if reply.status_code != 200 else json.loads(reply.text.split("data: ")[-2])
                assert error["error"]["code"] == code
                assert reply.status_code == status or (stream and faults is not None)


def test_nothing_at_the_upstream_s_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with gateway(model=f"openai:m@{address}") as url:
        reply = ask(url)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "upstream_unavailable")
        assert reply.headers["retry-after"] == "1"


@contextmanager
def leaving(url: str, **fields: Any) -> Iterator[socket.socket]:
    """A request on a connection that is closed when the block ends, answered or not."""
    body = json.dumps({"messages": [{"role": "user", "content": "What is 3 plus 4?"}], **fields}).encode()
    host, port = url.removeprefix("http://").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        yield connection


def until(condition: Callable[[], bool], seconds: float = 20.0) -> float:
    """Wait until it holds; how long that took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "this does not come about"
        time.sleep(0.01)
    return time.monotonic() - started


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_the_spending(stream: bool) -> None:
    service = Service(slots=64, sample_s=0.3)
    habits = Habits(n="ignored")
    with running(HostileEndpoint(service=service, habits=habits, writer=Made(tokens=20))) as endpoint:
        table = {"name": "openai:hostile", "urls": list(endpoint.urls), "concurrency": 4}
        ledger = endpoint.ledger
        with gateway(model="m", models={"m": table}) as url:
            with leaving(url, model="self-consistency:k=400", stream=stream, **NUMBER):
                until(lambda: len(list(ledger.where("delivered"))) >= 4 and any(ledger.where("pending")))
            until(lambda: not any(ledger.where("pending")))
            sent = len(ledger.entries)
            time.sleep(0.7)  # two more replies' time
            assert len(ledger.entries) == sent < 100
            assert ask(url, "What is 5 plus 5?", **NUMBER).status_code == 200
            text = httpx2.get(f"{url}/metrics", trust_env=False).text
            assert "magicore_requests_working 0.0" in text
            if not stream:
                assert 'magicore_requests_total{path="/v1/chat/completions",status="499"} 1.0' in text


def test_200_requests_at_once_with_a_fifth_of_the_replies_faulty_all_end() -> None:
    faults = Faults(rate=0.2, seed=3, retry_after_s=0.05, slow_s=0.1)
    with running(HostileEndpoint(faults=faults)) as endpoint:
        table = {"name": "openai:hostile", "urls": list(endpoint.urls), "idle_timeout": 0.5}
        with gateway(model="m", models={"m": table}, limits=Limits(concurrency=100, waiting=100)) as url:

            async def all_of_them() -> list[httpx2.Response]:
                async with httpx2.AsyncClient(timeout=100, trust_env=False, limits=httpx2.Limits()) as http:

                    def one(number: int) -> Any:
                        body = {
                            "model": "self-consistency:k=3",
                            "messages": [{"role": "user", "content": f"What is {number} plus 4?"}],
                            "seed": 1,
                            "stream": number % 4 == 0,
                            **NUMBER,
                        }
                        return http.post(f"{url}/v1/chat/completions", json=body)

                    return list(await asyncio.gather(*(one(number) for number in range(200))))

            replies = asyncio.run(all_of_them())
            totals = endpoint.ledger.totals()
    answers, errors = 0, 0
    for number, reply in enumerate(replies):
        if number % 4 == 0 and reply.status_code == 200:
            events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
            assert reply.text.endswith("data: [DONE]\n\n")
            found = events[-1]
        else:
            found = reply.json()
        if "error" in found:
            assert set(found["error"]) == {"message", "type", "param", "code"}
            errors += 1
        else:
            assert found["choices"][0]["finish_reason"] in ("stop", "length")
            answers += 1
    assert answers + errors == 200 and answers > 150
    assert sum(totals["faults"].values()) > 20 and totals["pending"] == 0


def test_a_slow_request_blocks_no_other() -> None:
    release = asyncio.Event()

    async def script(request: Request, index: int) -> str:
        if "slow" in request.messages[-1]["content"]:
            while not release.is_set():
                await asyncio.sleep(0.01)
        return "The answer is 1."

    with (
        gateway(model=Watched(script).model) as url,
        leaving(url, model="cot", messages=[{"role": "user", "content": "slow"}]) as slow,
    ):
        assert ask(url, "quick", **NUMBER).status_code == 200
        assert httpx2.get(f"{url}/health", trust_env=False).json() == {"status": "ok"}
        release.set()
        assert slow.recv(12) == b"HTTP/1.1 200"


def test_a_request_of_many_calls_keeps_no_other_waiting() -> None:
    with running(HostileEndpoint(service=Service(sample_s=0.2), habits=Habits(n="ignored"))) as endpoint:
        table = {"name": "openai:hostile", "urls": list(endpoint.urls), "concurrency": 2, "max_n": 1}
        with gateway(model="m", models={"m": table}) as url, leaving(url, model="self-consistency:k=400", **NUMBER):
            until(lambda: len(endpoint.ledger.entries) >= 4)
            assert ask(url, "What is 5 plus 5?", model="self-consistency:k=3", **NUMBER).status_code == 200
            assert len(endpoint.ledger.entries) < 100


def test_more_requests_than_may_wait_are_asked_to_come_later() -> None:
    release = asyncio.Event()

    async def script(request: Request, index: int) -> str:
        while not release.is_set():
            await asyncio.sleep(0.01)
        return "The answer is 1."

    watched = Watched(script)
    with gateway(model=watched.model, limits=Limits(concurrency=1, waiting=1, body_bytes=2000)) as url:
        with leaving(url, model="cot", seed=1) as first:
            until(lambda: len(watched.requests) == 1)
            with leaving(url, model="cot", seed=2) as second:
                until(lambda: "waiting 1.0" in httpx2.get(f"{url}/metrics", trust_env=False).text)
                reply = ask(url)
                assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limit_exceeded")
                assert reply.headers["retry-after"] == "1"
                release.set()
                assert first.recv(12) == second.recv(12) == b"HTTP/1.1 200"
        large = ask(url, "x" * 2000)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "request_too_large")
        assert ask(url, "x" * 20_000).status_code == 413


def test_a_request_that_does_not_arrive_is_given_up() -> None:
    with gateway(model=Watched().model, limits=Limits(body_s=0.2)) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: 9\r\n\r\n{{".encode()
            )
            assert connection.recv(12) == b"HTTP/1.1 408"


def test_a_key_is_wanted_of_everyone() -> None:
    with gateway(model=Watched().model, api_key="right") as url:
        with client(url, "right") as openai_client:
            assert len(openai_client.models.list().data) > 3
        with client(url, "wrong") as openai_client, pytest.raises(openai.AuthenticationError) as caught:
            openai_client.models.list()
        assert caught.value.code == "invalid_api_key" and "right" not in str(caught.value)
        for path in ("/metrics", "/openapi.json", "/v1/models"):
            assert httpx2.get(url + path, trust_env=False).status_code == 401
        assert httpx2.get(f"{url}/health", trust_env=False).status_code == 200


def test_without_a_key_only_this_machine_is_answered(plain: tuple[str, Watched]) -> None:
    reply = httpx2.get(f"{plain[0]}/v1/models", headers={"host": "evil.example"}, trust_env=False)
    assert reply.status_code == 403 and reply.json()["error"]["code"] == "forbidden"
    with pytest.raises(InputError, match=r"0\.0\.0\.0 can be reached from other machines, so a key is needed"):
        run_server(create_app(model="scripted"), host="0.0.0.0", port=0)


def test_budgets_end_a_request_with_what_it_has_or_say_so() -> None:
    watched = Watched(logprobs=True)
    with gateway(model=watched.model, budget={"problem.tokens": 400}, max_tokens=50, **REWARDS) as url:
        fields = {"model": "magicore:k=3,router=hard,iterations=2"}
        reply = ask(url, **fields, **NUMBER).json()
        [choice] = reply["choices"]
        assert (choice["finish_reason"], choice["magicore"]["stop"]) == ("length", "budget")
        assert reply["usage"]["total_tokens"] <= 400 and choice["message"]["content"].startswith("Step 1")
        small = ask(url, **fields, magicore={"kind": "number", "budget": {"tokens": 20}})
        assert (small.status_code, small.json()["error"]["code"]) == (400, "budget_exceeded")
        several = ask(url, model="cot", n=9, magicore={"kind": "number", "budget": {"tokens": 120}}).json()
        assert 0 < len(several["choices"]) < 9 and several["usage"]["total_tokens"] <= 120
    with gateway(model=watched.model, budget={"run.tokens": 100}, max_tokens=50) as url:
        assert ask(url, **NUMBER).status_code == 200
        spent = [ask(url, **NUMBER) for _ in range(9)][-1]
        assert (spent.status_code, spent.json()["error"]["code"]) == (429, "insufficient_quota")
        assert spent.headers["x-should-retry"] == "false"


def test_cut_and_filtered_chains_are_called_that() -> None:
    replies = {
        "cut": ScriptedReply(text="Step 1: " + "and " * 80),
        "filtered": ScriptedReply(text="No.", stop="filter"),
    }
    watched = Watched(lambda request, index: replies[request.messages[-1]["content"]])
    with gateway(model=watched.model) as url:
        for name, finish in (("cut", "length"), ("filtered", "content_filter")):
            [choice] = ask(url, name, max_tokens=20).json()["choices"]
            assert choice["finish_reason"] == finish and choice["magicore"]["answer"] is None
            assert "no chain states an answer" in choice["magicore"]["warnings"][-1]


def test_a_saved_calibration_routes_single_questions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(lambda request, index: f"The answer is {index}.", logprobs=True)
    fields = {"model": "magicore:k=5,iterations=0", "seed": 1, **NUMBER}
    saved = tmp_path / "calibration.json"
    verdicts = []
    for mu in (0.0, 2.0):
        saved.write_text(
            json.dumps({"mu": mu, "sigma": 0.1, "n": 9, "population": "batch", "orm": "judge", "version": 1})
        )
        with gateway(model=watched.model, calibration=str(saved), orm="constant:0.5", prm="constant:0.5") as url:
            [choice] = ask(url, **fields).json()["choices"]
            verdicts.append(choice["magicore"]["verdict"]["easy"])
            assert not any("calibrated on this problem" in warning for warning in choice["magicore"]["warnings"])
    assert verdicts == [True, False]
    assert "was made with orm judge; here it is constant:0.5" in caplog.text
    with gateway(model=watched.model, orm="constant:0.5", prm="constant:0.5") as url:
        [choice] = ask(url, **fields).json()["choices"]
        assert any("calibrated on this problem" in warning for warning in choice["magicore"]["warnings"])
    with pytest.raises(InputError, match="magicore calibrate DIR"):
        create_app(model="scripted", calibration="running")


def test_settings_of_a_file_hold_and_a_directory_keeps_what_was_paid_for(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('seed = 9\nkind = "number"\n[options]\nk = 2\n')
    watched = Watched()
    for _ in range(2):
        with gateway(config=tmp_path / "run.toml", model=watched.model, out=tmp_path / "out") as url:
            reply = ask(url, model="self-consistency").json()
            assert reply["magicore"]["seed"] == 9 and reply["choices"][0]["magicore"]["kind"] == "number"
    assert len(watched.requests) == 2
    with pytest.raises(StoreError, match="--force"):
        run_server(create_app(model=watched.model, out=tmp_path / "out", max_tokens=5), port=0)


def test_reward_models_that_fail_and_defects_have_their_status(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        name = "failing"

        def score(self, solutions: Any) -> Any:
            if "defect" in solutions[0].question:
                raise ZeroDivisionError("secret detail")
            raise RewardModelError("the checkpoint is damaged", model="failing")

    with gateway(model=Watched().model, orm=Failing(), kind="number") as url:
        for content, status, code in (("q", 502, "reward_model_failed"), ("defect", 500, "internal_error")):
            for stream in (False, True):
                reply = ask(url, content, model="best-of-k:k=2", stream=stream)
                body = json.loads(reply.text.split("data: ")[-2]) if stream else reply.json()
                assert body["error"]["code"] == code and (stream or reply.status_code == status)
                assert "secret detail" not in reply.text
    assert "a request failed" in caplog.text and "secret detail" in caplog.text


def test_temperature_0_and_several_chains_are_warned_of() -> None:
    with gateway(model=Watched().model) as url:
        warnings = ask(url, model="self-consistency:k=2", temperature=0).json()["choices"][0]["magicore"]["warnings"]
        assert "at temperature 0 the chains of a question are alike" in warnings[0]
