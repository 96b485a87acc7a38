"""The one thread that computes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from reward_models.families.reading import Reading
from reward_models.local.engine import LocalEngine
from reward_models.local.processor import compute


def test_work_for_the_processor_is_done_in_one_thread_whoever_asks() -> None:
    with ThreadPoolExecutor(4) as pool:
        names = set(pool.map(lambda _: compute(lambda: threading.current_thread().name), range(16)))
    assert len(names) == 1
    assert threading.current_thread().name not in names


def test_work_for_another_device_stays_where_it_is() -> None:
    assert compute(threading.current_thread, torch.device("meta")) is threading.current_thread()


def test_work_within_work_does_not_wait_for_itself() -> None:
    assert compute(lambda: compute(lambda: 3)) == 3


def test_what_work_raises_is_raised_to_who_asked() -> None:
    def fails() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        compute(fails)


def test_a_reward_model_on_the_processor_computes_there() -> None:
    """A second thread with a team of its own slows both: see the module."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0
    )
    seen: list[str] = []

    def score(states: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        seen.append(threading.current_thread().name)
        return states[:, 0]

    engine = LocalEngine(LlamaModel(config).eval(), score, fingerprint="f", budget=100)
    assert len(engine.raw_scores([Reading(ids=(1, 2), reads=(1,))])) == 1
    assert seen[0].startswith("processor")
