"""Runs as a whole: files, resumption, determinism, failures, plug-ins."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore import Problem
from magicore._sync import run_sync
from magicore.config import RunConfig
from magicore.errors import ConnectionFailed, ContextExceeded, InputError, StoreError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.methods import make_method
from magicore.runtime.open import open_engine
from magicore.runtime.run import calibrate, run_method
from magicore.store.files import read_chains, read_results
from magicore.store.run_store import RunStore

FILES = {"calibration.json", "chains.jsonl", "results.jsonl", "summary.json", "timings.jsonl"}


def answers(request: Request, index: int) -> str:
    """Sums with a mistake in every third sample; reviews and refinements that mend it."""
    left, right = _numbers(request)
    if request.key.role == "reviewer":
        return "Add again."
    wrong = request.key.role == "solver" and index % 3 == 0
    total = left + right + wrong
    return f"Step 1: {left} + {right} = {total}\nStep 2: The final answer is {total}."


def _numbers(request: Request) -> tuple[int, int]:
    question = next(line for line in request.messages[-1]["content"].splitlines() if " plus " in line).removeprefix(
        "Question: "
    )
    words = question.rstrip("?").split()
    return int(words[2]), int(words[4])


def problems(n: int = 6) -> list[Problem]:
    return [
        Problem(id=f"p{i}", question=f"What is {i} plus {2 * i + 1}?", kind="number", answer=str(3 * i + 1))
        for i in range(n)
    ]


def go(out: Path | None = None, model: Any = None, **settings: Any) -> magicore.Run:
    settings = {"k": 4, "iterations": 1, "method": "magicore", "router": "hard", **settings}
    chosen = model or ScriptedModel(answers, logprobs=True)
    return magicore.solve_batch(problems(), model=chosen, orm="likelihood", prm="arithmetic", out=out, **settings)


def test_a_run_ends_with_its_files_and_they_agree(tmp_path: Path) -> None:
    run = go(tmp_path)
    assert FILES <= {path.name for path in tmp_path.iterdir()}
    results = read_results(tmp_path / "results.jsonl")
    assert len(results) == 6 and [result.correct for result in run.results] == [True] * 6
    chains = read_chains(tmp_path / "chains.jsonl")
    assert len(chains) == 6 * 8
    refined = [scored for scored in chains if scored.chain.role == "refiner"]
    ids = {scored.chain.id for scored in chains}
    assert len(refined) == 24 and all(scored.chain.parent in ids for scored in refined)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["n"] == summary["correct"] == 6 and summary["accuracy"] == 1.0
    assert summary["usage"]["generation_tokens"] == sum(
        entry.usage.total for result in run.results for entry in result.usage if entry.role not in ("orm", "prm")
    )


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    go(tmp_path / "a", concurrency=1)
    go(tmp_path / "b", concurrency=64)
    for name in ("results.jsonl", "chains.jsonl", "calibration.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_same_command_again_asks_for_nothing(tmp_path: Path) -> None:
    first = go(tmp_path)
    before = (tmp_path / "results.jsonl").read_bytes()

    def refuse(request: Request, index: int) -> str:
        raise AssertionError("asked again")

    def unwritten(run: magicore.Run) -> list[magicore.Result]:
        """Results but for the majority class, which results.jsonl does not hold."""
        return [replace(r, verdict=r.verdict and replace(r.verdict, majority=None)) for r in run.results]

    read_back = go(tmp_path, model=ScriptedModel(refuse, logprobs=True))
    assert unwritten(read_back) == unwritten(first) and read_back.summary == first.summary
    (tmp_path / "results.jsonl").unlink()
    made_again = go(tmp_path, model=ScriptedModel(refuse, logprobs=True))
    assert made_again.results == first.results
    assert (tmp_path / "results.jsonl").read_bytes() == before


def test_a_larger_k_reuses_the_chains_of_a_smaller_one() -> None:
    asked: list[tuple[str, int]] = []

    def script(request: Request, index: int) -> str:
        asked.append((request.key.role, index))
        return answers(request, index)

    async def both() -> None:
        store = RunStore()
        async with open_engine(RunConfig(), store, model=ScriptedModel(script)) as engine:
            for k in (2, 4):
                await run_method(make_method("self-consistency", k=k), problems(1), engine)
        store.close()

    run_sync(both())
    assert sorted(asked) == [("solver", index) for index in range(4)]


def test_another_configuration_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    go(tmp_path)
    with pytest.raises(StoreError, match="options differ"):
        go(tmp_path, k=5)


def test_one_failing_problem_costs_only_itself(tmp_path: Path) -> None:
    def script(request: Request, index: int) -> str:
        if request.key.problem == "p3":
            raise ContextExceeded("too long", model="scripted")
        return answers(request, index)

    run = go(tmp_path, model=ScriptedModel(script, logprobs=True))
    failed = [result for result in run.results if result.stop == "failed"]
    assert [result.id for result in failed] == ["p3"] and failed[0].correct is False
    assert failed[0].error is not None and failed[0].error.type == "ContextExceeded"
    assert run.summary["failed"] == 1 and run.summary["correct"] == 5


def test_a_model_that_never_answers_aborts_the_run() -> None:
    def script(request: Request, index: int) -> str:
        raise ConnectionFailed("nothing answers at http://127.0.0.1:9", model="scripted", retryable=False)

    with pytest.raises(ConnectionFailed, match="nothing answers"):
        go(model=ScriptedModel(script, logprobs=True))


@pytest.mark.parametrize(
    ("batch", "sentence"), [([], "empty"), (None, "no problems"), ([{"question": " "}], "question")]
)
def test_no_problems_is_a_sentence(batch: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        magicore.solve_batch(batch, model=ScriptedModel(answers), method="cot")


def test_works_inside_a_running_event_loop() -> None:
    async def notebook() -> int:
        return len(go().results)

    assert asyncio.run(notebook()) == 6


PLUGIN = '''
from reward_models import StepScore, StepScores, split_steps


class Flat:
    """Half for every step."""

    name = "flat-prm"

    def score(self, solutions):
        return [self._one(s.steps or split_steps(s.text)) for s in solutions]

    def _one(self, steps):
        return StepScores(steps=steps, scores=tuple(StepScore(value=0.5) for _ in steps))
'''


def test_a_prm_of_another_distribution_is_found_by_name(tmp_path: Path) -> None:
    """An installed distribution is a module and a dist-info folder on the path."""
    site = tmp_path / "site"
    info = site / "flat_prm-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "flat_prm.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flat-prm\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[magicore.reward_models]\nflat-prm = flat_prm:Flat\n")
    (site / "answers.py").write_text(
        "def answer(request, index):\n    return 'Step 1: 1 + 1 = 2\\nStep 2: The final answer is 2.'\n"
    )
    data = tmp_path / "data.jsonl"
    data.write_text('{"question": "What is 1 + 1?", "answer": "2"}\n')
    command = [sys.executable, "-m", "magicore", "run", "--method", "sc+prm", "--model", "scripted:answers:answer"]
    command += ["--prm", "flat-prm", "--data", str(data), "--k", "2", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    chains = read_chains(tmp_path / "out" / "chains.jsonl")
    assert [scored.s for scored in chains] == [0.25, 0.25]


def test_running_calibration_uses_the_chains_so_far_and_batch_uses_all() -> None:
    names = {"orm": None, "prm": None, "aggregation": "product"}
    rows = [[1.0, None], [2.0], []]
    running = calibrate(rows, "running", names)
    assert [(stats.mu, stats.sigma, stats.n) for stats in running if stats] == [
        (1.0, 0.0, 1),
        (1.5, 0.5, 2),
        (1.5, 0.5, 2),
    ]
    (batch,) = {calibrate(rows, "batch", names)[i] for i in range(3)}
    assert batch is not None and (batch.mu, batch.n, batch.population) == (1.5, 2, "batch")
    first = calibrate([[1.0, 9.0], [3.0]], "first", names)[0]
    assert first is not None and (first.mu, first.n, first.population) == (2.0, 2, "first")
    assert calibrate([[None], []], "batch", names) == [None, None]


def test_with_a_saved_calibration_no_problem_waits_for_another(tmp_path: Path) -> None:
    go(tmp_path / "a")
    asked: list[str] = []

    def script(request: Request, index: int) -> str:
        asked.append(f"{request.key.role} {request.key.problem}")
        return answers(request, index)

    model = ScriptedModel(script, logprobs=True)
    go(tmp_path / "b", model, concurrency=1, calibration=str(tmp_path / "a" / "calibration.json"))
    assert asked.index("refiner p0") < asked.index("solver p1")
    for name in ("results.jsonl", "chains.jsonl", "calibration.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_outcome_and_a_process_model_of_one_name_do_not_share_scores(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "orm": "constant:0.5",
        "prm": "constant:0.5",
        "method": "weighted-self-consistency",
        "k": 2,
    }
    for name in ("a", "b"):
        run = magicore.solve_batch(problems(2), model=ScriptedModel(answers), out=tmp_path / name, **settings)
        (tmp_path / name / "results.jsonl").unlink()
        again = magicore.solve_batch(problems(2), model=ScriptedModel(answers), out=tmp_path / name, **settings)
        assert again.results == run.results and run.results[0].votes[0].weight is not None
