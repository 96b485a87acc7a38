"""``--placement``: models that take turns on one device, in waves over problems, with the same results."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from magicore.config import RunConfig, config_toml
from magicore.errors import InputError
from reward_models.turns import Turns

# The floor


class Model:
    """Notes when it is loaded and unloaded, and that nothing else is there meanwhile."""

    def __init__(self, name: str, turns: Turns, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.done = 0
        self.seat = turns.seat(enter=lambda: log.append(f"+{name}"), leave=lambda: log.append(f"-{name}"))

    def work(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.seat.take()
            assert self.log[-1] == f"+{self.name}"
            self.done += 1
            self.seat.rest()


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(2000):
        if true():
            return
        time.sleep(0.005)
    raise AssertionError("it never came to pass")


def waiting(turns: Turns) -> int:
    return turns.waiting


def test_a_model_stays_loaded_until_another_wants_the_floor_and_each_turn_does_all_that_waits() -> None:
    log: list[str] = []
    turns = Turns(linger_s=0.0)
    a, b = Model("a", turns, log), Model("b", turns, log)
    a.work(5)
    b.work(3)
    a.work()
    assert log == ["+a", "-a", "+b", "-b", "+a"]
    assert turns.switches == 2


def test_whoever_waits_enters_when_the_holder_rests_in_the_order_of_coming() -> None:
    log: list[str] = []
    turns = Turns(linger_s=0.0)
    a, b, c = (Model(name, turns, log) for name in "abc")
    assert a.seat.take()
    threads = []
    for place, model in enumerate((b, c), start=1):
        threads.append(threading.Thread(target=model.work, args=(4,)))
        threads[-1].start()
        wait_until(lambda place=place: waiting(turns) == place)
    assert log == ["+a"]  # they wait for what is under way
    a.seat.rest()
    for thread in threads:
        thread.join(20)
    assert log[:4] == ["+a", "-a", "+b", "-b"]
    assert (b.done, c.done) == (4, 4)


def test_a_queue_that_never_empties_keeps_nobody_from_the_floor() -> None:
    log: list[str] = []
    turns = Turns(linger_s=60.0, longest_s=0.0)  # it would linger for ever, and its turn is over when another waits
    busy, other = Model("busy", turns, log), Model("other", turns, log)
    stop = threading.Event()

    def endless() -> None:
        while not stop.is_set():
            busy.work()

    thread = threading.Thread(target=endless)
    thread.start()
    wait_until(lambda: busy.done > 0)
    for _ in range(3):
        other.work()
    stop.set()
    thread.join(20)
    assert other.done == 3
    assert log.count("+other") >= 1


def test_a_model_that_cannot_be_loaded_leaves_the_floor_free() -> None:
    turns, log = Turns(linger_s=0.0), list[str]()

    def fail() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError):
        turns.seat(enter=fail, leave=lambda: None).take()
    Model("a", turns, log).work()
    assert log == ["+a"]


def test_the_end_sends_home_whoever_waits_and_unloads_the_one_that_rests() -> None:
    log: list[str] = []
    turns = Turns()
    a, b = Model("a", turns, log), Model("b", turns, log)
    assert a.seat.take()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(b.seat.take()))
    thread.start()
    wait_until(lambda: waiting(turns) == 1)
    turns.close()
    thread.join(20)
    assert found == [False]
    assert not b.seat.take()

    idle, other = Turns(), list[str]()
    Model("c", idle, other).work()
    idle.close()
    assert other == ["+c", "-c"]


def test_a_seat_that_is_given_up_frees_the_floor() -> None:
    log: list[str] = []
    turns = Turns()
    a, b = Model("a", turns, log), Model("b", turns, log)
    assert a.seat.take()
    a.seat.close()
    b.work()
    assert log == ["+a", "+b"]  # unloading a model that is given up is its owner's


# Settings


def test_the_placement_is_checked_and_saved() -> None:
    assert 'placement = "phased"' in config_toml(RunConfig(placement="phased"))
    with pytest.raises(InputError, match="placement is together, phased, cpu-rewards, and 'apart' is none"):
        RunConfig(placement="apart")


# Real models

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import magicore
import magicore.errors
import magicore.llms.local as local_models
import reward_models.local.device as device_module
import reward_models.local.load as loading
from magicore.llms.local import model as local_model
from magicore.runtime.open import open_reward_model
from reward_models.errors import CapabilityError, RewardModelError
from reward_models.families.reading import Reading
from reward_models.local import parking, resident
from reward_models.local.resident import Part, ResidentEngine
from reward_models.names import parse_model_name
from reward_models.registry import outcome_models
from reward_models.scripted import constant_orm
from reward_models.types import Solution
from tiny_chat import SMALL, byte_tokenizer


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


QUESTIONS = [{"id": str(at), "question": f"What is {at} + {at}?", "answer": str(2 * at)} for at in range(6)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny policy, outcome model and process model on disk."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("policy", "orm", "prm")}
    torch.manual_seed(5)
    config = {**SMALL, "max_position_embeddings": 8192, "pad_token_id": 95}
    policy = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    orm = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(**config, num_labels=1))
    prm = transformers.Qwen2ForTokenClassification(transformers.Qwen2Config(**config, num_labels=2))
    for name, model in (("policy", policy), ("orm", orm), ("prm", prm)):
        model.save_pretrained(made[name])
        byte_tokenizer().save_pretrained(made[name])
    return made


class Loads:
    """Counts loads, and the models that are alive at each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.most = 0
        self._alive: list[weakref.ref[Any]] = []
        for module, name, network in (
            (local_models, "load", lambda loaded: loaded.model),
            (loading, "_load_backbone", lambda backbone: backbone),
        ):
            monkeypatch.setattr(module, name, self._watched(getattr(module, name), network))

    def _watched(self, load: Callable[..., Any], network: Callable[[Any], Any]) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            found = load(*args, **options)
            assert not next(network(found).parameters()).is_inference()  # else it could not be moved by another thread
            self.count += 1
            gc.collect()
            self._alive = [one for one in self._alive if one() is not None]
            self._alive.append(weakref.ref(network(found)))
            self.most = max(self.most, len(self._alive))
            return found

        return watched


