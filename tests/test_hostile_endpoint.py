"""The hostile endpoint: every fault does what it says, by seed, and the ledger knows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from magicore._sync import run_sync
from magicore.testing.hostile import (
    KINDS,
    LOSING,
    REFUSING,
    FaultKind,
    Faults,
    Habits,
    HostileEndpoint,
    Made,
    Recorded,
    Service,
    count_tokens,
    endpoint_process,
    running,
)
from magicore.testing.hostile.service import Slots


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=1.0, trust_env=False) as made:
        yield made


def body(content: str = "What is 3 plus 4?", **more: Any) -> dict[str, Any]:
    return {"model": "hostile", "messages": [{"role": "user", "content": content}], "max_tokens": 200, **more}


def ask(client: httpx2.Client, endpoint: HostileEndpoint, *, replica: int = 0, **more: Any) -> httpx2.Response:
    return client.post(f"{endpoint.urls[replica]}/chat/completions", json=body(**more))


def always(kind: FaultKind, **more: Any) -> Faults:
    return Faults(rate=1.0, kinds={kind: 1.0}, **more)


def test_a_good_reply_is_booked_to_the_token(client: httpx2.Client) -> None:
    with running(HostileEndpoint()) as endpoint:
        reply = ask(client, endpoint, n=3, seed=5).json()
    texts = [choice["message"]["content"] for choice in reply["choices"]]
    assert len(texts) == 3 and all("3 + 4 =" in text for text in texts)
    assert reply["usage"]["completion_tokens"] == sum(map(count_tokens, texts))
    totals = endpoint.ledger.totals()
    assert totals["delivered"] == {
        "replies": 1,
        "choices": 3,
        "prompt": reply["usage"]["prompt_tokens"],
        "completion": reply["usage"]["completion_tokens"],
    }
    assert totals["stated"]["completion"] == totals["delivered"]["completion"] and totals["repeated"] == 0


def test_equal_seeds_give_equal_samples_and_a_delivered_request_again_is_a_repetition(client: httpx2.Client) -> None:
    with running(HostileEndpoint(writer=Made())) as endpoint:
        texts = [ask(client, endpoint, seed=seed).json()["choices"][0]["message"]["content"] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert endpoint.ledger.totals()["repeated"] == 1


@pytest.mark.parametrize(
    ("kind", "status"), [("rate-limit", 429), ("rate-limit-after", 429), ("server-error", 500), ("unavailable", 503)]
)
def test_refusals_generate_nothing(client: httpx2.Client, kind: FaultKind, status: int) -> None:
    with running(HostileEndpoint(faults=always(kind, retry_after_s=7))) as endpoint:
        reply = ask(client, endpoint)
    assert reply.status_code == status
    assert reply.headers.get("retry-after") == ("7" if kind == "rate-limit-after" else None)
    totals = endpoint.ledger.totals()
    assert totals["refused"] == 1 and totals["delivered"]["replies"] == totals["undelivered"]["replies"] == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["reset", "stall"])
def test_broken_replies_are_generated_and_not_delivered(client: httpx2.Client, kind: FaultKind, stream: bool) -> None:
    with running(HostileEndpoint(faults=always(kind))) as endpoint:
        with pytest.raises(httpx2.TransportError):
            ask(client, endpoint, stream=stream)
        totals = endpoint.ledger.totals()
    assert totals["undelivered"]["replies"] == 1 and totals["undelivered"]["completion"] > 0
    assert totals["delivered"]["replies"] == 0


def test_malformed_and_empty_replies_carry_no_choice(client: httpx2.Client) -> None:
    with running(HostileEndpoint(faults=always("malformed"))) as endpoint, pytest.raises(json.JSONDecodeError):
        ask(client, endpoint).json()
    assert endpoint.ledger.totals()["undelivered"]["replies"] == 1
    with running(HostileEndpoint(faults=always("empty"))) as endpoint:
        reply = ask(client, endpoint).json()
    assert reply["choices"] == [] and reply["usage"] is None
    assert endpoint.ledger.totals()["undelivered"]["replies"] == 1


def test_marred_replies(client: httpx2.Client) -> None:
    with running(HostileEndpoint(faults=always("null"))) as endpoint:
        assert ask(client, endpoint).json()["choices"][0]["message"]["content"] is None
    with running(HostileEndpoint(faults=always("fewer"))) as endpoint:
        assert len(ask(client, endpoint, n=6).json()["choices"]) == 3
    with running(HostileEndpoint(writer=Made(), faults=always("duplicates"))) as endpoint:
        assert len({one["message"]["content"] for one in ask(client, endpoint, n=6).json()["choices"]}) == 1
    with running(HostileEndpoint(faults=always("length-as-stop"))) as endpoint:
        choice = ask(client, endpoint, max_tokens=50).json()["choices"][0]
        assert choice["finish_reason"] == "stop" and count_tokens(choice["message"]["content"]) == 50
    with running(HostileEndpoint(faults=always("wrong-usage"))) as endpoint:
        usage = ask(client, endpoint).json()["usage"]
    totals = endpoint.ledger.totals()  # booked once the reply is gone, which the client may see first
    assert usage["completion_tokens"] == totals["stated"]["completion"] != totals["delivered"]["completion"]
    with running(HostileEndpoint(faults=always("slow", slow_s=0.3))) as endpoint:
        started = time.monotonic()
        ask(client, endpoint)
        assert time.monotonic() - started >= 0.3


def test_faults_are_drawn_by_seed_at_their_rate_and_in_their_kinds() -> None:
    faults = Faults(rate=0.2, seed=3)
    drawn = [faults.draw(request, 0, 4) for request in range(5000)]
    assert drawn == [faults.draw(request, 0, 4) for request in range(5000)]
    assert 0.18 < sum(kind is not None for kind in drawn) / 5000 < 0.22
    assert {kind for kind in drawn if kind is not None} == set(KINDS)
    assert drawn != [Faults(rate=0.2, seed=4).draw(request, 0, 4) for request in range(5000)]
    alone = {faults.draw(request, 0, 1) for request in range(5000)}
    assert not alone & {"fewer", "duplicates"}
    assert not LOSING & REFUSING


def test_habits(client: httpx2.Client) -> None:
    habits = Habits(n="ignored", seed="refused", usage=False, stop_reasons=False, limit="max_completion_tokens")
    with running(HostileEndpoint(habits=habits)) as endpoint:
        refused = ask(client, endpoint, seed=1)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "seed"
        assert ask(client, endpoint).json()["error"]["param"] == "max_tokens"
        reply = client.post(
            f"{endpoint.urls[0]}/chat/completions", json={"model": "hostile", "messages": body()["messages"], "n": 4}
        ).json()
    assert len(reply["choices"]) == 1 and reply["usage"] is None and reply["choices"][0]["finish_reason"] is None


def test_a_key_that_is_refused_is_quoted_as_careless_servers_do(client: httpx2.Client) -> None:
    with running(HostileEndpoint(habits=Habits(key="right"))) as endpoint:
        client.headers["authorization"] = "Bearer wrong-key"
        reply = ask(client, endpoint)
    assert reply.status_code == 401 and "wrong-key" in reply.text


def test_a_stream_brings_the_same_text_and_usage(client: httpx2.Client) -> None:
    with running(HostileEndpoint(writer=Made())) as endpoint:
        whole = ask(client, endpoint, seed=1, n=2).json()
        lines = ask(client, endpoint, seed=1, n=2, stream=True).text.splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    texts = ["", ""]
    for part in (part for event in events for part in event["choices"]):
        texts[part["index"]] += part["delta"].get("content") or ""
    assert lines[-2] == "data: [DONE]" and len(events) > 10
    # Another body, so another draw; the lengths are those stated.
    assert events[-1]["usage"]["completion_tokens"] == sum(map(count_tokens, texts))
    assert whole["usage"]["prompt_tokens"] == events[-1]["usage"]["prompt_tokens"]


def test_slots_are_filled_first_come_first_served() -> None:
    slots = Slots(Service(slots=2, token_s=0.1, sample_s=1.0))
    assert slots.reserve(0.0, [10, 20]) == (0.0, 3.0)
    assert slots.reserve(0.0, [10]) == (2.0, 4.0)
    assert slots.reserve(3.5, [0, 0]) == (3.5, 5.0)


def test_a_full_queue_refuses(client: httpx2.Client) -> None:
    with running(HostileEndpoint(service=Service(slots=1, sample_s=0.05, queue=1))) as endpoint:
        assert ask(client, endpoint, n=2).status_code == 200
        assert ask(client, endpoint, n=3).status_code == 429


def test_replicas_share_a_ledger_and_die_apart(client: httpx2.Client) -> None:
    with running(HostileEndpoint(replicas=2)) as endpoint:
        assert endpoint.name == f"openai:hostile@{','.join(endpoint.urls)}"
        run_sync(endpoint.stop_replica(1))
        assert ask(client, endpoint, replica=0).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            ask(client, endpoint, replica=1)
        run_sync(endpoint.start_replica(1))
        assert ask(client, endpoint, replica=1).status_code == 200
    assert [entry.replica for entry in endpoint.ledger.entries] == [0, 1]


def test_a_client_that_leaves_is_gone() -> None:
    async def leave(endpoint: HostileEndpoint) -> None:
        async with httpx2.AsyncClient(timeout=0.2, trust_env=False) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.post(f"{endpoint.urls[0]}/chat/completions", json=body())
        await asyncio.sleep(0.05)

    with running(HostileEndpoint(service=Service(sample_s=5.0))) as endpoint:
        run_sync(leave(endpoint))
        assert endpoint.ledger.totals()["gone"]["replies"] == 1


def test_recorded_responses_are_found_by_their_question(client: httpx2.Client) -> None:
    rows = [
        {"problem": "a", "text": "Recorded. The final answer is 9.", "thinking": "so", "tokens": 8},
        {"problem": "a", "role": "reviewer", "text": "Good."},
    ]
    writer = Recorded(rows=rows, questions={"a": "How many are nine?"})
    with running(HostileEndpoint(writer=writer, habits=Habits(reasoning="reasoning_content"))) as endpoint:
        solved = ask(client, endpoint, content="Solve this.\n\nHow many are nine?").json()
        reviewed = ask(client, endpoint, content="Question: How many are nine?\n\nReview the solution.").json()
        other = ask(client, endpoint, content="What is 1 plus 1?").json()
    message = solved["choices"][0]["message"]
    assert message["content"] == "Recorded. The final answer is 9." and message["reasoning_content"] == "so"
    assert solved["usage"]["completion_tokens"] == 8
    assert reviewed["choices"][0]["message"]["content"] == "Good."
    assert "1 + 1" in other["choices"][0]["message"]["content"]


@pytest.mark.parametrize("tokens", [8, 39, 40, 100, 999])
def test_made_samples_have_their_length(tokens: int) -> None:
    written = Made(tokens=tokens)([], 12345)
    assert written.tokens == count_tokens(written.text)
    assert abs(written.tokens - max(tokens, 13)) <= 1
    assert written.text.splitlines()[-1].startswith("The final answer is ")


def test_it_runs_as_a_process_of_its_own(client: httpx2.Client) -> None:
    with endpoint_process("--made", "20", "--replicas", "2", "--habit", "n=ignored", "--fault-rate", "0") as endpoint:
        assert len(endpoint.urls) == 2
        reply = client.post(f"{endpoint.urls[1]}/chat/completions", json=body(n=3), timeout=20).json()
        assert len(reply["choices"]) == 1
        assert endpoint.ledger()["delivered"]["replies"] == 1 and endpoint.entries()[0]["replica"] == 1
        endpoint.clear()
        assert endpoint.ledger()["requests"] == 0
    with pytest.raises(RuntimeError, match="there is no fault 'fire'"), endpoint_process("--fault", "fire"):
        pass
