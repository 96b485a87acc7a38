"""Local models on tiny random networks of true architectures: batched sampling computes what the network computes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from magicore.errors import CapabilityError, ContextExceeded, InputError, LanguageModelError
from magicore.llms.base import Generation, Request, Sampling, messages
from magicore.llms.local import LocalModel, batch, checking, engine, local
from magicore.llms.local.checking import self_check
from magicore.llms.local.choosing import choose, log_probabilities, most_likely
from magicore.llms.local.loading import LoadedModel, choose_dtype, find_checkpoint, precision_mark, prepare
from magicore.llms.local.prompts import PromptReader, _longest, prompt_tokens
from magicore.types import CallKey, Completion, Usage
from reward_models.names import parse_model_name
from tiny_chat import ARCHITECTURES, CPU, TEMPLATE, byte_tokenizer, tiny

Opener = Callable[..., LocalModel]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens tiny models, and closes them."""
    found: list[LocalModel] = []

    def open_tiny(loaded: LoadedModel | None = None, **options: Any) -> LocalModel:
        ready = loaded or tiny()
        found.append(LocalModel(name="hf:tiny", fingerprint="1", load=lambda: ready, **options))
        return found[-1]

    yield open_tiny
    for model in found:
        asyncio.run(model.aclose())


def request(text: str = "What is 2 + 3?", k: int = 1, problem: str = "p", **changes: Any) -> Request:
    plain = Request(
        messages=messages(("user", text)),
        key=CallKey(problem=problem, role="solver"),
        indices=tuple(range(k)),
        sampling=Sampling(temperature=1.0, top_p=0.9, max_tokens=24),
    )
    return replace(plain, **changes)


def ask(model: LocalModel, *requests: Request) -> list[Generation]:
    async def run() -> list[Generation]:
        return list(await asyncio.gather(*(model.generate(one) for one in requests)))

    return asyncio.run(run())


GREEDY = Sampling(temperature=0.0, max_tokens=20)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_chains_in_one_batch_are_those_of_transformers_own_generate(architecture: str, opened: Opener) -> None:
    loaded = tiny(architecture)
    texts = ["short", "a prompt of some length", "What is 2 + 3? " * 4]
    generations = ask(opened(loaded), *(request(text, sampling=GREEDY, problem=text) for text in texts))
    for text, generation in zip(texts, generations, strict=True):
        ids = prompt_tokens(loaded.tokenizer, messages(("user", text)), None)
        whole = loaded.model.generate(
            torch.tensor([ids]), max_new_tokens=20, do_sample=False, eos_token_id=list(loaded.ends), pad_token_id=0
        )
        expected = whole[0, len(ids) :].tolist()
        [one] = generation.completions
        assert one.tokens == len(expected)
        assert one.text == loaded.tokenizer.decode(expected, skip_special_tokens=True)
        assert one.usage == Usage(prompt=len(ids), completion=len(expected), calls=1)


def test_log_probabilities_are_the_networks_own_whatever_the_sampling(opened: Opener) -> None:
    loaded = tiny()
    asked = request(k=3, logprobs=True, top_logprobs=2, sampling=Sampling(temperature=1.7, top_p=0.5, max_tokens=9))
    prompt = prompt_tokens(loaded.tokenizer, asked.messages, None)
    for one in ask(opened(loaded), asked)[0].completions:
        ids = loaded.tokenizer(one.text, add_special_tokens=False)["input_ids"]
        ids += [98] * (one.stop == "stop")
        with torch.no_grad():
            logits = loaded.model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        table = torch.log_softmax(logits.double(), -1)
        assert one.token_logprobs == pytest.approx(table[range(len(ids)), ids].tolist(), abs=1e-4)
        assert one.top_logprobs is not None
        for row, values, tokens in zip(one.top_logprobs, *table.topk(2), strict=True):
            assert [token for token, _ in row] == [loaded.tokenizer.decode([token]) for token in tokens.tolist()]
            assert [value for _, value in row] == pytest.approx(values.tolist(), abs=1e-4)