def solved(folders: dict[str, Path], out: Path, **options: Any) -> Any:
    return magicore.solve_batch(
        QUESTIONS,
        model=f"hf:{folders['policy']}",
        orm=f"sequence-classification:{folders['orm']}",
        prm=f"trl-prm:{folders['prm']}",
        method="magicore",
        router="hard",
        k=2,
        iterations=1,
        max_tokens=6,
        prompts="raw",  # short, for a token is a character
        deterministic=True,
        dtype="float32",
        device="cpu",
        out=out,
        progress=False,
        **options,
    )


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("results.jsonl", "chains.jsonl", "calibration.json")}


def test_taking_turns_gives_the_same_bytes_with_one_model_at_a_time_and_far_fewer_loads_than_calls(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved(folders, tmp_path / "together")
    loads = Loads(monkeypatch)
    run = solved(folders, tmp_path / "phased", placement="phased")
    assert files(tmp_path / "phased") == files(tmp_path / "together")
    calls = sum(entry.usage.calls for result in run.results for entry in result.usage)
    assert loads.most == 1
    assert 6 <= loads.count <= calls / 6  # sampling, scores; reviews and refinements, scores: twice three models


def test_a_gateway_s_models_take_turns_and_answer_the_same(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("prometheus_client")
    from gateways import ask, gateway

    def answered(placement: str) -> list[str]:
        with gateway(
            model=f"hf:{folders['policy']}",
            orm=f"sequence-classification:{folders['orm']}",
            prm=f"trl-prm:{folders['prm']}",
            max_tokens=6,
            deterministic=True,
            dtype="float32",
            device="cpu",
            placement=placement,
        ) as url:

            def one(at: int) -> str:
                fields = {"model": "magicore:k=2,router=hard,iterations=1", "seed": 3, "magicore": {"kind": "number"}}
                [choice] = ask(url, f"What is {at} + {at}?", **fields).json()["choices"]
                return f"{choice['message']['content']} {choice['magicore']['chain'].partition('/')[2]}"

            with ThreadPoolExecutor(4) as several:
                return list(several.map(one, range(4)))

    together = answered("together")
    loads = Loads(monkeypatch)
    assert answered("phased") == together and len(set(together)) == 4
    assert loads.most == 1 and loads.count >= 3


def test_weights_wait_in_the_processors_memory_where_it_is_another_one(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (resident, local_model):
        monkeypatch.setattr(module, "can_park", lambda size, device: True)
    loads = Loads(monkeypatch)
    solved(folders, tmp_path / "parked", placement="phased", limit=2)
    assert loads.count == 3  # each was read from disk once, and moved from then on
    monkeypatch.undo()
    solved(folders, tmp_path / "together", limit=2)
    assert files(tmp_path / "parked") == files(tmp_path / "together")


def test_weights_are_parked_only_where_that_frees_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "free_memory", lambda device: 1000)
    assert parking.can_park(500, torch.device("cuda"))
    assert not parking.can_park(1000, torch.device("cuda"))  # no room for the rest
    assert not parking.can_park(1, torch.device("mps"))
    assert not parking.can_park(1, torch.device("cpu"))


@pytest.mark.parametrize(
    ("settings", "table", "device", "shared"),
    [
        ({"placement": "together", "device": "cuda"}, {}, "cuda", False),
        ({"placement": "cpu-rewards", "device": "cuda"}, {}, "cpu", False),
        ({"placement": "cpu-rewards", "device": "cuda"}, {"device": "cuda:1"}, "cuda:1", False),
        ({"placement": "phased", "device": "cuda"}, {}, "cuda", True),
        ({"placement": "phased", "device": "cuda"}, {"device": "cuda:1"}, "cuda:1", False),
    ],
)
def test_where_a_reward_model_goes(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], table: dict[str, Any], device: str, shared: bool
) -> None:
    given: dict[str, Any] = {}

    def factory(name: Any, *, device: str = "auto", dtype: str = "auto", turns: Turns | None = None) -> Any:
        given.update(device=device, turns=turns)
        return constant_orm(parse_model_name("constant:0.5"))

    monkeypatch.setattr(outcome_models, "_registered", {"noting": factory})
    open_reward_model("orm", "nick", RunConfig(**settings, reward_models={"nick": {"name": "noting", **table}}))
    assert given["device"] == device
    assert (given["turns"] is not None) == shared


def test_a_model_without_room_is_refused_before_it_is_loaded(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "free_memory", lambda device: 1000)
    for placement in ("together", "phased"):
        with pytest.raises(CapabilityError, match=r"needs about .* GiB on cpu.*--placement phased"):
            magicore.score_batch(
                [Solution(question="1 + 1?", text="2")],
                orm=f"sequence-classification:{folders['orm']}",
                device="cpu",
                placement=placement,
            )


def test_a_policy_without_room_beside_the_reward_models_is_refused_before_anything_is_drawn(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "free_memory", lambda device: 1000)
    with pytest.raises(magicore.errors.CapabilityError, match=r"policy.* needs about .*--placement phased"):
        magicore.solve("1 + 1?", model=f"hf:{folders['policy']}", method="cot", device="cpu")


def test_an_engine_that_cannot_enter_says_why_and_the_next_turn_tries_again() -> None:
    attempts: list[int] = []

    def load() -> Any:
        attempts.append(1)
        raise CapabilityError("no room")

    part = Part(fingerprint="f", device=None, load=load, build=lambda backbone: backbone)
    engine = ResidentEngine([part], Turns())
    for _ in range(2):
        with pytest.raises(CapabilityError, match="no room"):
            engine.raw_scores([Reading(ids=(1,), reads=(0,))])
    assert len(attempts) == 2
    assert engine.raw_scores([]) == []


def test_after_the_end_of_the_run_there_are_no_scores() -> None:
    turns = Turns()
    part = Part(fingerprint="f", device=None, load=lambda: None, build=lambda backbone: backbone)
    engine = ResidentEngine([part], turns)
    turns.close()
    with pytest.raises(RewardModelError, match="after the end of the run"):
        engine.raw_scores([Reading(ids=(1,), reads=(0,))])
