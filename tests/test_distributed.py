"""Runs dealt to workers, without Ray: a stand-in runs its actors in threads of this process, and lets them die."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import magicore
from magicore import Problem
from magicore.cli.app import app
from magicore.config import RunConfig
from magicore.distributed import RayCluster
from magicore.distributed.failures import troubled
from magicore.distributed.scoring import is_hosted
from magicore.distributed.shares import budget_share, replicas, reward_model_gpus
from magicore.distributed.worker import Greeting, ShardWorker
from magicore.errors import AuthenticationFailed, InputError, MagicoreError, MissingExtraError, StoreError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.budget import Halt
from magicore.store.accounting import role_accounts
from magicore.store.run_store import RunStore
from reward_models import RewardModelError, Solution, StepScores
from reward_models.arithmetic import Arithmetic

FILES = ("results.jsonl", "chains.jsonl", "calibration.json")
N = 7


class Died(Exception):
    """What the stand-in says of a dead actor."""


@dataclass
class StandIn:
    """What a run uses of Ray. ``dies`` says of a worker's task, by shard, how often a worker is to die of it."""

    gpus: float = 0
    dies: dict[str, int] = field(default_factory=dict)
    placed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    killed: int = 0
    exceptions: Any = field(
        default_factory=lambda: SimpleNamespace(
            RayActorError=Died, WorkerCrashedError=Died, NodeDiedError=Died, OutOfMemoryError=Died
        )
    )

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {}}]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "GPU": self.gpus}

    def kill(self, actor: Any) -> None:
        self.killed += 1

    def remote(self, kind: type) -> Placing:
        return Placing(self, kind, {})


@dataclass
class Placing:
    ray: StandIn
    kind: type
    resources: dict[str, Any]

    def options(self, **resources: Any) -> Placing:
        return replace(self, resources=resources)

    def remote(self, *arguments: Any) -> Actor:
        self.ray.placed.append((self.kind.__name__, self.resources))
        return Actor(self.ray, self.kind(*arguments))


class Actor:
    """Calls by threads, or on the loop."""

    def __init__(self, ray: StandIn, inside: Any) -> None:
        self._ray = ray
        self._inside = inside

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inside, name)

        async def called(*arguments: Any) -> Any:
            if name == "run" and self._ray.dies.get(str(arguments[0].shard), 0):
                self._ray.dies[str(arguments[0].shard)] -= 1
                raise Died("the worker is gone")
            if asyncio.iscoroutinefunction(method):
                return await method(*arguments)
            return await asyncio.to_thread(method, *arguments)

        return SimpleNamespace(remote=called)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in, in Ray's place."""
    found = StandIn()

    @asynccontextmanager
    async def connected(cluster: RayCluster) -> AsyncIterator[StandIn]:
        yield found

    monkeypatch.setattr("magicore.distributed.run.connected", connected)
    monkeypatch.setattr("magicore.distributed.run.imported", lambda cluster: found)
    return found


def answer(request: Request, index: int) -> str:
    """Sums; where the first number is odd all first samples are wrong, and refinements mend it."""
    if request.key.role == "reviewer":
        return "Add again."
    line = next(line for line in request.messages[-1]["content"].splitlines() if " plus " in line)
    words = line.removeprefix("Question: ").rstrip("?").split()
    left, right = int(words[2]), int(words[4])
    off = 0 if request.key.role != "solver" else index + 1 if left % 2 else index == 3
    return f"Step 1: {left} + {right} = {left + right + off}\nStep 2: The final answer is {left + right + off}."


def go(out: Path | None, asked: Callable[[Request, int], Any] = answer, **settings: Any) -> magicore.Run:
    options = {"k": 4, "iterations": 2, "orm": "likelihood", "prm": "arithmetic", "progress": False, **settings}
    problems = [
        Problem(id=f"p{i}", question=f"What is {i} plus {2 * i + 1}?", kind="number", answer=str(3 * i + 1))
        for i in range(N)
    ]
    return magicore.solve_batch(problems, model=ScriptedModel(asked, logprobs=True), out=out, **options)


def accounts(folder: Path) -> Any:
    store = RunStore(folder / "store.sqlite")
    try:
        return role_accounts(store.completion_rows(), store.failed_calls())
    finally:
        store.close()


def assert_same(one: Path, other: Path) -> None:
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert accounts(one) == accounts(other)