def test_the_prompt_is_charged_once_a_question(opened: Opener) -> None:
    [generation] = ask(opened(), request(k=5))
    usages = [one.usage for one in generation.completions]
    prompt = 1 + len("user\nWhat is 2 + 3?") + 1 + len("\n") + 1 + len("assistant\n")
    assert usages[0] == Usage(prompt=prompt, completion=usages[0].completion, calls=1)
    assert usages[1:] == [Usage(completion=one.tokens or 0) for one in generation.completions[1:]]


def drawn(generation: Generation) -> dict[int, Completion]:
    return {one.index: replace(one, usage=Usage()) for one in generation.completions}


def test_deterministic_samples_do_not_depend_on_what_else_is_drawn(opened: Opener) -> None:
    loaded = tiny()
    asked = request(k=20, logprobs=True)
    [all_at_once] = ask(opened(loaded, deterministic=True), asked)
    first, rest = ask(
        opened(loaded, deterministic=True),
        replace(asked, indices=(0, 1, 2, 3)),
        replace(asked, indices=(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)),
    )
    others = [request(f"another question {at}", k=3, problem=str(at)) for at in range(3)]
    *_, topped_up = ask(opened(loaded, deterministic=True), *others, replace(asked, indices=(18, 19)))
    assert drawn(first) | drawn(rest) | drawn(topped_up) == drawn(all_at_once)
    assert len({one.text for one in all_at_once.completions}) > 10


