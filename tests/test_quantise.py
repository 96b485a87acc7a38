"""Local models in 8 and 4 bits: refused in a sentence where that cannot be, computed as the loaded weights say."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from magicore.errors import InputError, MissingExtraError
from magicore.llms.base import Request, Sampling, messages
from magicore.llms.registry import open_model
from magicore.types import CallKey
from reward_models.errors import CapabilityError
from reward_models.errors import MissingExtraError as MissingRewardExtraError
from reward_models.registry import load_process_model
from reward_models.types import Solution, Step
from tiny_chat import SMALL, byte_tokenizer

SIZES: dict[str, Any] = {**SMALL, "hidden_size": 64, "intermediate_size": 128, "max_position_embeddings": 512}
STEPS = ("First, 2 + 3 = 5.\n", "So the answer is 5.\n", "Or 6.\n")
SOLUTION = Solution(
    question="What is 2 + 3?",
    text="".join(STEPS),
    steps=tuple(
        Step(text=text, start=(at := sum(map(len, STEPS[:place]))), end=at + len(text))
        for place, text in enumerate(STEPS)
    ),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A process model and a policy whose layers are large enough to be quantised in blocks of 64."""
    torch.manual_seed(3)
    made = {name: tmp_path_factory.mktemp(name) for name in ("prm", "policy")}
    models = {
        "prm": transformers.Qwen2ForTokenClassification(transformers.Qwen2Config(**SIZES, num_labels=2)),
        "policy": transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)),
    }
    for name, model in models.items():
        model.save_pretrained(made[name])
        byte_tokenizer().save_pretrained(made[name])
    return made


def prm(folder: Path, **options: Any) -> Any:
    return load_process_model(f"trl-prm:{folder}", device="cpu", dtype="float32", **options)


def raw(model: Any) -> list[float]:
    return [entry.raw for entry in model.score([SOLUTION])[0].scores]


def test_without_bitsandbytes_the_error_says_how_to_install_it(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "bitsandbytes" else real(name, *rest)
    )
    with pytest.raises(
        MissingRewardExtraError, match=r"quantize=8bit needs bitsandbytes: pip install 'magicore\[quant"
    ):
        prm(folders["prm"], quantize="8bit")
    with pytest.raises(MissingExtraError, match=r"quantize=4bit needs bitsandbytes: pip install 'magicore\[quant"):
        open_model("nick", models={"nick": {"name": f"hf:{folders['policy']}", "quantize": "4bit"}})


def test_other_formats_are_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(CapabilityError, match="quantize is 8bit or 4bit, not '3bit'"):
        prm(folders["prm"], quantize="3bit")
    with pytest.raises(InputError, match="quantize is 8bit or 4bit, not '3bit'"):
        open_model(f"hf:{folders['policy']}", quantize="3bit")


@pytest.mark.parametrize(("quantize", "stored"), [("8bit", "int8"), ("4bit", "uint8")])
def test_a_quantised_reward_model_computes_what_transformers_computes_with_its_weights(
    folders: dict[str, Path], quantize: str, stored: str
) -> None:
    pytest.importorskip("bitsandbytes")
    plain, model = prm(folders["prm"]), prm(folders["prm"], quantize=quantize)
    weight = model.engine.backbone.layers[0].mlp.up_proj.weight
    assert str(weight.dtype) == f"torch.{stored}"
    assert weight.nbytes <= plain.engine.backbone.layers[0].mlp.up_proj.weight.nbytes / (4 if quantize == "8bit" else 8)
    assert model.fingerprint != plain.fingerprint
    packed = raw(model)
    other = prm(folders["prm"], quantize=quantize)
    other.engine.decoder = None  # the forward pass of transformers
    assert packed == pytest.approx(raw(other), abs=0.05 if quantize == "8bit" else 1e-3)
    assert packed == pytest.approx(raw(plain), abs=0.5)
    assert packed != raw(plain)


@pytest.mark.parametrize("quantize", ["8bit", "4bit"])
def test_a_quantised_policy_samples(folders: dict[str, Path], quantize: str) -> None:
    pytest.importorskip("bitsandbytes")
    name = f"hf:{folders['policy']}"
    model = open_model(name, device="cpu", dtype="float32", quantize=quantize)
    assert model.fingerprint != open_model(name, device="cpu", dtype="float32").fingerprint
    request = Request(
        messages=messages(("user", "Hi")),
        key=CallKey(problem="p", role="solver"),
        indices=(0, 1),
        sampling=Sampling(temperature=1.0, max_tokens=8),
    )

    async def run() -> Any:
        try:
            return await model.generate(request)
        finally:
            await model.aclose()

    assert [one.usage.completion > 0 for one in asyncio.run(run()).completions] == [True, True]
