"""The grammar of model names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.names import ModelName, parse_model_name


@pytest.mark.parametrize(
    ("text", "provider", "name", "revision", "urls"),
    [
        ("math-shepherd", "math-shepherd", "", None, ()),
        ("math-shepherd:./my-dir", "math-shepherd", "./my-dir", None, ()),
        ("math-shepherd#refs/pr/5", "math-shepherd", "", "refs/pr/5", ()),
        ("hf:Qwen/Qwen2.5-1.5B-Instruct#main", "hf", "Qwen/Qwen2.5-1.5B-Instruct", "main", ()),
        ("openai:ft:gpt-4o:org::id", "openai", "ft:gpt-4o:org::id", None, ()),
        ("vertex:claude@20240229", "vertex", "claude@20240229", None, ()),
        ("a:b@c#r1@https://h/v1", "a", "b@c", "r1", ("https://h/v1",)),
        ("q@vllm+http://a:8000,vllm+https://b", "q", "", None, ("vllm+http://a:8000", "vllm+https://b")),
        (r"hf:C:\models\x", "hf", r"C:\models\x", None, ()),
    ],
)
def test_reads_every_part(text: str, provider: str, name: str, revision: str | None, urls: tuple[str, ...]) -> None:
    parsed = parse_model_name(text)
    assert parsed == ModelName(provider=provider, name=name, revision=revision, urls=urls)
    assert str(parsed) == text


@pytest.mark.parametrize(
    ("text", "engine", "endpoints"),
    [
        ("m", "local", ()),
        ("m@http://h:1/v1/", "http", ("http://h:1/v1",)),
        ("m@vllm+http://h", "vllm", ("http://h",)),
        ("m@SGLang+https://h", "sglang", ("https://h",)),
    ],
)
def test_the_scheme_chooses_the_engine(text: str, engine: str, endpoints: tuple[str, ...]) -> None:
    parsed = parse_model_name(text)
    assert (parsed.engine, parsed.endpoints) == (engine, endpoints)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("openai:", "nothing follows the colon"),
        ("m#", "revision"),
        ("hf:a#b c", "revision"),
        ("m@ftp://h", "'ftp://' is not known"),
        ("m@http://", "is no http"),
        ("m@http://a,b", "is no http"),
        ("m@http://a,vllm+http://b", "different engines"),
        ("m@https://user:secret@h", "api_key_env"),
        ("m@http://h:99999", "cannot be read"),
        ("two words:x", "before the first colon"),
        ("a:b\nc", "control characters"),
        ("a:b\ud800", "control characters"),
    ],
)
def test_a_bad_name_is_one_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        parse_model_name(text)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_whatever_is_accepted_comes_back(text: str) -> None:
    try:
        parsed = parse_model_name(text)
    except ValueError:
        return
    assert parse_model_name(str(parsed)) == parsed
    assert str(parsed) == text.strip()