def test_deterministic_sums_run_over_one_row_at_a_time(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch splits the sum of a single long row between threads and that of several rows not, so that their last bits
    differ; the tiny vocabulary of these tests is too short to show it.
    """
    rows: list[int] = []

    def spying(logits: Any, *others: Any) -> list[int]:
        rows.append(len(logits))
        return choose(logits, *others)

    monkeypatch.setattr(batch, "choose", spying)
    ask(opened(deterministic=True), request(k=3))
    assert set(rows) == {1}
    ask(opened(), request(k=3))
    assert max(rows) == 3


def test_the_run_seed_the_key_and_the_index_decide_the_sample(opened: Opener) -> None:
    model = opened(deterministic=True)
    asked = request()
    changed = [
        replace(asked, seed=1),
        replace(asked, indices=(1,)),
        replace(asked, key=replace(asked.key, round=1)),
        replace(asked, key=replace(asked.key, role="refiner")),
    ]
    generations = ask(model, asked, *changed, replace(asked, key=replace(asked.key, problem="other")))
    found = [generation.completions[0].text for generation in generations]
    assert len(set(found[:-1])) == len(changed) + 1
    assert found[-1] == found[0]  # the problem's id is no part of a content key


def test_more_chains_than_rows_take_turns(opened: Opener) -> None:
    requests = [request(f"question {at}", k=7, problem=str(at)) for at in range(4)]
    few, many = ask(opened(rows=3), *requests), ask(opened(rows=64), *requests)
    assert [[one.index for one in generation.completions] for generation in few] == [list(range(7))] * 4
    assert [drawn(generation) for generation in few] == [drawn(generation) for generation in many]


def test_stop_strings_limits_and_end_tokens(opened: Opener) -> None:
    loaded = tiny()
    model = opened(loaded)
    [free] = ask(model, request(sampling=GREEDY))
    text = free.completions[0].text
    stop = text[5:7]
    asked = replace(GREEDY, stop=(stop, "never"))
    [stopped] = ask(model, request(sampling=asked, logprobs=True))
    one = stopped.completions[0]
    assert (one.text, one.stop) == (text[: text.find(stop)], "stop")
    assert one.token_logprobs is not None
    assert one.tokens == len(one.token_logprobs) <= 20

    [cut] = ask(model, request(sampling=replace(GREEDY, max_tokens=3)))
    assert (cut.completions[0].stop, cut.completions[0].tokens) == ("length", 3)

    first = loaded.tokenizer(text, add_special_tokens=False)["input_ids"][0]
    [ended] = ask(opened(replace(loaded, ends=frozenset({first}))), request(sampling=GREEDY))
    assert (ended.completions[0].text, ended.completions[0].stop, ended.completions[0].tokens) == ("", "stop", 1)


def test_a_reply_that_is_begun_is_continued(opened: Opener) -> None:
    model = opened()
    asked = [request(f"question {at}", problem=str(at), sampling=GREEDY) for at in range(20)]
    texts = [generation.completions[0].text for generation in ask(model, *asked)]
    at = next(at for at, text in enumerate(texts) if len(text) == 20)  # no special token in it, which would not show
    rest = replace(asked[at], sampling=replace(GREEDY, max_tokens=10), prefill=texts[at][:10])
    assert ask(model, rest)[0].completions[0].text == texts[at][10:]


def test_the_context_bounds_prompt_and_answer(opened: Opener) -> None:
    model = opened(replace(tiny(), ends=frozenset()))
    [full] = ask(model, request("x" * 180, sampling=replace(GREEDY, max_tokens=1000)))
    used = full.completions[0].usage
    assert full.completions[0].stop == "length"
    assert used.prompt + used.completion == 256
    with pytest.raises(ContextExceeded, match=r"the prompt has \d+ tokens, the model reads 256"):
        ask(model, request("x" * 300))
    assert ask(model, request())[0].completions  # the model goes on


def test_a_cancelled_request_leaves_its_rows_to_others(opened: Opener) -> None:
    model = opened(rows=2)

    async def run() -> Generation:
        endless = replace(GREEDY, max_tokens=10**6)
        hopeless = asyncio.ensure_future(model.generate(request("a", k=2, sampling=endless)))
        await asyncio.sleep(0.05)
        hopeless.cancel()
        return await model.generate(request("b", k=2))

    assert len(asyncio.run(run()).completions) == 2


def test_a_model_that_cannot_be_loaded_says_so_to_everyone() -> None:
    def load() -> LoadedModel:
        raise InputError("folder: lacks a file")

    model = LocalModel(name="hf:x", fingerprint="", load=load)

    async def run() -> list[Any]:
        outcomes = await asyncio.gather(*(model.generate(request()) for _ in range(3)), return_exceptions=True)
        await model.aclose()
        return outcomes

    assert [str(outcome) for outcome in asyncio.run(run())] == ["folder: lacks a file"] * 3


def test_a_failure_while_sampling_fails_its_requests_and_no_more(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tiny()
    model = opened(loaded)
    ask(model, request())
    with monkeypatch.context() as broken:
        broken.setattr(engine.Batch, "step", lambda _: (_ for _ in ()).throw(RuntimeError("out of memory")))
        with pytest.raises(LanguageModelError, match=r"sampling failed \(RuntimeError: out of memory\)"):
            ask(model, request())
    assert ask(model, request())[0].completions


def test_closing_gives_up_what_is_under_way() -> None:
    ready = tiny()
    model = LocalModel(name="hf:tiny", fingerprint="1", load=lambda: ready)

    async def run() -> Any:
        task = asyncio.ensure_future(model.generate(request(sampling=replace(GREEDY, max_tokens=10**6))))
        await asyncio.sleep(0.1)
        await model.aclose()
        return await asyncio.gather(task, return_exceptions=True)

    [outcome] = asyncio.run(run())
    assert isinstance(outcome, LanguageModelError | Generation)


# Prompts


def test_a_common_beginning_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny()
    tokens = [at % 90 for at in range(60)]
    with torch.inference_mode():
        [plain] = PromptReader(loaded, reuse=False).read([[*tokens, 7, 8, 9]])
        reader = PromptReader(loaded, reuse=True)
        reader.read([[*tokens, 1, 2, 3]])
        read = widths(loaded, monkeypatch)
        [reused] = reader.read([[*tokens, 7, 8, 9]])
        [again] = reader.read([[*tokens, 7, 8, 10]])
    assert read == [(1, 2)]
    for (keys, _), (plain_keys, _), (same, _) in zip(reused.states, plain.states, again.states, strict=True):
        assert torch.allclose(keys, plain_keys, atol=1e-5)
        assert torch.equal(keys, same)


def test_prompts_that_wait_together_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny()
    shared = [at % 90 for at in range(60)]
    ends = ((1, 2), (3, 4, 5, 6, 7, 8, 9), (3, 4, 5), (3, 4, 5, 6, 7, 8, 9), (10, 11, 12, 13, 14))
    prompts = [[*shared, *end] for end in ends] + [[3], [*range(1, 12)]]
    with torch.inference_mode():
        plain = [PromptReader(loaded, reuse=False).read([prompt])[0] for prompt in prompts]
        reader = PromptReader(loaded, reuse=True)
        reader.read([[*shared, 80, 80]])
        read = widths(loaded, monkeypatch)
        together = reader.read(prompts)
    # nothing in common with what was read; three that differ, after what they share; one that another begins with, not
    assert read == [(1, 10), (3, 6)]
    for one, alone in zip(together, plain, strict=True):
        assert one.tokens == alone.tokens
        assert len(one.states) == len(alone.states)
        for ours, theirs in zip(one.states, alone.states, strict=True):
            assert ours[0].shape[2] == len(one.tokens) - 1
            assert torch.allclose(ours[0], theirs[0], atol=1e-5)
            assert torch.allclose(ours[1], theirs[1], atol=1e-5)


def test_prompts_with_different_beginnings_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny()
    first, second = [at % 90 for at in range(30)], [(7 * at + 1) % 90 for at in range(32)]
    prompts = [[*first, 5, 6, 7], [*second, 5, 6, 7]]
    with torch.inference_mode():
        plain = [PromptReader(loaded, reuse=False).read([prompt])[0] for prompt in prompts]
        reader = PromptReader(loaded, reuse=True)
        reader.read([[*first, 80, 80], [*second, 80, 80]])
        read = widths(loaded, monkeypatch)
        together = reader.read(prompts)
    assert read == [(2, 4)]  # from token 30 on, the earlier of their two ends of what is known
    for one, alone in zip(together, plain, strict=True):
        for ours, theirs in zip(one.states, alone.states, strict=True):
            assert torch.allclose(ours[0], theirs[0], atol=1e-5)
            assert torch.allclose(ours[1], theirs[1], atol=1e-5)


@given(st.lists(st.lists(st.integers(0, 2), max_size=6).map(tuple), max_size=12))
def test_what_is_read_begins_with_what_it_stands_for(bodies: list[tuple[int, ...]]) -> None:
    within = _longest(bodies)
    assert within.keys() == set(bodies)
    assert within.pop((), ()) == ()
    for body, longest in within.items():
        assert longest[: len(body)] == body
        assert not any(other != longest and other[: len(longest)] == longest for other in bodies)


def test_a_very_long_prompt_is_not_padded_for(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny()
    read = widths(loaded, monkeypatch)
    with torch.inference_mode():
        PromptReader(loaded, reuse=False).read([[1, 2, 3], [*range(90)] * 4, [4, 5, 6, 7]])
    assert read == [(2, 3), (1, 359)]


def widths(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and columns of each pass from now on."""
    read: list[tuple[int, int]] = []
    forward = loaded.model.forward

    def counting(**arguments: Any) -> Any:
        rows, columns = arguments["input_ids"].shape
        read.append((rows, columns))
        return forward(**arguments)

    monkeypatch.setattr(loaded.model, "forward", counting)
    return read


def test_chat_templates_and_models_without_one() -> None:
    turns = messages(("system", "Be brief."), ("user", "Hi"))
    chat = byte_tokenizer()
    assert chat.decode(prompt_tokens(chat, turns, "So")) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nSo"
    )
    plain = byte_tokenizer(template=None)
    assert plain.decode(prompt_tokens(plain, turns, None)) == "Be brief.\n\nHi\n\n"
    strict = byte_tokenizer(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    )
    assert "user\nBe brief.\n\nHi<|im_end|>" in strict.decode(prompt_tokens(strict, turns, None))
    never = byte_tokenizer("{{ raise_exception('never') }}")
    with pytest.raises(CapabilityError, match="cannot hold this conversation"):
        prompt_tokens(never, turns, None)


