"""What real servers honour of a chat completion: the facts that the endpoint client and its documentation rely on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

import servers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

MESSAGES: Any = [
    {"role": "system", "content": "You are a careful math tutor."},
    {
        "role": "user",
        "content": "Tom has 3 apples and buys 4 more, then eats 2. How many has he left? Go step by step.",
    },
]


def ask(server: servers.Server, **options: Any) -> ChatCompletion:
    """One chat completion, 24 tokens unless told otherwise, without retries."""
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=300)
    with client:
        reply: ChatCompletion = client.chat.completions.create(
            **{"model": server.model, "messages": MESSAGES, "max_tokens": 24, **options}
        )
    return reply


def texts(reply: ChatCompletion) -> list[str | None]:
    return [choice.message.content for choice in reply.choices]


def test_vllm_samples_n_choices_with_their_log_probabilities(vllm_server: servers.Server) -> None:
    reply = ask(vllm_server, n=4, temperature=0.8, seed=1, logprobs=True, top_logprobs=5)
    assert len(reply.choices) == len(set(texts(reply))) == 4
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0
    tokens = [choice.logprobs.content for choice in reply.choices if choice.logprobs and choice.logprobs.content]
    # The end token, of a choice that stopped, counts as used and has a log-probability too.
    assert sum(len(content) for content in tokens) == reply.usage.completion_tokens
    first = tokens[0][0]
    assert len(first.top_logprobs) >= 5
    assert all(entry.logprob <= 0 for content in tokens for entry in content)
    assert math.fsum(math.exp(other.logprob) for other in first.top_logprobs) <= 1 + 1e-6


def test_vllm_repeats_a_seed_and_the_first_of_n_is_that_of_one(vllm_server: servers.Server) -> None:
    several = ask(vllm_server, n=4, temperature=0.8, seed=1)
    assert texts(ask(vllm_server, n=4, temperature=0.8, seed=1)) == texts(several)
    assert texts(ask(vllm_server, n=1, temperature=0.8, seed=1)) == texts(several)[:1]
    assert texts(ask(vllm_server, n=1, temperature=0.8, seed=2)) != texts(several)[:1]


def test_vllm_leaves_the_stop_string_out(vllm_server: servers.Server) -> None:
    choice = ask(vllm_server, temperature=0, max_tokens=64, stop=["apples"]).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content is not None
    assert "apples" not in choice.message.content


def test_vllm_continues_an_assistant_message(vllm_server: servers.Server) -> None:
    opened = [*MESSAGES, {"role": "assistant", "content": "Step 1: Tom starts with 3"}]
    fields = {"continue_final_message": True, "add_generation_prompt": False}
    plain = ask(vllm_server, messages=opened, temperature=0)
    continued = ask(vllm_server, messages=opened, temperature=0, extra_body=fields)
    assert plain.usage is not None
    assert continued.usage is not None
    # Not closed, and no further assistant header: fewer prompt tokens.
    assert continued.usage.prompt_tokens < plain.usage.prompt_tokens
    assert texts(continued) != texts(plain)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 2, "temperature": 0}, "n must be 1 when using greedy sampling"),
        ({"top_logprobs": 30, "logprobs": True}, "max allowed: 20"),
        ({"max_tokens": 5000}, "max_model_len"),
        ({"messages": [{"role": "user", "content": "word " * 4000}]}, "maximum context length"),
    ],
)
def test_vllm_refuses_what_it_cannot_do(vllm_server: servers.Server, options: dict[str, Any], said: str) -> None:
    with pytest.raises(openai.BadRequestError, match=said):
        ask(vllm_server, **options)


def test_transformers_serve_ignores_n_and_log_probabilities_in_silence(transformers_server: servers.Server) -> None:
    reply = ask(transformers_server, n=4, temperature=0.8, seed=1, logprobs=True, top_logprobs=5)
    assert len(reply.choices) == 1
    assert reply.choices[0].logprobs is None
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 24


def test_transformers_serve_repeats_a_seed(transformers_server: servers.Server) -> None:
    first = texts(ask(transformers_server, temperature=0.8, seed=1))
    assert texts(ask(transformers_server, temperature=0.8, seed=1)) == first
    assert texts(ask(transformers_server, temperature=0.8, seed=2)) != first


def test_transformers_serve_leaves_the_stop_string_in(transformers_server: servers.Server) -> None:
    choice = ask(transformers_server, temperature=0, max_tokens=64, stop=["apples"]).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content is not None
    assert choice.message.content.endswith("apples")


@pytest.mark.parametrize("fields", [{"top_k": 5}, {"continue_final_message": True}])
def test_transformers_serve_refuses_fields_it_does_not_know(
    transformers_server: servers.Server, fields: dict[str, Any]
) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        ask(transformers_server, extra_body=fields)
    # The SDK's own message holds no more than the status here: the reason is under "detail".
    assert next(iter(fields)) in refused.value.response.json()["detail"]


def test_transformers_serve_refuses_another_model(transformers_server: servers.Server) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(transformers_server, model="another")
    assert "pinned" in refused.value.response.json()["detail"]


def test_a_server_that_ends_at_once_is_reported_with_its_output(tmp_path: Path) -> None:
    with (
        pytest.raises(servers.ServerError, match="ended with code"),
        servers.transformers(tmp_path / "absent", tmp_path / "log", options=["--no-such-option"]),
    ):
        pytest.fail("it cannot have started")
