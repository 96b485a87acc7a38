"""A run on a Ray cluster ends, byte for byte, as one that a single process did, whoever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore import Problem
from magicore.distributed import RayCluster
from magicore.errors import MagicoreError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.budget import Halt
from magicore.runtime.observer import RunObserver
from magicore.store.accounting import role_accounts
from magicore.store.run_store import RunStore
from magicore.types import Result
from reward_models.arithmetic import Arithmetic

# As a run that starts Ray itself has it: loopback alone, nobody told. Workers import this module, for its script.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "disabled",
    "PYTHONPATH": str(Path(__file__).parent),
}
# Ray's processes are started and left to themselves, and it warns of what newer ones will do.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning:ray.*"),
]

FILES = ("results.jsonl", "chains.jsonl", "calibration.json")
N = 8


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One Ray with room for two workers, for all runs of this module."""
    with pytest.MonkeyPatch.context() as patches:
        for name, value in ENVIRONMENT.items():  # some of it is read as Ray is imported
            patches.setenv(name, value)
        ray = pytest.importorskip("ray")
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000
        )
        yield
        ray.shutdown()


@dataclass(frozen=True, kw_only=True)
class Script:
    """Sums; where the first number is odd, all first samples are wrong and refinements mend it.

    Every call is noted in ``folder``. The process that is first asked about ``deadly`` in the role ``role`` is killed
    there and then; with ``always`` every such process is.
    """

    folder: Path
    deadly: str | None = None
    role: str = "solver"
    always: bool = False

    def __call__(self, request: Request, index: int) -> str:
        key = request.key
        if key.problem == self.deadly and key.role == self.role and (self.always or self._first()):
            os.kill(os.getpid(), signal.SIGKILL)
        with (self.folder / "calls").open("a") as file:
            file.write(f"{key.problem} {key.role} {key.instance} {key.round} {key.parent} {index} {os.getpid()}\n")
        line = next(line for line in request.messages[-1]["content"].splitlines() if " plus " in line)
        words = line.removeprefix("Question: ").rstrip("?").split()
        left, right = int(words[2]), int(words[4])
        if key.role == "reviewer":
            return "Add again."
        off = 0 if key.role != "solver" else index + 1 if left % 2 else index == 3
        total = left + right + off
        return f"Step 1: {left} + {right} = {total}\nStep 2: The final answer is {total}."

    def _first(self) -> bool:
        try:
            (self.folder / "died").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    @property
    def calls(self) -> Counter[str]:
        """How often each sample was asked for."""
        lines = (self.folder / "calls").read_text().splitlines()
        return Counter(line.rpartition(" ")[0] for line in lines)

    @property
    def processes(self) -> set[str]:
        """Which processes asked."""
        return {line.rpartition(" ")[2] for line in (self.folder / "calls").read_text().splitlines()}


@dataclass(frozen=True, kw_only=True)
class Slow(Script):
    """Takes its time."""

    def __call__(self, request: Request, index: int) -> str:
        time.sleep(0.3)
        return super().__call__(request, index)


@dataclass(frozen=True, kw_only=True)
class Meeting(Script):
    """Answers, and waits until two processes have."""

    def __call__(self, request: Request, index: int) -> str:
        said = super().__call__(request, index)
        while len(self.processes) < 2:
            time.sleep(0.05)
        return said


class Watcher(RunObserver):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.problems: int | None = None
        self.told: Counter[str] = Counter()
        self.summaries: list[Any] = []

    def started(self, problems: int | None) -> None:
        self.problems = problems

    def called(self, call: Any) -> None:
        self.told["called"] += call.given

    def prepared(self, problem: Problem) -> None:
        self.told[f"prepared {problem.id}"] += 1

    def answered(self, result: Result) -> None:
        self.told[f"answered {result.id}"] += 1

    def finished(self, summary: Any) -> None:
        self.summaries.append(summary)


def problems(n: int = N) -> list[Problem]:
    return [
        Problem(id=f"p{i}", question=f"What is {i} plus {2 * i + 1}?", kind="number", answer=str(3 * i + 1))
        for i in range(n)
    ]


def script(tmp_path: Path, name: str, **options: Any) -> Script:
    folder = tmp_path / name
    folder.mkdir()
    return Script(folder=folder, **options)


def go(out: Path | None, asked: Any, **settings: Any) -> magicore.Run:
    options = {"method": "magicore", "k": 4, "iterations": 2, "orm": "likelihood", "prm": "arithmetic", **settings}
    return magicore.solve_batch(
        problems(),
        model=ScriptedModel(asked, logprobs=True),
        out=out,
        progress=options.pop("progress", False),
        **options,
    )


def assert_same(one: Path, other: Path, names: tuple[str, ...] = FILES) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert accounts(one) == accounts(other)


def accounts(folder: Path) -> Any:
    store = RunStore(folder / "store.sqlite")
    try:
        return role_accounts(store.completion_rows(), store.failed_calls())
    finally:
        store.close()


def test_two_workers_end_as_one_process(tmp_path: Path) -> None:
    alone, watcher = script(tmp_path, "a"), Watcher()
    asked = Meeting(folder=script(tmp_path, "b").folder)
    # The process model is an object here, so that it gets an actor of its own, as one on a GPU would.
    single = go(tmp_path / "alone", alone)
    found = go(tmp_path / "ray", asked, engine=RayCluster(workers=2), prm=Arithmetic(), progress=watcher)
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert asked.calls == alone.calls and set(asked.calls.values()) == {1}
    assert len(asked.processes) == 2 and str(os.getpid()) not in asked.processes
    read_back = go(tmp_path / "alone", alone)
    assert found.results == read_back.results and found.stats == single.stats == read_back.stats
    assert {**found.summary, "wall_s": 0} == {**single.summary, "wall_s": 0}
    assert (found.outcome.chains, found.outcome.cut) == (single.outcome.chains, single.outcome.cut)
    assert watcher.problems == N and watcher.summaries == [found.summary]
    assert watcher.told.pop("called") == sum(asked.calls.values())
    assert watcher.told == Counter([f"{what} p{i}" for what in ("prepared", "answered") for i in range(N)])
    assert not (tmp_path / "ray" / "shards").exists()
    assert go(tmp_path / "ray", script(tmp_path, "c", deadly="p0", always=True)).summary == found.summary  # read back


