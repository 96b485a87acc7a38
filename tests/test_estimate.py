"""What a run may cost is told, and asked about, before it is spent."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore.cli.running import AskTerminal
from magicore.errors import InputError
from magicore.llms.base import Request, Traits
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.estimate import Estimate


class Remote(ScriptedModel):
    """A scripted model that says it is remote."""

    traits = Traits(remote=True)


def answer(request: Request, index: int) -> str:
    return "Step 1: The final answer is 2."


class Remember(AskTerminal):
    def __init__(self) -> None:
        super().__init__(yes=True)
        self.seen: list[Estimate] = []

    def __call__(self, cost: Estimate) -> None:
        self.seen.append(cost)


def run(model: Any, **settings: Any) -> list[Estimate]:
    asked = Remember()
    magicore.solve_batch(
        ["What is 1 + 1?", "What is 2 + 0?"],
        model=model,
        orm="constant:0.5",
        prm="arithmetic",
        approval=asked,
        max_tokens=10,
        **settings,
    )
    return asked.seen


def test_a_remote_run_is_estimated_between_its_bounds() -> None:
    # Least: 20 chains a question in calls of 16, so 2 calls each. Most: 20 + 3 rounds of 20 reviews and 20 refinements.
    (cost,) = run(Remote(answer), method="magicore", k=20, iterations=3)
    assert (cost.least_calls, cost.most_calls) == (2 * 2, 2 * 140)
    assert cost.most_tokens == 2 * 140 * (13 + 10)


def test_a_local_run_is_not() -> None:
    assert run(ScriptedModel(answer), method="self-consistency", k=2) == []


def test_many_calls_need_a_yes_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    few, many = (Estimate(least_calls=1, most_calls=n, most_tokens=1) for n in (2000, 2001))
    AskTerminal(yes=False)(few)
    AskTerminal(yes=True)(many)
    with pytest.raises(InputError, match="--yes"):
        AskTerminal(yes=False)(many)


def test_each_stage_and_shard_is_estimated_alone(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"method": "magicore", "k": 4, "iterations": 1}
    (whole,) = run(Remote(answer), **settings)
    assert (whole.least_calls, whole.most_calls) == (2, 2 * (4 + 4 + 4))  # each chain drawn, reviewed and refined
    (prepare,) = run(Remote(answer), out=tmp_path, stage="prepare", **settings)
    assert (prepare.least_calls, prepare.most_calls) == (2, 2 * 4)
    (finish,) = run(Remote(answer), out=tmp_path, stage="finish", **settings)
    assert (finish.least_calls, finish.most_calls) == (0, 2 * (4 + 4))
    (shard,) = run(Remote(answer), shard="2/2", method="self-consistency", k=4)
    assert (shard.least_calls, shard.most_calls) == (1, 4)