# Choosing tokens


def choices(logits: Sequence[float], count: int, *, temperature: float = 1.0, top_p: float = 1.0) -> Counter[int]:
    table = torch.tensor([list(logits)] * count)
    draws = [random.Random(at) for at in range(count)]
    return Counter(choose(table, [temperature] * count, [top_p] * count, draws))


def test_tokens_come_as_often_as_their_probability_says() -> None:
    probabilities = [0.5, 0.25, 0.15, 0.1]
    counts = choices([torch.tensor(p).log().item() for p in probabilities], 8000)
    for token, probability in enumerate(probabilities):
        assert counts[token] / 8000 == pytest.approx(probability, abs=0.02)


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (1.0, {0: 0.5, 1: 0.25, 2: 0.15, 3: 0.1}),
        (0.85, {0: 0.5 / 0.9, 1: 0.25 / 0.9, 2: 0.15 / 0.9}),
        (0.75, {0: 2 / 3, 1: 1 / 3}),
        (0.4, {0: 1.0}),
        (0.01, {0: 1.0}),
    ],
)
def test_the_nucleus_is_the_fewest_tokens_that_reach_top_p(top_p: float, expected: dict[int, float]) -> None:
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1]).log().tolist()
    counts = choices(logits, 4000, top_p=top_p)
    assert set(counts) == set(expected)
    for token, probability in expected.items():
        assert counts[token] / 4000 == pytest.approx(probability, abs=0.03)


