"""Budgets: what fits is drawn, what does not is not, and methods answer with what they have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore import Problem
from magicore.errors import BudgetExceeded, InputError
from magicore.llms.base import Request, Sampling, messages
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.budget import Account, Budget, Halt, most, prompt_tokens
from magicore.runtime.run import without_rounds
from magicore.types import CallKey, Usage


def request(n: int, max_tokens: int = 10, text: str = "abcd") -> Request:
    return Request(
        messages=messages(("user", text)),
        key=CallKey(problem="p", role="solver"),
        indices=tuple(range(n)),
        sampling=Sampling(max_tokens=max_tokens),
    )


def test_the_most_a_request_can_cost() -> None:
    # 4 characters at 2 a token, and 8 for each message and the frame: 18 prompt tokens; 17 samples are 2 calls.
    assert prompt_tokens(request(1)) == 18
    assert most(request(17), 17) == Usage(prompt=18, completion=170, calls=2)


def test_as_many_samples_as_fit_are_reserved() -> None:
    budget = Budget({"problem.tokens": 50})
    account = budget.account()
    first = budget.reserve(request(8), "m", account)
    assert first.n == 3  # 18 + 3 * 10 = 48; a fourth would need 58
    with pytest.raises(BudgetExceeded, match=r"problem\.tokens = 50"):
        budget.reserve(request(1), "m", account)
    budget.release(first)
    budget.spend("m", Usage(prompt=5, completion=6, calls=1), account)
    assert budget.reserve(request(8), "m", account).n == 2  # 11 spent: 11 + 18 + 20 = 49
    assert budget.reserve(request(8), "m", budget.account()).n == 3  # another problem's own account


def test_run_limits_are_shared_by_problems_and_time_is_counted() -> None:
    now = [0.0]
    budget = Budget({"run.calls": 2, "problem.seconds": 5}, clock=lambda: now[0])
    one, two = budget.account(), budget.account()
    budget.spend("m", Usage(calls=1), one)
    budget.reserve(request(1), "m", two)
    with pytest.raises(BudgetExceeded, match=r"run\.calls = 2"):
        budget.reserve(request(1), "m", one)
    late = Budget({"problem.seconds": 5}, clock=lambda: now[0])
    account = late.account()
    now[0] = 5.5
    with pytest.raises(BudgetExceeded, match=r"problem\.seconds = 5"):
        late.reserve(request(1), "m", account)


def test_money_needs_prices() -> None:
    prices = {"m": {"prompt": 1000.0, "completion": 10000.0}}  # per million: .001 and .01 a token
    budget = Budget({"run.money": 0.25}, prices)
    # 18 * .001 + n * 10 * .01 = .018 + .1 n <= .25
    assert budget.reserve(request(8), "m", None).n == 2
    with pytest.raises(InputError, match="m2 has no price"):
        budget.reserve(request(1), "m2", None)
    with pytest.raises(InputError, match="needs prompt and completion"):
        Budget({}, {"m": {"prompt": 1}})


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [({"run.token": 1}, "no budget 'run.token'"), ({"run.tokens": 0}, "above 0"), ({"run.tokens": "x"}, "above 0")],
)
def test_wrong_budgets_are_sentences(limits: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Budget(limits)


def test_an_account_without_limits_fits_everything() -> None:
    assert Account(limits={}, started=0).fits(Usage(prompt=10**9), 1e9, 1e9) is None


def answer(request: Request, index: int) -> str:
    if request.key.role == "reviewer":
        return "Look again."
    return "Step 1: 1 + 1 = 2\nStep 2: The final answer is 2."


def solve(**settings: Any) -> magicore.Result:
    problem = Problem(id="p", question="What is 1 + 1?", kind="number", answer="2")
    settings = {"method": "magicore", "router": "hard", "k": 4, "iterations": 3, "max_tokens": 20, **settings}
    model = ScriptedModel(answer, logprobs=True)
    return magicore.solve_batch([problem], model=model, orm="likelihood", prm="arithmetic", **settings).results[0]


def test_near_a_limit_a_method_answers_with_what_it_has() -> None:
    whole = solve()
    assert whole.stop == "iterations" and len(whole.rounds) == 4
    spent = sum(entry.usage.total for entry in whole.usage if entry.role == "solver")
    result = solve(budget={"problem.tokens": spent + 60})
    assert result.stop == "budget" and result.answer == "2" and result.correct is True
    assert sum(entry.usage.total for entry in result.usage) <= spent + 60


def test_fewer_chains_are_drawn_where_all_do_not_fit() -> None:
    problem = Problem(id="p", question="What is 1 + 1?", kind="number", answer="2")
    run = magicore.solve_batch(
        [problem],
        model=ScriptedModel(answer),
        method="self-consistency",
        k=8,
        max_tokens=20,
        prompts="raw",
        budget={"problem.tokens": 70},
    )
    # prompt: 7 + 16 = 23; 23 + 2 * 20 = 63 fits, a third sample does not.
    assert len(run.results[0].rounds[0].chains) == 2 and run.results[0].stop == "budget"


def test_no_room_at_all_is_a_result_without_an_answer() -> None:
    result = solve(budget={"problem.tokens": 1})
    assert result.stop == "budget" and result.answer is None and result.correct is False and result.error is None
    assert any("problem.tokens = 1" in warning for warning in result.warnings)


def test_a_halt_ends_a_run_with_what_it_has_and_the_same_run_goes_on(tmp_path: Path) -> None:
    halt = Halt()
    asked: list[str] = []

    def script(request: Request, index: int) -> str:
        asked.append(request.key.role)
        if request.key.role == "refiner":
            halt.set()
        return answer(request, index)

    problem = Problem(id="p", question="What is 1 + 1?", kind="number", answer="2")
    settings: dict[str, Any] = {"router": "hard", "k": 2, "iterations": 2, "orm": "likelihood", "prm": "arithmetic"}
    model = ScriptedModel(script, logprobs=True)
    first = magicore.solve_batch([problem], model=model, out=tmp_path, halt=halt, **settings)
    assert first.interrupted and first.results[0].stop == "budget" and first.results[0].answer == "2"
    before = len(asked)
    halt = Halt()
    second = magicore.solve_batch([problem], model=model, out=tmp_path, **settings)
    assert not second.interrupted and second.results[0].stop == "iterations"
    whole = magicore.solve_batch([problem], model=ScriptedModel(answer, logprobs=True), **settings)
    assert second.results[0] == without_rounds(whole.results[0])
    assert len(asked) - before < sum(entry.usage.calls for entry in whole.results[0].usage)


SLOW = """
import time
def answer(request, index):
    time.sleep(0.05)
    return "Step 1: The final answer is 2."
"""


def test_one_interrupt_finishes_what_is_in_flight_and_writes(tmp_path: Path) -> None:
    (tmp_path / "slow_model.py").write_text(SLOW)
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f'{{"question": "What is {i} + 1?", "answer": "2"}}\n' for i in range(400)))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "magicore", "run", "--method", "cot", "--model", "scripted:slow_model:answer"]
    command += ["--data", str(data), "--out", str(out), "--concurrency", "2"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (out / "store.sqlite-wal").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "goes on from here" in errors
    lines = (out / "results.jsonl").read_text().splitlines()
    assert len(lines) == 400 and any('"stop": "budget"' in line for line in lines)
