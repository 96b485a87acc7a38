"""The local engine below the families: packed against plain forward passes, memory running out, replicas, loading."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import save_file
from transformers import (
    LlamaConfig,
    LlamaModel,
    MistralConfig,
    MistralModel,
    Qwen2Config,
    Qwen2Model,
    Qwen3Config,
    Qwen3Model,
)

from reward_models.errors import CapabilityError, CheckpointError, MissingExtraError
from reward_models.families import build, math_shepherd, skywork_o1
from reward_models.families.reading import Reading
from reward_models.local import device as devices
from reward_models.local.attention import Range, Span, attend, attend_batched
from reward_models.local.checkpoint import Checkpoint
from reward_models.local.decoder import PackedDecoder, supports
from reward_models.local.engine import LocalEngine, ReplicatedEngine
from reward_models.local.load import Placement, load_engine
from reward_models.local.padded import padded_batches
from reward_models.names import ModelName

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
MODELS = {
    "llama": lambda: LlamaModel(LlamaConfig(**SIZES, rope_parameters=ROPE)),
    "llama with biases": lambda: LlamaModel(
        LlamaConfig(**SIZES, rope_parameters=ROPE, attention_bias=True, mlp_bias=True)
    ),
    "llama 3.1": lambda: LlamaModel(LlamaConfig(**SIZES, rope_parameters=LLAMA3)),
    "mistral": lambda: MistralModel(MistralConfig(**SIZES, rope_parameters=ROPE, sliding_window=None)),
    "qwen2": lambda: Qwen2Model(Qwen2Config(**SIZES, rope_parameters=ROPE)),
    "qwen3": lambda: Qwen3Model(Qwen3Config(**SIZES, rope_parameters=ROPE, head_dim=16)),
}


def readings(seed: int = 0, count: int = 14) -> list[Reading]:
    """Sequences with nested common beginnings, duplicates, and reads anywhere."""
    rng = random.Random(seed)
    question = tuple(rng.choices(range(50), k=40))
    step = question + tuple(rng.choices(range(50), k=12))
    found = []
    for _ in range(count):
        ids = rng.choice((question, step, step, ())) + tuple(rng.choices(range(50), k=rng.randrange(1, 60)))
        reads = sorted(rng.sample(range(len(ids)), k=min(len(ids), rng.randrange(1, 6))))
        found.append(Reading(ids=ids, reads=tuple(reads)))
    return [*found, found[0], Reading(ids=step, reads=(5, 51))]


def column(hidden: Any, _following: Any) -> Any:
    return hidden[:, 0] - hidden[:, 1]


@torch.inference_mode()
def plain(backbone: Any, wanted: Sequence[Reading]) -> list[list[float]]:
    return [
        column(backbone(torch.tensor([r.ids]), use_cache=False).last_hidden_state[0, list(r.reads)], None).tolist()
        for r in wanted
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [30, 100, 4096])
def test_the_packed_forward_equals_the_plain_one(name: str, budget: int) -> None:
    torch.manual_seed(1)
    backbone = MODELS[name]().eval()
    for parameter in backbone.parameters():
        if parameter.ndim == 1:  # norms and biases are not left at ones and zeros
            torch.nn.init.normal_(parameter, mean=0.7, std=0.3)
    expected = plain(backbone, readings())
    assert supports(backbone)
    engine = LocalEngine(backbone, column, fingerprint="x", budget=budget)
    found = engine.raw_scores(readings())
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(found, expected, strict=True))
    assert plain(backbone, readings()) == expected, "laying the weights out leaves the model as it was"
    engine.decoder.rows = 7
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(engine.raw_scores(readings()), expected, strict=True))


def test_a_question_is_computed_once_and_nothing_behind_the_last_read() -> None:
    engine = LocalEngine(MODELS["llama"]().eval(), column, fingerprint="x")
    question = tuple(range(40))
    chains = [Reading(ids=question + (i,) * 20, reads=(49,)) for i in range(3)]
    engine.raw_scores([*chains, chains[0]])
    assert engine.tokens_computed == 40 + 3 * 10


def test_other_architectures_go_through_transformers() -> None:
    config = MistralConfig(**SIZES, rope_parameters=ROPE, sliding_window=16)
    backbone = MistralModel(config).eval()
    assert not supports(backbone)
    engine = LocalEngine(backbone, column, fingerprint="x", budget=100)
    found = engine.raw_scores(readings())
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(found, plain(backbone, readings()), strict=True))


def test_padded_batches_hold_everything_once_within_the_budget() -> None:
    wanted = readings(count=40)
    batches = padded_batches(wanted, 200)
    assert sorted(index for batch in batches for index in batch) == list(range(len(wanted)))
    for batch in batches:
        assert len(batch) * max(len(wanted[index].ids) for index in batch) <= 200


def test_both_ways_of_attention_agree_with_the_definition() -> None:
    torch.manual_seed(0)
    heads, group, width = 2, 3, 8
    key, value = torch.randn(heads, 400, width), torch.randn(heads, 400, width)
    spans = [
        Span(rows=Range(0, 50), offsets=None, context=(), keys=Range(0, 50)),
        Span(rows=Range(50, 70), offsets=None, context=(Range(0, 50),), keys=Range(50, 70)),
        Span(rows=Range(70, 88), offsets=None, context=(Range(0, 50),), keys=Range(70, 88)),
        Span(rows=Range(88, 90), offsets=(3, 9), context=(Range(0, 50), Range(60, 65)), keys=Range(100, 112)),
        Span(rows=Range(90, 390), offsets=None, context=(), keys=Range(100, 400)),
    ]
    query = torch.randn(heads, 390, group, width)
    exact = torch.empty_like(query)
    for span in spans:
        for row in range(*span.rows):
            offset = span.offsets[row - span.rows.begin] if span.offsets else row - span.rows.begin
            seen = [i for part in span.context for i in range(*part)]
            seen += range(span.keys.begin, span.keys.begin + offset + 1)
            weights = torch.einsum("hgw,hkw->hgk", query[:, row], key[:, seen]).mul(0.3).softmax(-1)
            exact[:, row] = torch.einsum("hgk,hkw->hgw", weights, value[:, seen])
    torch.testing.assert_close(attend(query, key, value, spans, 0.3), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attend_batched(query, key, value, spans, 0.3), exact, atol=1e-5, rtol=1e-5)


class Scarce(PackedDecoder):
    """Fails like a full device whenever a pack holds more tokens than it has room for."""

    room = 60
    failures = 0

    def forward(self, forest: Any, group: Any, reads: Any, kept: Any) -> Any:
        if sum(len(forest.segments[index].ids) for index in group.segments) > self.room:
            self.failures += 1
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().forward(forest, group, reads, kept)


def test_packs_are_halved_when_memory_runs_out_and_nothing_is_lost() -> None:
    backbone = MODELS["llama"]().eval()
    engine = LocalEngine(backbone, column, fingerprint="x", budget=400)
    engine.decoder = Scarce(backbone)
    engine.decoder.room = 110
    found = engine.raw_scores(readings())
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(found, plain(backbone, readings()), strict=True))
    assert engine.budget == 100 and engine.decoder.failures == 2
    engine.decoder.room = 1
    with pytest.raises(CapabilityError, match="out of memory"):
        engine.raw_scores(readings())


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    engine = LocalEngine(MODELS["llama"]().eval(), column, fingerprint="x")
    with pytest.raises((IndexError, RuntimeError), match="index"):
        engine.raw_scores([Reading(ids=(1, 999), reads=(1,))])


def test_replicas_share_the_work_and_keep_the_order() -> None:
    backbone = MODELS["llama"]().eval()
    engines = [LocalEngine(backbone, column, fingerprint="x") for _ in range(3)]
    found = ReplicatedEngine(engines).raw_scores(readings(count=30))
    expected = plain(backbone, readings(count=30))
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(found, expected, strict=True))
    assert all(engine.tokens_computed > 0 for engine in engines)
    assert ReplicatedEngine(engines).raw_scores([]) == []


def checkpoint(folder: Path, **config: Any) -> Path:
    model = Qwen2Model(Qwen2Config(**SIZES, rope_parameters=ROPE))
    model.config.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text()) | {"architectures": ["Qwen2ForPrmModel"]} | config
    (folder / "config.json").write_text(json.dumps(written))
    tensors = {f"model.{key}": value.contiguous() for key, value in model.state_dict().items()}
    tensors |= {"v_head.summary.weight": torch.randn(1, 32), "v_head.summary.bias": torch.zeros(1)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def load(folder: Path, **placement: Any) -> Any:
    options = {"device": "cpu", "dtype": "fp32"} | placement
    return load_engine(skywork_o1.FAMILY, Checkpoint.open(str(folder)), Placement(**options))


def test_tensors_in_bin_files_are_read_weights_only_and_give_the_same_scores(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    before = load(tmp_path).raw_scores(readings())
    from safetensors.torch import load_file

    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    after = load(tmp_path).raw_scores(readings())
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(after, before, strict=True))


class Attack:
    """What a malicious pickle holds: a call."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("/tmp/should-never-exist-magicore"),))


