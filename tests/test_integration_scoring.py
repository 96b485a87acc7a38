"""Scores from a real vLLM on a CPU against the local engine, on tiny random checkpoints; and its documented mistake.

Each server takes a minute or more to start, so each serves one module fixture and everything that is asked of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import servers

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Model,
)

import tiny_models as tiny
from magicore.config import RunConfig
from magicore.runtime.open import open_engine
from magicore.store.run_store import RunStore
from reward_models.errors import ScoringServerError
from reward_models.families import (
    eurus_prm,
    internlm2_reward,
    math_psa,
    math_shepherd,
    qwen_math_prm,
)
from reward_models.names import ModelName
from reward_models.registry import load_outcome_model
from reward_models.remote.engine import RemoteEngine
from reward_models.steps import join_steps
from reward_models.types import OutcomeScore, Solution, StepScores

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TOLERANCE = 1e-3
# vLLM's CPU attention takes heads of 64 and not of 8 or 16.
SIZES = {**tiny.SIZES, "hidden_size": 128, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
QUESTION = "Natalia sold clips to 48 friends in April, and half as many in May. How many in all?"
CHAINS = (
    ("In May she sold 48 / 2 = 24 clips.", "Altogether 48 + 24 = 72.", "The answer is $\\boxed{72}$."),
    ("In May she sold 48 / 2 = 24 clips.", "Altogether 48 + 24 = 74."),
    ("Half of 48 is 21.", "So she sold 48 + 21 = 69 in all.", "The answer is 69.", "Done, тогда всё."),
    ("72",),
)


def solution(texts: tuple[str, ...]) -> Solution:
    text, steps = join_steps(texts)
    return Solution(question=QUESTION, text=text, steps=steps)


SOLUTIONS = [solution(texts) for texts in CHAINS]


@contextmanager
def vllm(folder: Path, options: list[str], log: Path) -> Iterator[str]:
    """A vLLM server of a checkpoint, in float32; its address in a model's name."""
    if servers.vllm_command() is None:
        pytest.skip("vLLM is not installed; scripts/setup_vllm.sh installs it")
    with servers.vllm(folder, log, options=["--dtype", "float32", *options], name="tiny") as server:
        yield f"vllm+{server.url.removesuffix('/v1')}"


def named(family: str, folder: Path, url: str | None = None) -> ModelName:
    return ModelName(provider=family, name=str(folder), urls=() if url is None else (url,))


def values(scores: StepScores | OutcomeScore) -> list[float | None]:
    return [entry.value for entry in scores.scores] if isinstance(scores, StepScores) else [scores.value]


def compared(load: Callable[..., Any], family: str, folder: Path, url: str) -> list[float]:
    """Scores of both engines, which must agree; those of the server are asked for synchronously and not."""
    remote = load(named(family, folder, url))
    local = load(named(family, folder), device="cpu", dtype="fp32")
    ours, theirs = local.score(SOLUTIONS), remote.score(SOLUTIONS)
    again = load(named(family, folder, url))

    async def asked() -> Any:
        try:
            return await again.ascore(SOLUTIONS)
        finally:
            await again.engine.aclose()

    awaited = asyncio.run(asked())
    found: list[float] = []
    for mine, yours, later in zip(ours, theirs, awaited, strict=True):
        assert None not in values(mine)
        assert values(yours) == pytest.approx(values(mine), abs=TOLERANCE)
        assert values(later) == pytest.approx(values(mine), abs=TOLERANCE)
        assert (yours.activation, yours.tokens) == (mine.activation, mine.tokens)
        found += [value for value in values(mine) if value is not None]
    remote.engine.close()
    return found