def test_a_nucleus_that_is_rarely_hit_is_drawn_from_all_the_same() -> None:
    logits = [0.02, *[0.0] * 999]  # the likeliest token has a thousandth
    assert choices(logits, 50, top_p=0.0005) == {0: 50}


def test_temperature_sharpens_and_zero_is_greedy() -> None:
    logits = [1.0, 0.0]
    warm, cool = choices(logits, 2000), choices(logits, 2000, temperature=0.25)
    assert warm[0] / 2000 == pytest.approx(0.731, abs=0.03)
    assert cool[0] / 2000 == pytest.approx(0.982, abs=0.02)
    assert choices(logits, 100, temperature=0.0) == {0: 100}


def test_a_row_is_chosen_as_if_alone() -> None:
    torch.manual_seed(1)
    logits = torch.randn(6, 50) * 3
    temperatures, top_ps = [1.0, 0.0, 0.5, 1.3, 0.0, 1.0], [1.0, 0.9, 0.3, 0.8, 1.0, 0.05]
    together = choose(logits, temperatures, top_ps, [random.Random(at) for at in range(6)])
    alone = [
        choose(logits[at : at + 1], temperatures[at : at + 1], top_ps[at : at + 1], [random.Random(at)])[0]
        for at in range(6)
    ]
    assert together == alone


def test_log_probabilities_by_hand() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log() + 3.0
    assert log_probabilities(logits, [1]) == pytest.approx([-1.386294], abs=1e-5)
    [row] = most_likely(logits, 2)
    assert [token for token, _ in row] == [0, 1]
    assert [value for _, value in row] == pytest.approx([-0.693147, -1.386294], abs=1e-5)


# Loading


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_check_at_load_passes_true_architectures(architecture: str) -> None:
    self_check(tiny(architecture))


def test_the_check_at_load_finds_a_wrong_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "step_mask", lambda loaded, positions, mask: torch.ones_like(mask))
    with pytest.raises(CapabilityError, match="LlamaForCausalLM does not sample in batches as it does alone"):
        self_check(tiny())


