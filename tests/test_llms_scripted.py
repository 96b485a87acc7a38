"""The scripted model: what it charges for, how it stops, and what it says when it has no reply."""

import asyncio
from dataclasses import replace

import pytest

from magicore.errors import CapabilityError, RequestRefused
from magicore.llms.base import Generation, Request, Sampling, messages
from magicore.llms.scripted import ScriptedModel, ScriptedReply
from magicore.types import CallKey, Usage

KEY = CallKey(problem="p", role="solver")


def ask(model: ScriptedModel, request: Request) -> Generation:
    return asyncio.run(model.generate(request))


def request(text: str = "What is 2 + 3?", **changes: object) -> Request:
    return replace(Request(messages=messages(("system", "Be brief."), ("user", text)), key=KEY), **changes)


def test_the_prompt_and_the_call_are_charged_once_a_request() -> None:
    model = ScriptedModel(lambda _, index: "word " * (index + 1))
    completions = ask(model, request(indices=(0, 1, 2))).completions
    assert [one.index for one in completions] == [0, 1, 2]
    assert [one.tokens for one in completions] == [1, 2, 3]
    assert [one.usage for one in completions] == [
        Usage(prompt=7, completion=1, calls=1),
        Usage(completion=2),
        Usage(completion=3),
    ]


def test_a_table_prefers_the_whole_message_then_the_longest_part() -> None:
    model = ScriptedModel({"2 + 3": "part", "What is 2 + 3": "longer part", "2 + 3?": ["first", "second"]})
    assert ask(model, request("2 + 3?", indices=(0, 1, 2))).completions[1].text == "second"
    assert ask(model, request("2 + 3?", indices=(2,))).completions[0].text == "first"
    assert ask(model, request("What is 2 + 3, please?")).completions[0].text == "longer part"


def test_a_message_without_a_reply_is_refused() -> None:
    with pytest.raises(RequestRefused, match="no scripted reply for the message 'unheard of'"):
        ask(ScriptedModel({"2 + 3": "5"}), request("unheard of"))


def test_stop_strings_end_the_text_before_the_limit_is_looked_at() -> None:
    model = ScriptedModel(lambda *_: "one two\nEND three")
    stopped = ask(model, request(sampling=Sampling(stop=("END",), max_tokens=2))).completions[0]
    assert (stopped.text, stopped.stop, stopped.tokens) == ("one two\n", "stop", 2)
    cut = ask(model, request(sampling=Sampling(max_tokens=3))).completions[0]
    assert (cut.text, cut.stop, cut.tokens) == ("one two\nEND", "length", 3)


def test_thinking_counts_against_the_limit_and_as_reasoning() -> None:
    model = ScriptedModel(lambda *_: ScriptedReply(text="the answer", thinking="let me see"))
    whole = ask(model, request()).completions[0]
    assert (whole.text, whole.thinking, whole.tokens, whole.usage.reasoning) == ("the answer", "let me see", 5, 3)
    cut = ask(model, request(sampling=Sampling(max_tokens=2))).completions[0]
    assert (cut.text, cut.thinking, cut.stop, cut.usage.reasoning) == ("", "let me", "length", 2)


def test_log_probabilities_are_given_made_up_or_refused() -> None:
    given = ScriptedModel(lambda *_: ScriptedReply(text="a b c", token_logprobs=(-0.1, -0.2, -0.3)))
    cut = ask(given, request(logprobs=True, top_logprobs=1, sampling=Sampling(max_tokens=2))).completions[0]
    assert cut.token_logprobs == (-0.1, -0.2)
    assert cut.top_logprobs == ((("a", -0.1),), (("b", -0.2),))

    made_up = ScriptedModel(lambda *_: "a b c", logprobs=True)
    first, again = (ask(made_up, request(logprobs=True, indices=(i,))).completions[0].token_logprobs for i in (4, 4))
    assert first == again
    assert first is not None
    assert len(first) == 3
    assert all(value < 0 for value in first)

    none = ScriptedModel(lambda *_: "a b c")
    with pytest.raises(CapabilityError, match="logprobs=True"):
        ask(none, request(logprobs=True))
    assert ask(none, request(logprobs=True, logprobs_required=False)).completions[0].token_logprobs is None


def test_a_sample_that_fails_leaves_the_others() -> None:
    def script(_: Request, index: int) -> str:
        if index == 1:
            raise RequestRefused("not this one")
        return f"reply {index}"

    completions = ask(ScriptedModel(script), request(indices=(1, 2, 3))).completions
    assert [one.text for one in completions] == ["reply 2", "reply 3"]
    assert sum((one.usage for one in completions), Usage()) == Usage(prompt=7, completion=4, calls=1)
    with pytest.raises(RequestRefused, match="not this one"):
        ask(ScriptedModel(script), request(indices=(1,)))


def test_a_script_may_be_async() -> None:
    async def script(_: Request, index: int) -> str:
        await asyncio.sleep(0)
        return str(index)

    assert ask(ScriptedModel(script), request(indices=(7,))).completions[0].text == "7"
