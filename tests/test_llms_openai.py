"""OpenAI-compatible endpoints over real sockets: what is sent, read, left out, and said when something fails."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_endpoint import Answer, Body, FakeEndpoint, completion, refusal, serving
from magicore.errors import (
    AuthenticationFailed,
    BadReply,
    CapabilityError,
    ConnectionFailed,
    ContextExceeded,
    InputError,
    LanguageModelError,
    PromptFiltered,
    RateLimited,
    RequestRefused,
    TimedOut,
)
from magicore.llms.base import Generation, Request, Sampling, messages
from magicore.llms.openai_compatible import EndpointOptions, OpenAICompatible
from magicore.llms.room import Room
from magicore.types import CallKey, Completion, Usage

REQUEST = Request(messages=messages(("user", "What is 2 + 3?")), key=CallKey(problem="p", role="solver"))
KEY = "sk-very-secret-0123456789"


def endpoint_model(endpoint: FakeEndpoint, **options: Any) -> OpenAICompatible:
    chosen = EndpointOptions(**options)
    return OpenAICompatible(name="openai:m@url", model="m", url=endpoint.url, api_key=KEY, options=chosen)


def use(model: OpenAICompatible, action: Callable[[OpenAICompatible], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        try:
            return await action(model)
        finally:
            await model.aclose()

    return asyncio.run(run())


def ask(endpoint: FakeEndpoint, request: Request = REQUEST, **options: Any) -> Generation:
    found: Generation = use(endpoint_model(endpoint, **options), lambda model: model.generate(request))
    return found


def only(generation: Generation) -> Completion:
    [found] = generation.completions
    return found


# What is sent


def test_what_is_sent() -> None:
    request = replace(
        REQUEST,
        indices=(0, 1, 2),
        sampling=Sampling(temperature=0.5, top_p=None, max_tokens=7, stop=("END",)),
        logprobs=True,
        top_logprobs=3,
    )
    scores = {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": []}]}
    with serving([completion("a", "b", "c", logprobs=scores)]) as endpoint:
        ask(endpoint, request, extra_body={"top_k": 20})
    [body] = endpoint.bodies
    seed = body.pop("seed")
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "What is 2 + 3?"}],
        "temperature": 0.5,
        "n": 3,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 3,
        "max_tokens": 7,
        "top_k": 20,
    }
    assert 0 <= seed < 2**31
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


def test_every_sample_has_its_own_seed_and_keeps_it() -> None:
    with serving([completion("a")]) as endpoint:
        for index in (0, 1, 0):
            ask(endpoint, replace(REQUEST, indices=(index,)))
    first, second, again = (body["seed"] for body in endpoint.bodies)
    assert first == again != second


def test_what_the_environment_says_for_openai_goes_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai-only")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: hidden\nAuthorization: Bearer other")
    with serving([completion("a")]) as endpoint:
        model = OpenAICompatible(name="openai:m@url", model="m", url=endpoint.url)
        use(model, lambda model: model.generate(REQUEST))
    sent = json.dumps(endpoint.headers)
    for secret in ("sk-for-openai-only", "org-mine", "project-mine", "hidden", "other"):
        assert secret not in sent


def test_a_model_serves_one_event_loop_after_another() -> None:
    with serving([completion("a")]) as endpoint:
        model = endpoint_model(endpoint)
        for _ in range(2):
            assert only(asyncio.run(_generate_and_close(model))).text == "a"


async def _generate_and_close(model: OpenAICompatible) -> Generation:
    generation = await model.generate(REQUEST)
    await model.aclose()
    return generation


# What is read


def test_the_charge_is_shared_out_and_adds_up() -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 4}}
    with serving([completion("aaaaaaaaa", "bbbb", "c", usage=usage)]) as endpoint:
        completions = ask(endpoint, replace(REQUEST, indices=(4, 5, 6))).completions
    assert [one.index for one in completions] == [4, 5, 6]
    assert [one.usage.completion for one in completions] == [6, 3, 1]
    assert [one.tokens for one in completions] == [None, None, None]
    total = sum((one.usage for one in completions), Usage())
    assert total == Usage(prompt=11, completion=10, reasoning=4, calls=1)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 3}, {"completion_tokens": "many"}])
def test_a_call_without_usage_is_unmetered(usage: Body | None) -> None:
    answer = Answer({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage})
    with serving([answer]) as endpoint:
        one = only(ask(endpoint))
    assert one.usage == Usage(calls=1, unmetered=1)
    assert one.tokens is None


@pytest.mark.parametrize(
    ("message", "text", "thinking"),
    [
        ({"content": "5", "reasoning_content": "2 and 3"}, "5", "2 and 3"),
        ({"content": "5", "reasoning": "2 and 3"}, "5", "2 and 3"),
        ({"content": None, "reasoning_content": "2 and 3 make 5"}, "", "2 and 3 make 5"),
        ({"content": "<think>2 and 3</think>5"}, "5", "2 and 3"),
        ({"content": "<think>2 and"}, "", "2 and"),
        ({"content": [{"type": "thinking", "thinking": "2"}, {"type": "text", "text": "5"}]}, "5", "2"),
        ({"content": "5", "reasoning_content": ""}, "5", None),
    ],
)
def test_reasoning_is_kept_apart(message: Body, text: str, thinking: str | None) -> None:
    answer = Answer({"choices": [{"message": message, "finish_reason": "stop"}], "usage": None})
    with serving([answer]) as endpoint:
        one = only(ask(endpoint))
    assert (one.text, one.thinking, one.stop) == (text, thinking, "stop")


@pytest.mark.parametrize(
    ("choice", "stop"),
    [
        ({"message": {"content": "a"}, "finish_reason": "length"}, "length"),
        ({"message": {"content": "a"}, "finish_reason": "content_filter"}, "filter"),
        ({"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}, "filter"),
        ({"message": {"content": None}, "finish_reason": "stop"}, "error"),
        ({"message": {"content": None}, "finish_reason": "length"}, "length"),
        ({"message": {"content": ""}, "finish_reason": "stop"}, "stop"),
        ({"message": {"content": "a"}, "finish_reason": "tool_calls"}, "error"),
        ({"message": {"content": "a"}}, "stop"),
        ({}, "error"),
    ],
)
def test_stop_reasons_are_typed(choice: Body, stop: str) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    with serving([Answer({"choices": [choice], "usage": usage})]) as endpoint:
        assert only(ask(endpoint)).stop == stop


def test_a_completion_that_reached_the_limit_was_cut_whatever_it_is_called() -> None:
    sampling = Sampling(max_tokens=4)
    with serving([completion("one two three four"), completion("a b c d", "e f g h"), completion("a b")]) as endpoint:
        assert only(ask(endpoint, replace(REQUEST, sampling=sampling))).stop == "length"
        both = ask(endpoint, replace(REQUEST, sampling=sampling, indices=(0, 1)))
        assert [one.stop for one in both.completions] == ["length", "length"]
        assert only(ask(endpoint, replace(REQUEST, sampling=sampling))).stop == "stop"


def test_log_probabilities_and_their_alternatives() -> None:
    scores = {
        "content": [
            {"token": "4", "logprob": -1.5, "top_logprobs": [{"token": "5", "logprob": -0.3}]},
            {"token": ".", "logprob": -0.1, "top_logprobs": [{"token": ".", "logprob": -0.1}]},
        ]
    }
    with serving([completion("4.", logprobs=scores)]) as endpoint:
        one = only(ask(endpoint, replace(REQUEST, logprobs=True, top_logprobs=1)))
    assert one.token_logprobs == (-1.5, -0.1)
    assert one.top_logprobs == ((("5", -0.3), ("4", -1.5)), ((".", -0.1),))


def test_log_probabilities_in_the_older_layout() -> None:
    scores = {"tokens": ["4", "."], "token_logprobs": [-1.5, -0.1], "top_logprobs": [{"5": -0.3}, {".": -0.1}]}
    with serving([completion("4.", logprobs=scores)]) as endpoint:
        one = only(ask(endpoint, replace(REQUEST, logprobs=True, top_logprobs=1)))
    assert one.token_logprobs == (-1.5, -0.1)
    assert one.top_logprobs == ((("4", -1.5), ("5", -0.3)), ((".", -0.1),))


def test_fewer_choices_are_taken_and_surplus_ones_left() -> None:
    with serving([completion("a"), completion("a", "b", "c")]) as endpoint:
        assert [one.text for one in ask(endpoint, replace(REQUEST, indices=(0, 1))).completions] == ["a"]
        assert [one.text for one in ask(endpoint, replace(REQUEST, indices=(0, 1))).completions] == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b'{"choices": [{"mess'),
        Answer(b"<html>Bad gateway</html>"),
        Answer([]),
        Answer({"choices": []}),
        Answer({"choices": None}),
        Answer({"choices": ["text"]}),
        Answer({"error": {"message": "overloaded"}}),
    ],
)
def test_an_unreadable_reply_is_a_bad_reply(answer: Answer) -> None:
    with serving([answer]) as endpoint, pytest.raises(BadReply, match="answered something unreadable") as caught:
        ask(endpoint)
    assert caught.value.retryable


# What is dropped


REFUSALS = {
    "openai": lambda name: refusal(
        f"Unsupported parameter: '{name}' is not supported with this model.", param=name, code="unsupported_parameter"
    ),
    "value": lambda name: refusal(
        f"Unsupported value: '{name}' does not support 0.8 with this model. Only the default (1) value is supported.",
        param=name,
        code="unsupported_value",
    ),
    "fastapi": lambda name: Answer(
        {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}, 422
    ),
    "words": lambda name: refusal(f"`{name}` is not supported"),
}


def refusing(name: str, wording: str) -> Callable[[Body], Answer]:
    def rule(body: Body) -> Answer:
        return REFUSALS[wording](name) if name in body else completion(*["a b"] * body.get("n", 1))

    return rule


@pytest.mark.parametrize("wording", REFUSALS)
@pytest.mark.parametrize("name", ["temperature", "top_p", "n", "seed", "stop"])
def test_a_refused_parameter_is_left_out_and_said_once(name: str, wording: str) -> None:
    request = replace(REQUEST, indices=(0, 1), sampling=Sampling(stop=("END",)))

    async def twice(model: OpenAICompatible) -> list[Generation]:
        return [await model.generate(request), await model.generate(request)]

    with serving(refusing(name, wording)) as endpoint:
        first, second = use(endpoint_model(endpoint), twice)
    assert first.notes == (f"openai:m@url refuses {name}, which is left out from now on",)
    assert second.notes == ()
    assert [name in body for body in endpoint.bodies] == [True, False, False]
    others = {"temperature", "top_p", "n", "seed", "stop", "max_tokens"} - {name}
    assert all(others <= body.keys() for body in endpoint.bodies)


def test_the_other_limit_parameter_is_tried_without_a_word() -> None:
    with serving(refusing("max_tokens", "openai")) as endpoint:
        assert ask(endpoint).notes == ()
    assert [body.get("max_completion_tokens") for body in endpoint.bodies] == [None, 1000]


def test_a_stop_string_that_is_left_in_is_cut_off() -> None:
    with serving([completion("two apples")]) as endpoint:
        one = only(ask(endpoint, replace(REQUEST, sampling=Sampling(stop=("pears", "apples")))))
    assert (one.text, one.stop) == ("two ", "stop")


def test_stop_strings_are_applied_here_where_the_endpoint_refuses_them() -> None:
    scores = {"content": [{"token": token, "logprob": -0.5} for token in ("one", " two", " END", " three")]}

    def rule(body: Body) -> Answer:
        return REFUSALS["openai"]("stop") if "stop" in body else completion("one two END three", logprobs=scores)

    with serving(rule) as endpoint:
        one = only(ask(endpoint, replace(REQUEST, sampling=Sampling(stop=("END",)), logprobs=True)))
    assert (one.text, one.stop, one.tokens) == ("one two ", "stop", 4)
    assert one.token_logprobs == (-0.5, -0.5)


@pytest.mark.parametrize("refused", [True, False])
def test_needed_log_probabilities_that_do_not_come_are_refused_in_one_sentence(refused: bool) -> None:
    rule = refusing("logprobs", "openai") if refused else (lambda body: completion("a"))

    async def three(model: OpenAICompatible) -> list[Any]:
        request = replace(REQUEST, logprobs=True)
        return await asyncio.gather(*(model.generate(request) for _ in range(3)), return_exceptions=True)

    with serving(rule) as endpoint:
        outcomes = use(endpoint_model(endpoint), three)
    for outcome in outcomes:
        assert isinstance(outcome, CapabilityError)
        assert f"{endpoint.url} gives no log-probabilities" in str(outcome)
    assert len(endpoint.bodies) == 1  # one call found out for all


@pytest.mark.parametrize("refused", [True, False])
def test_log_probabilities_that_are_only_wished_for_are_done_without(refused: bool) -> None:
    rule = refusing("logprobs", "openai") if refused else (lambda body: completion("a"))
    request = replace(REQUEST, logprobs=True, top_logprobs=2, logprobs_required=False)
    with serving(rule) as endpoint:
        one = only(ask(endpoint, request))
    assert (one.text, one.token_logprobs, one.top_logprobs) == ("a b" if refused else "a", None, None)


def test_a_value_out_of_range_is_the_callers_mistake() -> None:
    answer = refusal("temperature must be between 0 and 2, got 9", param="temperature")
    with serving([answer]) as endpoint, pytest.raises(RequestRefused, match="temperature must be between 0 and 2"):
        ask(endpoint)


# Prefill


def test_a_reply_that_is_begun_is_continued_where_the_server_can() -> None:
    request = replace(REQUEST, prefill="The answer is")
    with serving([completion(" 5.")]) as endpoint:
        assert only(ask(endpoint, request)).text == " 5."
    assert endpoint.paths == ["/v1/models", "/v1/chat/completions"]
    [body] = endpoint.bodies
    assert body["messages"][-1] == {"role": "assistant", "content": "The answer is"}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)


@pytest.mark.parametrize("models", [Answer({"data": [{"owned_by": "openai"}]}), Answer({}), Answer(None, 404)])
def test_a_prefill_is_refused_elsewhere(models: Answer) -> None:
    request = replace(REQUEST, prefill="The answer is")
    with serving([completion("5.")]) as endpoint:
        endpoint.models = models
        with pytest.raises(CapabilityError, match="set prefill = true"):
            ask(endpoint, request)
        assert endpoint.bodies == []
        assert only(ask(endpoint, request, prefill=True)).text == "5."


# What is not sent


def limited(text: str, answer: int) -> Request:
    return replace(
        REQUEST, messages=messages(("system", "Be brief."), ("user", text)), sampling=Sampling(max_tokens=answer)
    )


def test_what_cannot_fit_the_stated_context_is_refused_before_it_is_sent() -> None:
    with serving([completion("a")]) as endpoint:
        said = r"context of 20 tokens .* the prompt has at least 11, the answer may have 10; it was not asked"
        with pytest.raises(ContextExceeded, match=said) as caught:
            ask(endpoint, limited("word " * 9, 10), context=20)
        assert (caught.value.retryable, caught.value.lost, endpoint.bodies) == (False, 0, [])
        ask(endpoint, limited("word " * 8, 10), context=20)  # it may fit: the endpoint says whether it does
        ask(endpoint, limited("word " * 9, 10))
    assert len(endpoint.bodies) == 2


def test_a_prefill_counts_and_an_endpoint_that_takes_no_limit_needs_room_for_the_prompt_alone() -> None:
    request = replace(limited("word " * 8, 10), prefill="I begin")
    unlimited = [
        refusal("Unsupported parameter: 'max_tokens'", param="max_tokens", code="unsupported_parameter"),
        refusal("Unsupported parameter: 'max_completion_tokens'", param="max_completion_tokens"),
        completion("a"),
    ]
    with serving(unlimited) as endpoint:
        with pytest.raises(ContextExceeded, match="at least 12, the answer may have 10"):
            ask(endpoint, request, context=21, prefill=True)
        assert endpoint.bodies == []
        model = endpoint_model(endpoint, context=22)
        use(model, lambda model: model.generate(limited("word " * 8, 10)))
        assert "max_tokens" not in endpoint.bodies[-1]
        with pytest.raises(ContextExceeded, match="at least 23, the answer may have 0"):
            use(model, lambda model: model.generate(limited("word " * 21, 10)))


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    letters = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0}, merges=[]))
    letters.save(str(tmp_path / "tokenizer.json"))
    with serving([completion("a")]) as endpoint:
        request = replace(REQUEST, sampling=Sampling(max_tokens=10))
        chosen = {"context": 20, "tokenizer": str(tmp_path)}
        with pytest.raises(ContextExceeded, match="at least 11, the answer may have 10"):
            ask(endpoint, replace(request, messages=messages(("system", "a"), ("user", "a" * 10))), **chosen)
        assert endpoint.bodies == []
        ask(endpoint, replace(request, messages=messages(("system", "a"), ("user", "a" * 9))), **chosen)
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("wrong", [0, -1, True, "4096", 4096.0])
def test_a_context_is_a_number_of_tokens(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"openai:m@url.*context is a whole number of tokens above 0, not"):
        OpenAICompatible(name="openai:m@url", model="m", options=EndpointOptions(context=wrong))
    with pytest.raises(InputError, match=r"tokenizer .* cannot be loaded"):
        Room("openai:m@url", 10, "/nowhere/to/be/found")


# What is said when it fails


FAILURES: list[tuple[Answer, type[LanguageModelError], str]] = [
    (refusal(f"Incorrect API key provided: {KEY}.", status=401), AuthenticationFailed, "refuses the API key"),
    (refusal("no", status=403), AuthenticationFailed, "does not let this API key use 'm'"),
    (refusal("The model does not exist", status=404), RequestRefused, "knows no model 'm'.*The model does not exist"),
    (refusal("slow down", status=429), RateLimited, "asks to slow down"),
    (refusal("You exceeded your current quota", status=429, code="insufficient_quota"), RequestRefused, "quota"),
    (
        refusal("This model's maximum context length is 4096 tokens.", code="context_length_exceeded"),
        ContextExceeded,
        "do not fit the context",
    ),
    (refusal("max_tokens is too large: 100000. It must be at most 16384."), ContextExceeded, "do not fit the context"),
    (refusal("blocked", code="content_filter"), PromptFiltered, "filtered the prompt"),
    (refusal("bad", status=400), RequestRefused, "refused the request with status 400"),
    (refusal("oops", status=500), LanguageModelError, "failed with status 500"),
    (Answer(b"<html>Bad gateway</html>", 502), LanguageModelError, "failed with status 502"),
    (Answer(b"", 503), LanguageModelError, "failed with status 503"),
]


@pytest.mark.parametrize(("answer", "kind", "says"), FAILURES)
def test_errors_are_typed_and_never_hold_the_key(answer: Answer, kind: type[LanguageModelError], says: str) -> None:
    with serving([answer]) as endpoint, pytest.raises(kind, match=says) as caught:
        ask(endpoint)
    assert type(caught.value) is kind
    assert caught.value.retryable == (answer.status in (429, 500, 502, 503) and kind is not RequestRefused)
    error: BaseException | None = caught.value
    while error is not None:  # nor does anything that a traceback would show
        assert KEY not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_the_model_itself_does_not_show_the_key() -> None:
    model = OpenAICompatible(name="openai:m@url", model="m", url="http://127.0.0.1:1/v1", api_key=KEY)
    assert KEY not in repr(model)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "99999"}, 600.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    answer = Answer({"error": {"message": "slow down"}}, 429, headers)
    with serving([answer]) as endpoint, pytest.raises(RateLimited) as caught:
        ask(endpoint)
    assert caught.value.retry_after == seconds


def test_connections_that_fail() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]

    def fails(url: str) -> str:
        model = OpenAICompatible(name="openai:m@url", model="m", url=url)
        with pytest.raises(ConnectionFailed) as caught:
            use(model, lambda model: model.generate(REQUEST))
        return str(caught.value)

    assert "refuses the connection; is the server running?" in fails(f"http://127.0.0.1:{free_port}/v1")
    with serving([replace(completion("a" * 1000), break_after=100)]) as endpoint:
        assert "broke" in fails(endpoint.url)
    with serving([Answer(silent=True)]) as endpoint, pytest.raises(TimedOut, match=r"sent nothing for 0\.2 s"):
        ask(endpoint, idle_timeout=0.2)


def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    model = OpenAICompatible(name="openai:m@url", model="m", url="http://no-such-host.example/v1")
    with pytest.raises(ConnectionFailed, match=r"the host of http://no-such-host.example/v1 is not known"):
        use(model, lambda model: model.generate(REQUEST))


# Streaming


def stream(*pieces: Body | str, done: bool = True) -> Answer:
    lines = [piece if isinstance(piece, str) else f"data: {json.dumps(piece)}" for piece in pieces]
    text = "\n\n".join([*lines, *(["data: [DONE]"] if done else [])]) + "\n\n"
    return Answer(text.encode(), 200, {"content-type": "text/event-stream"})


def piece(index: int, content: str | None = None, *, finish: str | None = None, **more: Any) -> Body:
    return {"choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish, **more}]}


def test_a_stream_is_gathered() -> None:
    scores = {"content": [{"token": "b", "logprob": -0.5}]}
    answer = stream(
        ": keep-alive",
        piece(1, "b", logprobs=scores),
        piece(0, "a"),
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
        piece(1, "B", finish="stop", logprobs=scores),
        piece(0, "A", finish="length"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    )
    with serving([answer]) as endpoint:
        request = replace(REQUEST, indices=(0, 1), logprobs=True, logprobs_required=False)
        first, second = ask(endpoint, request, stream=True).completions
    assert (first.text, first.thinking, first.stop) == ("aA", "hm", "length")
    assert (second.text, second.stop, second.token_logprobs) == ("bB", "stop", (-0.5, -0.5))
    assert first.usage + second.usage == Usage(prompt=3, completion=4, calls=1)
    assert endpoint.bodies[0]["stream_options"] == {"include_usage": True}


def test_long_completions_are_streamed_and_short_ones_not() -> None:
    with serving([completion("a")]) as endpoint:
        ask(endpoint, replace(REQUEST, sampling=Sampling(max_tokens=4096)))
        assert only(ask(endpoint, replace(REQUEST, sampling=Sampling(max_tokens=4097)))).text == "a"
    assert [body.get("stream", False) for body in endpoint.bodies] == [False, True]


@pytest.mark.parametrize(
    "answer",
    [
        stream(piece(0, "a"), done=False),
        stream("data: {broken"),
        stream({"error": {"message": "overloaded"}}),
        stream("data: []"),
        stream(),
    ],
)
def test_a_stream_that_breaks_off_is_a_bad_reply(answer: Answer) -> None:
    with serving([answer]) as endpoint, pytest.raises(BadReply):
        ask(endpoint, stream=True)


def test_a_refused_parameter_is_left_out_of_a_stream_too() -> None:
    with serving(refusing("temperature", "openai")) as endpoint:
        ask(endpoint, stream=True)
    assert ["temperature" in body for body in endpoint.bodies] == [True, False]