def test_a_pickle_that_wants_to_run_something_is_refused_and_the_safe_revision_named(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"weight": Attack()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="refs/pr/5"):
        Checkpoint.open(str(tmp_path), safe_revision="refs/pr/5")
    assert not Path("/tmp/should-never-exist-magicore").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json cannot be read"),
        (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"junk" * 9), "cannot be read"),
    ],
)
def test_a_damaged_folder_is_one_clear_error(tmp_path: Path, damage: Any, message: str) -> None:
    damage(checkpoint(tmp_path))
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def test_a_missing_folder_a_foreign_architecture_and_a_missing_layer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no folder"):
        Checkpoint.open(str(tmp_path / "nowhere"))
    with pytest.raises(CheckpointError, match="Qwen2ForCausalLM, but skywork-o1-prm reads Qwen2ForPrmModel"):
        load(checkpoint(tmp_path, architectures=["Qwen2ForCausalLM"]))
    with pytest.raises(CheckpointError, match="configuration cannot be used"):
        load(checkpoint(tmp_path, num_hidden_layers=4))
    with pytest.raises(CheckpointError, match="lack"):
        load(checkpoint(tmp_path, num_hidden_layers=4, layer_types=["full_attention"] * 4))


def test_a_head_of_another_shape_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    from safetensors.torch import load_file

    tensors = load_file(tmp_path / "model.safetensors") | {"v_head.summary.weight": torch.randn(2, 32)}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"\(2, 32\), but \(1, 32\)"):
        load(tmp_path)


def test_several_devices_make_replicas_and_bf16_stays_close(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    exact, half = load(tmp_path, device="cpu,cpu"), load(tmp_path, dtype="bf16")
    assert isinstance(exact, ReplicatedEngine) and exact.fingerprint != half.fingerprint
    rows = [torch.tensor([raw for row in engine.raw_scores(readings()) for raw in row]) for engine in (exact, half)]
    assert torch.corrcoef(torch.stack(rows))[0, 1] > 0.99


def test_devices_and_formats_are_checked() -> None:
    with pytest.raises(CapabilityError, match="not known"):
        devices.choose_device("tpu")
    with pytest.raises(CapabilityError, match="not known"):
        devices.choose_format("fp8", "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(CapabilityError, match="not available"):
            devices.choose_device("cuda:3")
    with pytest.raises(CapabilityError, match="GiB"):
        devices.check_fits(1 << 50, "cpu", what="giant")


def test_without_torch_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'magicore\[local\]'"):
        build.require_local("math-shepherd")
    with pytest.raises(MissingExtraError):
        math_shepherd.load(ModelName(provider="math-shepherd", name="./nowhere"))