def test_other_states_than_keys_and_values_are_refused() -> None:
    network = transformers.MambaForCausalLM(
        transformers.MambaConfig(vocab_size=99, hidden_size=16, num_hidden_layers=1, state_size=4)
    )
    with pytest.raises(CapabilityError, match="keeps another state than keys and values"):
        prepare(network, byte_tokenizer(), CPU)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny checkpoint on disk."""
    loaded = tiny()
    loaded.model.save_pretrained(tmp_path / "model")
    loaded.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_is_opened_by_name_and_samples(folder: Path) -> None:
    model = local(parse_model_name(f"hf:{folder}"), dtype="float32")
    assert ask(model, request(k=2))[0].completions[1].tokens
    asyncio.run(model.aclose())


def test_the_fingerprint_follows_the_weights_and_the_precision(folder: Path) -> None:
    def fingerprint(**options: Any) -> str:
        return local(parse_model_name(f"hf:{folder}"), **options).fingerprint

    plain = fingerprint()
    assert plain == fingerprint()
    named = [fingerprint(dtype="float32"), fingerprint(dtype="bf16")]
    assert plain in named  # the precision that was found, not that it was left to be found
    assert len({*named, fingerprint(deterministic=True)}) == 3
    weights = folder / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    assert fingerprint() != plain


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / "config.json").unlink(), "lacks config.json"),
        (lambda f: (f / "tokenizer.json").unlink(), "lacks a tokenizer"),
        (lambda f: (f / "model.safetensors").unlink(), "lacks model.safetensors"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part-2.safetensors"}}'),
            "lacks part-2.safetensors",
        ),
        (lambda f: (f / "model.safetensors.index.json").write_text("[]"), "cannot be read as an index"),
    ],
)
def test_a_folder_that_lacks_a_file_is_refused_before_anything_is_loaded(
    folder: Path, damage: Callable[[Path], object], says: str
) -> None:
    damage(folder)
    with pytest.raises(InputError, match=says):
        local(parse_model_name(f"hf:{folder}"))


def test_a_damaged_file_is_named_when_it_is_loaded(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"not weights" * 10)
    model = local(parse_model_name(f"hf:{folder}"))
    with pytest.raises(InputError, match="cannot be loaded"):
        ask(model, request())
    asyncio.run(model.aclose())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hf:./nowhere", "there is no such folder"),
        ("hf:nobody", "a Hub id has the form owner/name"),
        ("hf:no-such-owner/no-such-model", "the Hub cannot be reached and the model is not in its cache"),
    ],
)
def test_models_that_are_nowhere(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        find_checkpoint(parse_model_name(name).name, None)


def test_devices_and_precisions() -> None:
    for options, says in (
        ({"device": "tpu"}, "there is no device 'tpu'"),
        ({"dtype": "int3"}, "there is no dtype 'int3'"),
        ({"rows": 0}, "rows must be at least 1"),
    ):
        with pytest.raises(InputError, match=says):
            local(parse_model_name(f"hf:{Path(__file__).parent}"), **options) if "rows" in options else _choose(options)
    assert choose_dtype("auto", CPU, deterministic=True) == torch.float32
    assert choose_dtype("bf16", CPU, deterministic=True) == torch.bfloat16
    assert choose_dtype("auto", CPU, deterministic=False) in (torch.float32, torch.bfloat16)
    assert precision_mark(torch.bfloat16, deterministic=False) == "bfloat16"
    assert precision_mark(torch.float32, deterministic=True) == "float32-fixed"


def _choose(options: dict[str, str]) -> None:
    from magicore.llms.local.loading import choose_device

    choose_dtype(options.get("dtype", "auto"), choose_device(options.get("device", "cpu")), deterministic=False)


def test_memory_bounds_the_rows_and_everyone_gets_a_turn(opened: Opener) -> None:
    loaded = tiny()
    row = 2 * 2 * 2 * 8 * 4 * 80  # layers, keys and values, heads, head size, bytes, tokens at most
    tight = opened(replace(loaded, cache_bytes=3 * row))
    requests = [request(f"question {at}", k=5, problem=str(at)) for at in range(3)]
    wide = ask(opened(loaded), *requests)
    assert [drawn(one) for one in ask(tight, *requests)] == [drawn(one) for one in wide]
    starved = opened(replace(loaded, cache_bytes=1))
    assert [drawn(one) for one in ask(starved, *requests)] == [drawn(one) for one in wide]
