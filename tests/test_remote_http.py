"""The plain HTTP contract between a client and the real server, on a real socket."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_servers import Answer, Call, serving
from reward_models.base import requirements
from reward_models.contract import (
    ContractError,
    Kind,
    answer_from_json,
    answer_to_json,
    dumps,
    loads,
    request_from_json,
    request_to_json,
)
from reward_models.errors import (
    CapabilityError,
    RewardModelError,
    ScoringServerError,
    TagInTextError,
    UnknownRewardModelError,
)
from reward_models.registry import load_outcome_model, load_process_model
from reward_models.server import ScoringService, create_app, run_server
from reward_models.steps import split_steps
from reward_models.types import (
    OutcomeScore,
    ScoringUsage,
    Solution,
    Step,
    StepScore,
    StepScores,
    Unscored,
)

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

TEXT = "First, 2 + 3 = 5.\n\nThen 5 * 4 = 21.\n\nSo the answer is 21."
SOLUTIONS = [
    Solution(question="What is (2 + 3) * 4?", text=TEXT, steps=split_steps(TEXT), id="a"),
    Solution(question="What is 1 + 1?", text="1 + 1 = 2", id="b"),
    Solution(question="Half a pair: \ud800", text="so \udfff = 1\n\n\u2028", id=None, thinking="hm \ud83d"),
]


@contextmanager
def served(service: ScoringService, *, api_key: str | None = None) -> Iterator[str]:
    """The real server in a thread; its address."""
    config = uvicorn.Config(create_app(service, api_key=api_key), host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def opened() -> Iterator[Callable[..., Any]]:
    """Opens clients, and closes their connections."""
    clients = []

    def open_client(kind: Kind, name: str, **options: Any) -> Any:
        load: Any = load_outcome_model if kind == "outcome" else load_process_model
        clients.append(load(name, **options))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


class Given:
    """A model whose answers are given."""

    def __init__(self, respond: Callable[[Solution], Any], name: str = "given", **more: Any) -> None:
        self.name = name
        self.fingerprint = "print-1"
        self.respond = respond
        self.batches: list[int] = []
        self.__dict__.update(more)

    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        self.batches.append(len(solutions))
        return [self.respond(solution) for solution in solutions]


def outcome(solution: Solution) -> OutcomeScore:
    return OutcomeScore(value=len(solution.text) % 10 / 10, raw=-1.5, activation="sigmoid", tokens=7)


FREE: list[tuple[Kind, str]] = [
    ("outcome", "constant:0.25"),
    ("outcome", "likelihood"),
    ("outcome", "random:3"),
    ("process", "arithmetic"),
    ("process", "constant:0.75"),
    ("process", "random:5"),
]


@pytest.mark.parametrize(("kind", "name"), FREE)
def test_every_model_without_a_checkpoint_scores_there_as_here(
    kind: Kind, name: str, opened: Callable[..., Any]
) -> None:
    load: Any = load_outcome_model if kind == "outcome" else load_process_model
    here = load(name)
    with served(ScoringService(load(name), kind)) as url:
        there = opened(kind, f"{name}@{url}")
        assert there.score(SOLUTIONS) == here.score(SOLUTIONS)
        assert there.score([]) == []

        async def later() -> Any:
            try:
                return await there.ascore(SOLUTIONS)
            finally:
                await there.aclose()

        assert asyncio.run(later()) == here.score(SOLUTIONS)


def test_log_probabilities_are_sent_where_they_are_required(opened: Callable[..., Any]) -> None:
    solution = Solution(question="q", text="t", token_logprobs=(-0.5, -1.0), top_logprobs=((-0.5, -2.0), (-1.0, -3.0)))
    here = load_outcome_model("likelihood")
    with served(ScoringService(load_outcome_model("likelihood"), "outcome")) as url:
        there = opened("outcome", f"likelihood@{url}")
        assert there.requires == requirements(here) == {"token_logprobs"}
        assert there.score([solution]) == here.score([solution])
        assert there.score([solution])[0].value is not None


def test_the_client_says_what_the_model_says(opened: Callable[..., Any]) -> None:
    with served(ScoringService(Given(outcome, requires=frozenset({"generate", "token_logprobs"})), "outcome")) as url:
        there = opened("outcome", f"given@{url}")
        assert there.name == f"given@{url}"
        assert there.fingerprint == "given print-1"
        assert there.requires == {"token_logprobs"}
        there.score(SOLUTIONS)
        assert there.usage == ScoringUsage(prompt_tokens=21, calls=2)
    with served(ScoringService(load_process_model("constant:0.5"), "process")) as url:
        assert opened("process", f"constant@{url}").aggregation == "product"


def test_typed_reasons_survive(opened: Callable[..., Any]) -> None:
    def respond(solution: Solution) -> StepScores:
        scores = (
            StepScore(value=0.5, raw=0.0),
            StepScore(value=None, raw=9.0, unscored=Unscored(code="past_context", reason="too “long”")),
            StepScore(value=None, unscored=Unscored(code="empty_step", reason="\ud800")),
        )
        return StepScores(steps=solution.steps, scores=scores, activation="softmax", aggregation="min", tokens=None)

    model = Given(respond)
    with served(ScoringService(model, "process")) as url:
        assert opened("process", f"given@{url}").score(SOLUTIONS[:1]) == model.score(SOLUTIONS[:1])


def test_errors_of_the_model_keep_their_kind(opened: Callable[..., Any]) -> None:
    def respond(solution: Solution) -> Any:
        if solution.id == "a":
            raise TagInTextError("the text holds the tag", model="given", solution="a")
        if solution.id == "b":
            raise ScoringServerError("its own server is away", model="given", retryable=False)
        raise ZeroDivisionError("secret detail")

    with served(ScoringService(Given(respond), "outcome")) as url:
        there = opened("outcome", f"given@{url}")
        there._transport.patience = type(there._transport.patience)(attempts=1)
        with pytest.raises(TagInTextError, match="the text holds the tag"):
            there.score(SOLUTIONS[:1])
        with pytest.raises(ScoringServerError, match="its own server is away"):
            there.score(SOLUTIONS[1:2])
        with pytest.raises(ScoringServerError, match="failed with ZeroDivisionError") as caught:
            there.score(SOLUTIONS[2:])
    assert "secret" not in str(caught.value)


def test_requests_that_wait_are_scored_together(opened: Callable[..., Any]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(solution: Solution) -> OutcomeScore:
        begun.set()
        assert go_on.wait(10)
        return outcome(solution)

    model = Given(slow)
    service = ScoringService(model, "outcome")
    with served(service) as url:
        there = opened("outcome", f"given@{url}")

        async def many() -> list[Any]:
            tasks = [asyncio.create_task(there.ascore([one])) for one in (SOLUTIONS[0], *SOLUTIONS * 3)]
            while service.waiting < 10:
                await asyncio.sleep(0.005)
            go_on.set()
            try:
                return [await task for task in tasks]
            finally:
                await there.aclose()

        answers = asyncio.run(many())
    assert [scores[0] for scores in answers] == [outcome(one) for one in (SOLUTIONS[0], *SOLUTIONS * 3)]
    assert sum(model.batches) == 10
    assert len(model.batches) <= 3


def test_a_model_with_its_own_io_is_awaited(opened: Callable[..., Any]) -> None:
    both = asyncio.Event()
    inside = [0]

    async def ascore(solutions: Sequence[Solution]) -> list[OutcomeScore]:
        inside[0] += 1
        if inside[0] == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 10)
        return [outcome(solution) for solution in solutions]

    with served(ScoringService(Given(outcome, ascore=ascore), "outcome")) as url:
        there = opened("outcome", f"given@{url}")

        async def two() -> list[Any]:
            try:
                return await asyncio.gather(there.ascore(SOLUTIONS[:1]), there.ascore(SOLUTIONS[1:2]))
            finally:
                await there.aclose()

        assert asyncio.run(two()) == [[outcome(SOLUTIONS[0])], [outcome(SOLUTIONS[1])]]


def test_more_than_may_wait_is_asked_to_come_later() -> None:
    go_on = threading.Event()

    def slow(solution: Solution) -> OutcomeScore:
        assert go_on.wait(10)
        return outcome(solution)

    service = ScoringService(Given(slow), "outcome", max_waiting=2)
    with served(service) as url:
        body = dumps(request_to_json(SOLUTIONS[:2]))
        first = threading.Thread(target=post, args=(url, body))
        first.start()
        while service.waiting < 2:
            time.sleep(0.005)
        refused = post(url, body)
        go_on.set()
        first.join()
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["retryable"] is True


def post(url: str, content: bytes, *, kind: str = "application/json", **headers: str) -> httpx2.Response:
    return httpx2.post(f"{url}/v1/score", content=content, headers={"content-type": kind, **headers}, timeout=30)


GOOD = dumps(request_to_json(SOLUTIONS[:1]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the body is no JSON"),
        (b"[1]", "the body is no JSON object"),
        (b'{"contract": 1, "solutions": [NaN]}', "NaN is no number"),
        (b"[" * 100_000, "the body is no JSON"),
        (b"{}", "not version 1 of the scoring contract (contract is None)"),
        (b'{"contract": 2, "solutions": []}', "contract is 2"),
        (b'{"contract": 1}', "the request has no solutions"),
        (b'{"contract": 1, "solutions": {}}', "solutions of the request is no list"),
        (b'{"contract": 1, "solutions": [7]}', "solution 0 is no JSON object"),
        (b'{"contract": 1, "solutions": [{"text": "t"}]}', "solution 0 has no question"),
        (b'{"contract": 1, "solutions": [{"question": "q", "text": 5}]}', "text of solution 0 is no string"),
        (
            b'{"contract": 1, "solutions": [{"question": "q", "text": "t", "steps": [{"text": "t", "start": -1}]}]}',
            "start of step 0 of solution 0 is no whole number of at least 0",
        ),
        (
            b'{"contract": 1, "solutions": [{"question": "q", "text": "t", "steps": 3}]}',
            "steps of solution 0 are no list",
        ),
        (
            b'{"contract": 1, "solutions": [{"question": "q", "text": "t", "token_logprobs": [1e999]}]}',
            "token_logprobs of solution 0 is no finite number",
        ),
    ],
)
def test_wrong_requests_are_told_in_one_sentence(content: bytes, words: str) -> None:
    with served(ScoringService(Given(outcome), "outcome")) as url:
        answer = post(url, content)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert words in error["message"]
    assert "\n" not in error["message"]
    assert error["retryable"] is False


def test_limits_and_wrong_routes() -> None:
    with served(ScoringService(Given(outcome), "outcome", max_bytes=600, max_solutions=2)) as url:
        assert post(url, dumps(request_to_json(SOLUTIONS[1:2]))).status_code == 200
        large = post(url, b" " * 1000)
        assert (large.status_code, "larger than the 600 bytes" in large.text) == (413, True)
        many = post(url, dumps({"contract": 1, "solutions": [{"question": "", "text": ""}] * 3}))
        assert (many.status_code, "at most 2 are taken" in many.text) == (413, True)
        assert post(url, GOOD, kind="text/plain").status_code == 415
        assert httpx2.get(f"{url}/v1/score").status_code == 405
        lost = httpx2.get(f"{url}/pooling")
        assert (lost.status_code, "/v1/score" in lost.json()["error"]["message"]) == (404, True)
        assert httpx2.get(f"{url}/health").json() == {"status": "ok"}


def test_only_this_machine_is_answered_without_a_key() -> None:
    with served(ScoringService(Given(outcome), "outcome")) as url:
        port = url.rpartition(":")[2]
        assert post(url, GOOD, host=f"localhost:{port}").status_code == 200
        rebound = post(url, GOOD, host=f"evil.example:{port}")
    assert rebound.status_code == 403


def test_the_key(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOD_KEY", "open sesame")
    monkeypatch.setenv("BAD_KEY", "open barley")
    with served(ScoringService(Given(outcome), "outcome"), api_key="open sesame") as url:
        assert opened("outcome", f"given@{url}", api_key_env="GOOD_KEY").score(SOLUTIONS[:1]) == [outcome(SOLUTIONS[0])]
        for options in ({}, {"api_key_env": "BAD_KEY"}):
            with pytest.raises(ScoringServerError, match="wants a key, or refuses the one it got"):
                opened("outcome", f"given@{url}", **options)
        assert httpx2.get(f"{url}/health").status_code == 200
        assert post(url, GOOD, authorization="Basic open sesame").status_code == 401


def test_no_other_machine_without_a_key() -> None:
    with pytest.raises(RewardModelError, match=r"0\.0\.0\.0 can be reached from other machines, so a key is needed"):
        run_server(ScoringService(Given(outcome), "outcome"), host="0.0.0.0")


def test_a_port_that_is_taken() -> None:
    with serving(lambda _: Answer({})) as other, pytest.raises(RewardModelError, match="cannot be listened to"):
        run_server(ScoringService(Given(outcome), "outcome"), port=int(other.url.rpartition(":")[2]))


def test_solutions_go_in_parts_that_the_server_takes_and_to_all_servers(opened: Callable[..., Any]) -> None:
    solutions = [Solution(question="q", text="x" * at) for at in range(40)]
    one, two = Given(outcome), Given(outcome)
    with (
        served(ScoringService(one, "outcome", max_solutions=3)) as first,
        served(ScoringService(two, "outcome", max_solutions=3)) as second,
    ):
        there = opened("outcome", f"given@{first},{second}")
        assert there.score(solutions) == [outcome(solution) for solution in solutions]
    assert sum(one.batches + two.batches) == 40
    assert min(sum(one.batches), sum(two.batches)) > 0
    with served(ScoringService(Given(outcome), "outcome", max_bytes=300)) as url:
        there = opened("outcome", f"given@{url}")
        assert there.score(solutions) == [outcome(solution) for solution in solutions]
        with pytest.raises(RewardModelError, match="bytes long as JSON, and the server takes at most 300"):
            there.score([Solution(question="q", text="x" * 300)])


def test_what_is_served_must_be_what_was_asked_for(opened: Callable[..., Any]) -> None:
    with served(ScoringService(Given(outcome, name="given:big#v1"), "outcome")) as url:
        for name in ("given", "given:big", "given:big#v1"):
            opened("outcome", f"{name}@{url}")
        for name in ("other", "given:small", "given:big#v2"):
            with pytest.raises(RewardModelError, match="serves given:big#v1; write that name before the URL"):
                opened("outcome", f"{name}@{url}")
        with pytest.raises(RewardModelError, match=r"scores whole solutions \(an ORM\), not steps"):
            opened("process", f"given@{url}")
        with served(ScoringService(Given(outcome, name="given:big#v1", fingerprint="print-2"), "outcome")) as other:
            with pytest.raises(RewardModelError, match="different models or weights"):
                opened("outcome", f"given@{url},{other}")


def test_another_kind_of_server(opened: Callable[..., Any]) -> None:
    with serving(lambda _: Answer({"detail": "Not Found"}, status=404)) as vllm:
        with pytest.raises(ScoringServerError, match=r"no scoring server of this package.*vllm\+http://"):
            opened("process", f"math-shepherd@{vllm.url}")
    with serving(lambda _: Answer({"contract": 9, "model": "m"})) as newer:
        with pytest.raises(ScoringServerError, match="not version 1 of the scoring contract"):
            opened("process", f"math-shepherd@{newer.url}")
    with pytest.raises(ScoringServerError, match="is the server running"):
        opened("process", "math-shepherd@http://127.0.0.1:1")


def test_a_language_models_url_is_not_the_contracts() -> None:
    with pytest.raises(CapabilityError, match="language model"):
        load_outcome_model("judge:openai:some-model@http://127.0.0.1:1/v1")
    with pytest.raises(UnknownRewardModelError, match="no process reward model is called 'nonsense'"):
        load_process_model("nonsense@vllm+http://127.0.0.1:1")


DESCRIPTION = {
    "contract": 1, "model": "given", "kind": "process", "fingerprint": "f", "aggregation": "min", "requires": [],
}  # fmt: skip
ENTRY = {"activation": "softmax", "aggregation": "min", "tokens": 3}


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([], "0 scores for 1 solutions"),
        ([{**ENTRY, "steps": [{"value": 0.5}]}], "score 0 has 1 entries for 3 steps"),
        ([{**ENTRY, "steps": [{"value": 0.5}, {}, {}]}], "step 1 of score 0 must have a value or say why"),
        ([{**ENTRY, "steps": [{"value": 1.5}] * 3}], r"the value of step 0 of score 0 is 1\.5, not within \[0, 1\]"),
        ([{**ENTRY, "steps": [{"value": True}] * 3}], "is no finite number"),
        ([{**ENTRY, "steps": [{"value": "0.5"}] * 3}], "is no finite number"),
        ([{**ENTRY, "steps": [{"unscored": {"code": "bored", "reason": "r"}}] * 3}], "none of no_equation"),
        ([{**ENTRY, "activation": "tanh", "steps": [{"value": 0.5}] * 3}], "activation of score 0 is 'tanh'"),
        ([{**ENTRY, "aggregation": "sum", "steps": [{"value": 0.5}] * 3}], "aggregation of score 0 is 'sum'"),
        ([{**ENTRY, "tokens": -1, "steps": [{"value": 0.5}] * 3}], "tokens of score 0"),
        ("none", "scores of the answer is no list"),
    ],
)
def test_wrong_answers_are_refused(scores: Any, words: str, opened: Callable[..., Any]) -> None:
    def respond(call: Call) -> Answer:
        return Answer(DESCRIPTION if call.path == "/v1/model" else {"contract": 1, "scores": scores})

    with serving(respond) as server:
        there = opened("process", f"given@{server.url}")
        with pytest.raises(ScoringServerError, match=words):
            there.score(SOLUTIONS[:1])


texts = st.text(st.characters(), max_size=20)
floats = st.floats(allow_nan=False, allow_infinity=False, width=64)
units = st.floats(0, 1)
reasons = st.builds(Unscored, code=st.sampled_from(["no_steps", "past_context", "failed"]), reason=texts)
steps_of = st.lists(
    st.builds(
        Step, text=texts, start=st.integers(0, 99), end=st.integers(0, 99), part=st.sampled_from(["text", "thinking"])
    ),
    max_size=4,
).map(tuple)
solutions_of = st.builds(
    Solution,
    question=texts,
    text=texts,
    steps=steps_of,
    id=st.none() | texts,
    thinking=st.none() | texts,
    stop=st.none() | texts,
    token_logprobs=st.none() | st.lists(floats, max_size=3).map(tuple),
    top_logprobs=st.none() | st.lists(st.lists(floats, max_size=2).map(tuple), max_size=2).map(tuple),
)
entries = st.builds(StepScore, value=units, raw=st.none() | floats) | st.builds(
    StepScore, value=st.none(), raw=st.none() | floats, unscored=reasons
)


@given(st.lists(solutions_of, max_size=3))
def test_requests_survive_the_wire(solutions: list[Solution]) -> None:
    body = request_to_json(solutions, requires=frozenset({"token_logprobs", "top_logprobs"}))
    assert request_from_json(loads(dumps(body))) == solutions


@given(solutions_of, st.data())
def test_answers_survive_the_wire(solution: Solution, data: st.DataObject) -> None:
    scores = StepScores(
        steps=solution.steps,
        scores=tuple(data.draw(entries) for _ in solution.steps),
        activation=data.draw(st.sampled_from(["identity", "sigmoid", "softmax"])),
        aggregation=data.draw(st.sampled_from(["min", "geometric-mean"])),
        tokens=data.draw(st.none() | st.integers(0, 10**6)),
    )
    body = loads(dumps(answer_to_json("m", "process", [solution], [scores])))
    assert answer_from_json(body, "process", [solution]) == [scores]
    whole = OutcomeScore(value=None, raw=data.draw(floats), unscored=data.draw(reasons))
    body = loads(dumps(answer_to_json("m", "outcome", [solution], [whole])))
    assert answer_from_json(body, "outcome", [solution]) == [whole]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["contract", "solutions", "question", "text", "steps", "start"]) | texts, inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_read_or_refused(value: Any) -> None:
    for read in (
        lambda: request_from_json(value),
        lambda: request_from_json({"contract": 1, "solutions": [value]}),
        lambda: answer_from_json({"contract": 1, "scores": [value]}, "process", SOLUTIONS[:1]),
        lambda: answer_from_json({"contract": 1, "scores": [value]}, "outcome", SOLUTIONS[:1]),
    ):
        try:
            read()
        except ContractError as error:
            assert "\n" not in str(error)