@pytest.mark.parametrize("role", ["solver", "refiner"])
def test_a_worker_is_killed_and_its_problems_go_to_another(role: str, tmp_path: Path) -> None:
    alone, asked, watcher = script(tmp_path, "a"), script(tmp_path, "b", deadly="p5", role=role), Watcher()
    go(tmp_path / "alone", alone, concurrency=1)
    found = go(tmp_path / "ray", asked, engine=RayCluster(workers=2), concurrency=1, progress=watcher)
    assert (asked.folder / "died").exists() and len(asked.processes) >= 2
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert found.summary["failed"] == 0 and not found.interrupted
    # What the dead worker had in its store is not asked for again: at the most what it had in flight.
    assert asked.calls.keys() == alone.calls.keys()
    again = {call for call, times in asked.calls.items() if times > 1}
    assert all(call.startswith("p5 ") for call in again) and len(again) <= 4
    del watcher.told["called"]
    assert watcher.told == Counter([f"{what} p{i}" for what in ("prepared", "answered") for i in range(N)])


def test_a_shard_that_kills_every_worker_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    asked = script(tmp_path, "a", deadly="p1", always=True)
    with pytest.raises(MagicoreError, match="3 workers died over shard 2/2"):
        go(tmp_path / "ray", asked, engine=RayCluster(workers=2), concurrency=1)
    # What was paid for before is kept, and the same run goes on, here or there.
    healed = script(tmp_path, "b")
    go(tmp_path / "ray", healed, engine=RayCluster(workers=1), concurrency=1)
    go(tmp_path / "alone", script(tmp_path, "c"), concurrency=1)
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert not (asked.calls & healed.calls)


def test_a_run_that_is_ended_early_goes_on_where_it_stopped(tmp_path: Path) -> None:
    halt, asked = Halt(), script(tmp_path, "a")

    class Stops(Watcher):
        def prepared(self, problem: Problem) -> None:
            halt.set()

    slow = Slow(folder=asked.folder)
    early = go(tmp_path / "ray", slow, engine=RayCluster(workers=2), concurrency=1, halt=halt, progress=Stops())
    assert early.interrupted and not early.results
    paid = accounts(tmp_path / "ray")[0].usage.calls
    assert 0 < paid < N  # a call a problem
    alone = script(tmp_path, "b")
    go(tmp_path / "alone", alone, concurrency=1)
    found = go(tmp_path / "ray", asked, engine=RayCluster(workers=2), concurrency=1)
    assert not found.interrupted
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert asked.calls == alone.calls  # each sample once, before or after


def test_begun_by_one_process_and_gone_on_with_by_many(tmp_path: Path) -> None:
    halt, first, alone = Halt(), script(tmp_path, "a"), script(tmp_path, "b")

    class Stops(RunObserver):
        def prepared(self, problem: Problem) -> None:
            if problem.id == "p4":
                halt.set()

    assert go(tmp_path / "ray", first, concurrency=1, halt=halt, progress=Stops()).interrupted
    go(tmp_path / "alone", alone, concurrency=1)
    rest = script(tmp_path, "c")
    go(tmp_path / "ray", rest, engine=RayCluster(workers=2), concurrency=1)
    assert not (first.calls & rest.calls) and first.calls | rest.calls == alone.calls
    assert_same(tmp_path / "alone", tmp_path / "ray")


@pytest.mark.parametrize("calibration", ["running", "saved"])
def test_other_calibrations_end_as_one_process(calibration: str, tmp_path: Path) -> None:
    if calibration == "saved":
        go(tmp_path / "before", script(tmp_path, "c"), seed=1)
        calibration = str(tmp_path / "before" / "calibration.json")
    go(tmp_path / "alone", script(tmp_path, "a"), calibration=calibration)
    go(tmp_path / "ray", script(tmp_path, "b"), calibration=calibration, engine=RayCluster(workers=2))
    assert_same(tmp_path / "alone", tmp_path / "ray")


def test_a_method_without_calibration_and_a_limit_on_the_whole_run(tmp_path: Path) -> None:
    run = magicore.solve_batch(
        problems(),
        model=ScriptedModel(script(tmp_path, "a")),
        method="self-consistency",
        k=3,
        budget={"run.calls": 4},
        concurrency=1,
        out=tmp_path / "ray",
        engine=RayCluster(workers=2),
        progress=False,
    )
    # Two calls for each shard of four problems, one for each problem.
    assert Counter(result.stop for result in run.results) == {"done": 4, "budget": 4}
    assert sum(account.usage.calls for account in accounts(tmp_path / "ray")) <= 12


def test_on_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    rows = [{"question": f"What is {i} plus {2 * i + 1}?", "answer": str(3 * i + 1)} for i in range(5)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--model", "scripted", "--orm", "likelihood", "--prm", "arithmetic", "--k", "3", "--data", str(data)]

    def command(*more: str) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-m", "magicore", "run", *options, *more]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=110, check=False)

    done = command("--engine", "ray", "--workers", "2", "--out", str(tmp_path / "ray"))
    assert done.returncode == 0, done.stderr
    assert command("--out", str(tmp_path / "alone")).returncode == 0
    assert_same(tmp_path / "alone", tmp_path / "ray")