@pytest.fixture(scope="module")
def shepherd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal Llama with the real Mistral vocabulary, as Math-Shepherd."""
    folder = tmp_path_factory.mktemp("shepherd")
    torch.manual_seed(1)
    tiny.mistral_tokenizer(folder)
    tiny.save_model(LlamaForCausalLM(LlamaConfig(vocab_size=32000, **SIZES, **ROPE)), folder)
    return folder


def test_qwen_math_prm(tmp_path: Path) -> None:
    torch.manual_seed(2)
    tiny.qwen_tokenizer(tmp_path)
    model = Qwen2Model(Qwen2Config(vocab_size=152064, **SIZES, **ROPE))
    tiny.save_model(
        model, tmp_path, architecture="Qwen2ForProcessRewardModel", heads=tiny.mlp_head(2, size=SIZES["hidden_size"])
    )
    with vllm(tmp_path, ["--runner", "pooling"], tmp_path / "log") as url:
        found = compared(qwen_math_prm.load, "qwen2.5-math-prm", tmp_path, url)
    assert max(found) - min(found) > 0.1


def test_converted_internlm2_reward(tmp_path: Path) -> None:
    torch.manual_seed(3)
    tiny.internlm2_tokenizer(tmp_path)
    config = LlamaConfig(vocab_size=92544, pad_token_id=2, num_labels=1, **SIZES, **ROPE)
    tiny.save_model(LlamaForSequenceClassification(config), tmp_path)
    with vllm(tmp_path, ["--runner", "pooling"], tmp_path / "log") as url:
        found = compared(internlm2_reward.load, "internlm2-reward", tmp_path, url)
        pairs = load_outcome_model(f"cross-encoder@{url}")
        joined = pairs.score([*SOLUTIONS, Solution(question=QUESTION, text="so " * 3000)])
        pairs.close()  # type: ignore[attr-defined]
    assert max(found) - min(found) > 0.1
    assert len({score.raw for score in joined[:-1]}) == len(SOLUTIONS)
    assert joined[-1].unscored is not None
    assert joined[-1].unscored.code == "past_context"


def test_math_shepherd_as_a_classifier_of_two_tokens(shepherd: Path, tmp_path: Path) -> None:
    override = {"method": "from_2_way_softmax", "classifier_from_token": ["▁-", "▁+"]}
    pooler = {"task": "token_classify", "pooling_type": "STEP", "step_tag_id": 12902}
    options = ["--runner", "pooling", "--convert", "classify"]
    options += ["--hf-overrides", json.dumps(override), "--pooler-config", json.dumps(pooler)]
    with vllm(shepherd, options, tmp_path / "log") as url:
        found = compared(math_shepherd.load, "math-shepherd", shepherd, url)
    assert max(found) - min(found) > 0.1


def test_math_shepherd_as_documented_is_refused(shepherd: Path, tmp_path: Path) -> None:
    pooler = {"pooling_type": "STEP", "step_tag_id": 12902, "returned_token_ids": [64, 38]}
    options = ["--runner", "pooling", "--pooler-config", json.dumps(pooler)]
    with vllm(shepherd, options, tmp_path / "log") as url:
        model = math_shepherd.load(named("math-shepherd", shepherd, url))
        with pytest.raises(ScoringServerError) as caught:
            model.score(SOLUTIONS)
        model.engine.close()
    said = str(caught.value)
    assert "does not give this family's scores; start it with: vllm serve" in said
    assert '"method": "from_2_way_softmax", "classifier_from_token": ["▁-", "▁+"]' in said
    assert not caught.value.retryable


def test_a_generation_server_scores_prefixes_and_tokens(tmp_path: Path) -> None:
    """Families that read two tokens, and the log-probabilities of implicit rewards, from an ordinary server."""
    torch.manual_seed(4)
    tiny.qwen_tokenizer(tmp_path)
    tiny.save_model(Qwen2ForCausalLM(Qwen2Config(vocab_size=152064, **SIZES, **ROPE)), tmp_path)
    with vllm(tmp_path, [], tmp_path / "log") as url:
        compared(math_psa.load, "math-psa", tmp_path, url)
        local = eurus_prm.load(named("eurus-prm", tmp_path), reference=str(tmp_path), device="cpu", dtype="fp32")
        reference = f"eurus-prm:{tmp_path}@{url}"
        remote = eurus_prm.load(named("eurus-prm", tmp_path, url), reference=reference)
        readings = [
            eurus_prm.write(local.tokenizer, QUESTION, [step.text.strip() for step in one.steps]) for one in SOLUTIONS
        ]
        theirs = remote.engine._policy
        assert isinstance(theirs, RemoteEngine)
        mine = local.engine.policy.raw_scores(readings)
        for one, other in zip(mine, theirs.raw_scores(readings), strict=True):
            assert other == pytest.approx(one, abs=TOLERANCE)
        assert [values(scores) for scores in remote.score(SOLUTIONS)] == [
            pytest.approx([0.5] * len(one.steps), abs=TOLERANCE) for one in SOLUTIONS
        ]
        remote.engine._policy.close()
        remote.engine._reference.close()


def test_generative_families_by_name(tmp_path: Path) -> None:
    """The embedded model is no GenPRM: what it cannot judge is unscored, and whatever it judges is a probability."""
    folder = servers.exported_model(tmp_path / "smollm2")
    log = tmp_path / "log"
    if servers.vllm_command() is None:
        pytest.skip("vLLM is not installed; scripts/setup_vllm.sh installs it")
    with servers.vllm(folder, log) as server:
        url = f"vllm+{server.url.removesuffix('/v1')}"
        tables = {
            "verifier": {"name": f"thinkprm:{server.model}", "urls": [url], "max_tokens": 200},
            "critic": {"name": f"genprm:{server.model}@{url}", "max_tokens": 200},
        }
        config = RunConfig(model=server.name, orm="verifier", prm="critic", reward_models=tables)

        async def asked() -> tuple[list[OutcomeScore], list[StepScores]]:
            async with open_engine(config, RunStore()) as engine:
                assert engine.orm is not None
                assert engine.prm is not None
                return await engine.orm.score(SOLUTIONS), await engine.prm.score(SOLUTIONS[:2])

        verified, judged = asyncio.run(asked())
    assert all(score.tokens is not None and score.tokens > 200 for score in verified)
    for score in [*verified, *(entry for scores in judged for entry in scores.scores)]:
        assert (score.value is None) != (score.unscored is None)
        assert score.unscored is None or score.unscored.code == "unreadable", score.unscored
    assert [len(scores.scores) for scores in judged] == [len(chain) for chain in CHAINS[:2]]