@pytest.mark.parametrize("shares_disk", [True, False])
def test_workers_with_and_without_the_runs_disk(
    shares_disk: bool, ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = go(tmp_path / "alone")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if not shares_disk:
        monkeypatch.setattr("magicore.distributed.worker.seen", lambda mark, token: False)
    found = go(tmp_path / "ray", engine=RayCluster(workers=3))
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert {**found.summary, "wall_s": 0} == {**alone.summary, "wall_s": 0}
    assert [kind for kind, _ in ray.placed] == ["ShardWorker"] * 3 and ray.killed == 3
    assert not list(temporary.iterdir()) and not (tmp_path / "ray" / "shards").exists()


def test_a_worker_that_dies_is_replaced_up_to_three_times(ray: StandIn, tmp_path: Path) -> None:
    go(tmp_path / "alone")
    ray.dies = {"1/2": 2, "2/2": 1}
    go(tmp_path / "ray", engine=RayCluster(workers=2))
    assert_same(tmp_path / "alone", tmp_path / "ray")
    assert ray.dies == {"1/2": 0, "2/2": 0} and len(ray.placed) >= 4
    ray.dies = {"2/2": 3}
    with pytest.raises(MagicoreError, match="3 workers died over shard 2/2; the worker is gone"):
        go(tmp_path / "other", engine=RayCluster(workers=2))
    assert len(list((tmp_path / "other" / "shards").glob("*-of-2"))) >= 1  # what was paid for is kept


def test_a_run_keeps_its_shards_whoever_goes_on_with_it(ray: StandIn, tmp_path: Path) -> None:
    asked: list[str] = []

    def failing(request: Request, index: int) -> str:
        asked.append(request.key.problem)
        if request.key.problem == "p3" and len(asked) < 100:
            raise AuthenticationFailed("no key", model="scripted")
        return answer(request, index)

    first = go(tmp_path / "ray", failing, engine=RayCluster(workers=3))
    assert first.summary["failed"] == 1 and (tmp_path / "ray" / "shards" / "1-of-3").is_dir()
    again: list[str] = []

    def mended(request: Request, index: int) -> str:
        again.append(request.key.problem)
        return answer(request, index)

    found = go(tmp_path / "ray", mended, engine=RayCluster(workers=2))
    assert found.summary["failed"] == 0 and "p3" in again
    go(tmp_path / "alone")
    for name in FILES:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()


def test_ended_early_anywhere_and_gone_on_with_by_turns(ray: StandIn, tmp_path: Path) -> None:
    """By a cluster, by one process, by a cluster: everything is asked for once, and the books agree."""
    asked: Counter[str] = Counter()

    def go_on(room: int, engine: str | RayCluster) -> magicore.Run:
        halt = Halt()

        async def limited(request: Request, index: int) -> str:
            key = request.key
            asked[f"{key.problem} {key.role} {key.instance} {key.round} {key.parent} {index}"] += 1
            if asked.total() >= room:
                halt.set()
                await asyncio.sleep(0.5)  # until every worker has heard of it
            return answer(request, index)

        return go(tmp_path / "ray", limited, concurrency=1, halt=halt, engine=engine)

    cluster = RayCluster(workers=2)
    assert all(go_on(*step).interrupted for step in ((2, cluster), (9, "local"), (16, cluster)))
    late = go_on(33, cluster)  # there are 28 first samples: in the second stage
    assert late.interrupted and {result.stop for result in late.results} >= {"done", "budget"}
    assert len(late.results) == N
    assert not go_on(10**6, cluster).interrupted
    assert set(asked.values()) == {1}
    go(tmp_path / "alone", concurrency=1)
    assert_same(tmp_path / "alone", tmp_path / "ray")


def test_another_run_is_taken_over_by_force_alone(ray: StandIn, tmp_path: Path) -> None:
    go(tmp_path / "ray", engine=RayCluster(workers=2))
    with pytest.raises(StoreError, match="other settings"):
        go(tmp_path / "ray", seed=1, k=5, engine=RayCluster(workers=2))
    go(tmp_path / "ray", seed=1, k=5, engine=RayCluster(workers=2), force=True)
    go(tmp_path / "alone", seed=1, k=5)
    for name in FILES:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()


class Refusing:
    """A process model that cannot."""

    name = "refusing"

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        raise RewardModelError("the weights are gone", model=self.name)


def test_a_reward_models_error_reaches_its_problems(ray: StandIn, tmp_path: Path) -> None:
    found = go(tmp_path / "ray", prm=Refusing(), engine=RayCluster(workers=2))
    errors = [result.error for result in found.results]
    assert all(error is not None and error.type == "RewardModelError" for error in errors)
    assert errors[0] is not None and errors[0].message == "reward model 'refusing': the weights are gone"


def test_reward_models_share_gpus_as_asked(ray: StandIn, tmp_path: Path) -> None:
    ray.gpus = 2
    go(tmp_path / "alone")
    go(tmp_path / "ray", prm=Arithmetic(), engine=RayCluster(workers=2, reward_model_gpus=0.5))
    actors = [options for kind, options in ray.placed if kind == "RewardActor"]
    assert [options["num_gpus"] for options in actors] == [0.5] * 4
    assert_same(tmp_path / "alone", tmp_path / "ray")
    with pytest.raises(InputError, match="do not fit"):
        go(tmp_path / "none", engine=RayCluster(workers=3, worker_gpus=1))


def test_a_worker_of_another_version_is_refused(ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardWorker, "greet", lambda self: Greeting(version="0.0.1", shares_disk=True))
    with pytest.raises(InputError, match=r"a worker has magicore 0\.0\.1"):
        go(tmp_path / "ray", engine=RayCluster(workers=1))


def test_a_budget_is_dealt_by_problems() -> None:
    budget = {"run.tokens": 1000, "run.calls": 10, "run.seconds": 60, "problem.tokens": 70}
    assert budget_share(budget, n=3, total=12, elapsed=20) == {
        "run.tokens": 250,
        "run.calls": 2.5,
        "run.seconds": 40,
        "problem.tokens": 70,
    }
    assert 0 < budget_share({"run.seconds": 5}, n=1, total=1, elapsed=6)["run.seconds"] < 1e-6


def test_gpus_are_dealt_to_reward_models() -> None:
    assert [reward_model_gpus(None, gpus=gpus, on_cpu=False) for gpus in (0, 4)] == [0, 1]
    assert reward_model_gpus(0.5, gpus=4, on_cpu=True) == 0
    assert replicas(2, gpus=0, each=0) == 1
    assert [replicas(2, gpus=gpus, each=1) for gpus in (2, 5, 8)] == [1, 2, 4]
    assert [replicas(models, gpus=1, each=0.5) for models in (1, 2)] == [2, 1]
    assert replicas(1, gpus=2, each=0.4) == 4  # two on each: a fraction never spans two GPUs
    with pytest.raises(InputError, match="do not fit on the 1 GPUs"):
        replicas(2, gpus=1, each=1)
    with pytest.raises(InputError, match="more than the 1 GPUs"):
        reward_model_gpus(2, gpus=1, on_cpu=False)


@pytest.mark.parametrize(
    ("prm", "hosted"),
    [
        ("arithmetic", False),
        ("judge", False),
        ("math-shepherd@http://localhost:1", False),
        ("qwen2.5-math-prm-7b@vllm+http://localhost:1", False),
        ("nick", False),
        ("qwen2.5-math-prm-7b", True),
        ("math-shepherd:./my-prm", True),
    ],
)
def test_which_reward_models_get_actors(prm: str, hosted: bool) -> None:
    tables = {"nick": {"name": "math-shepherd", "urls": ["http://localhost:1"]}}
    assert is_hosted("prm", RunConfig(prm=prm, reward_models=tables), None) is hosted


@pytest.mark.parametrize(
    "error", [RewardModelError("a", model="m"), AuthenticationFailed("b", model="m"), StoreError("c"), ValueError("d")]
)
def test_errors_cross_between_processes(error: Exception) -> None:
    found = troubled(error).error()
    if isinstance(error, ValueError):
        assert isinstance(found, RuntimeError) and "ValueError: d" in str(found)
    else:
        assert type(found) is type(error) and str(found) == str(error)


def test_what_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    for values, sentence in (
        ({"workers": 0}, "--workers must be at least 1"),
        ({"reward_model_gpus": 1.5}, "share of one GPU"),
        ({"worker_gpus": -1}, "share of one GPU"),
        ({"address": "ray://head:10001"}, "a Ray client's address"),
    ):
        with pytest.raises(InputError, match=sentence):
            RayCluster(**values)
    for settings, sentence in (
        ({"engine": "slurm"}, "an engine is local or ray"),
        ({"engine": "ray", "shard": "1/2", "stage": "prepare"}, "deals out shards and stages by itself"),
        ({"engine": "ray", "placement": "phased"}, "--reward-model-gpus 0.5"),
    ):
        with pytest.raises(InputError, match=sentence):
            go(tmp_path / "a", **settings)
    with pytest.raises(InputError, match="give --out"):
        go(None, engine="ray")
    assert not (tmp_path / "a").exists()


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'magicore\[ray\]'"):
        go(tmp_path / "a", engine="ray")
    assert not (tmp_path / "a").exists()


def test_a_cluster_without_the_engine_is_refused_on_the_command_line() -> None:
    told = CliRunner().invoke(app, ["run", "--model", "scripted", "--data", "demo", "--workers", "2"])
    assert isinstance(told.exception, InputError)
    assert str(told.exception) == "--workers: this is for a run on a Ray cluster; give --engine ray beside it"


def test_a_worker_can_be_spoken_to_while_it_works() -> None:
    # Ray puts the calls of an actor with coroutines one after the other on one loop, and no halt would be heard.
    assert not any(asyncio.iscoroutinefunction(member) for member in vars(ShardWorker).values())
