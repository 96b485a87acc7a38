"""Whole runs against an endpoint that misbehaves: nothing paid for is lost, and the books agree with the ledger."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import magicore
from magicore._sync import run_sync
from magicore.errors import AuthenticationFailed
from magicore.llms.identity import sample_seed
from magicore.llms.probe import probe
from magicore.llms.registry import open_model
from magicore.store.accounting import recounted_with, role_accounts
from magicore.store.run_store import RunStore
from magicore.testing.hostile import KINDS, Faults, Habits, HostileEndpoint, Made, Service, count_tokens, running

KEY = "sk-very-secret-0123456789"


def problems(n: int) -> list[dict[str, str]]:
    return [{"id": f"p{i}", "question": f"What is {i} plus {3 * i + 1}?", "answer": str(4 * i + 1)} for i in range(n)]


def go(endpoint: HostileEndpoint, n: int, out: Path | None = None, **settings: Any) -> magicore.Run:
    table = {"name": f"openai:{endpoint.model}", "urls": list(endpoint.urls), "idle_timeout": 1.0}
    chosen = {"model": "m", "models": {"m": table | settings.pop("table", {})}, "max_tokens": 120, "progress": False}
    return magicore.solve_batch(problems(n), out=out, **(chosen | settings))


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostileEndpoint, magicore.Run, Path]]:
    """One run with rounds in which a fifth of all replies are faulty, over two replicas."""
    out = tmp_path_factory.mktemp("runs") / "run"
    kinds = dict.fromkeys(KINDS, 1.0) | {"wrong-usage": 5.0}
    faults = Faults(rate=0.2, kinds=kinds, seed=11, retry_after_s=0.05, slow_s=0.1)
    with running(HostileEndpoint(faults=faults, replicas=2)) as endpoint:
        methods = {"method": "magicore", "router": "hard", "iterations": 1, "orm": "likelihood", "prm": "arithmetic"}
        log = out.parent / "log.jsonl"
        yield endpoint, go(endpoint, 12, out, k=6, log_json=log, **methods), out


def test_every_problem_ends(hostile_run: tuple[HostileEndpoint, magicore.Run, Path]) -> None:
    _, run, _ = hostile_run
    assert [result.id for result in run.results] == [f"p{i}" for i in range(12)]
    assert all(result.answer is not None or result.error is not None or result.abstained for result in run.results)
    assert run.summary["failed"] == sum(result.error is not None for result in run.results)


def test_the_books_equal_the_ledger(hostile_run: tuple[HostileEndpoint, magicore.Run, Path]) -> None:
    endpoint, run, out = hostile_run
    totals = endpoint.ledger.totals()
    assert totals["refused"] > 0 and totals["undelivered"]["replies"] > 0 and len(totals["faults"]) > 4
    store = RunStore(out / "store.sqlite")
    accounts = role_accounts(store.completion_rows(), store.failed_calls())
    store.close()
    assert sum(account.usage.prompt for account in accounts) == totals["stated"]["prompt"]
    assert sum(account.usage.completion for account in accounts) == totals["stated"]["completion"]
    assert sum(account.usage.calls for account in accounts) == totals["delivered"]["replies"]
    unknown = totals["undelivered"]["replies"] + totals["gone"]["replies"]
    assert sum(account.unknown for account in accounts) == unknown == run.summary["unknown_calls"]
    assert totals["repeated"] == 0
    timings = [json.loads(line) for line in (out / "timings.jsonl").read_text().splitlines()]
    assert sum(row["unknown"] for timing in timings for row in timing["calls"]) == unknown
    assert {row["role"] for timing in timings for row in timing["calls"]} >= {"solver", "reviewer", "refiner"}
    assert sum(entry.usage.calls for result in run.results for entry in result.usage) >= totals["delivered"]["replies"]


def test_wrong_usage_is_found_by_counting_again(hostile_run: tuple[HostileEndpoint, magicore.Run, Path]) -> None:
    endpoint, run, out = hostile_run
    [name] = {entry.model for result in run.results for entry in result.usage if entry.role == "solver"}
    store = RunStore(out / "store.sqlite")
    counted = list(recounted_with(store.completion_rows(), {name: count_tokens}))
    store.close()
    wrong = [one for one in counted if not one.plausible]
    wrongly_stated = [entry for entry in endpoint.ledger.where("delivered") if entry.fault == "wrong-usage"]
    assert Counter(one.stated for one in wrong) == Counter(entry.stated_completion for entry in wrongly_stated)
    assert len(wrong) > 0


def test_the_log_tells_of_every_call(hostile_run: tuple[HostileEndpoint, magicore.Run, Path]) -> None:
    endpoint, run, out = hostile_run
    events = [json.loads(line) for line in (out.parent / "log.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "started" and events[0]["problems"] == 12
    assert events[-1] == {"at": events[-1]["at"], "event": "finished", "summary": dict(run.summary)}
    calls = [event for event in events if event["event"] == "call"]
    totals = endpoint.ledger.totals()
    assert sum(call["given"] for call in calls) == totals["delivered"]["choices"]
    assert sum(call["completion"] for call in calls) == totals["stated"]["completion"]
    failed = [call for call in calls if call["error"]]
    assert failed and all(call["retry_in"] is not None or call["attempt"] > 1 for call in failed)
    assert {event["problem"] for event in events if event["event"] == "answered"} == {f"p{i}" for i in range(12)}


def test_the_same_run_again_asks_for_nothing(hostile_run: tuple[HostileEndpoint, magicore.Run, Path]) -> None:
    endpoint, run, out = hostile_run
    before = endpoint.ledger.totals()["requests"]
    (out / "results.jsonl").unlink()
    methods = {"method": "magicore", "router": "hard", "iterations": 1, "orm": "likelihood", "prm": "arithmetic"}
    again = go(endpoint, 12, out, k=6, **methods)
    assert endpoint.ledger.totals()["requests"] - before <= sum(result.error is not None for result in run.results) * 12
    assert [result.answer for result in again.results] == [result.answer for result in run.results]


def test_an_endpoint_that_ignores_n_is_known_after_two_replies_and_remembered(tmp_path: Path) -> None:
    with running(HostileEndpoint(writer=Made(tokens=30), habits=Habits(n="ignored"))) as endpoint:
        first = go(endpoint, 2, tmp_path / "r", method="self-consistency", k=8)
        asked = [entry.asked for entry in endpoint.ledger.entries]
        assert sum(n > 1 for n in asked) <= 4 and len(asked) == 16
        assert all(len(one["votes"]) > 0 for one in _rows(tmp_path / "r")) and first.summary["failed"] == 0
        endpoint.ledger.clear()
        go(endpoint, 3, tmp_path / "r", method="self-consistency", k=8, force=True)
        assert [entry.asked for entry in endpoint.ledger.entries] == [1] * 8


def _rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def test_repeated_chains_are_flagged_and_may_count_once(tmp_path: Path) -> None:
    with running(HostileEndpoint(writer=Made(tokens=40), habits=Habits(distinct=False))) as endpoint:
        counted = go(endpoint, 1, tmp_path / "a", method="self-consistency", k=4)
        once = go(endpoint, 1, tmp_path / "b", method="self-consistency", k=4, duplicates="once")
    assert [vote.count for vote in counted.results[0].votes] == [4]
    assert any("3 of 4 solver samples repeat another" in warning for warning in counted.results[0].warnings)
    assert [vote.count for vote in once.results[0].votes] == [1]
    assert {one.reason for one in once.results[0].abstained} == {"repeats p0/solver/0/0/0"}


@pytest.mark.parametrize(
    ("habits", "expected"),
    [
        (Habits(), {"n": True, "distinct": True, "seeds": True, "logprobs": True, "usage": True, "max_n": None}),
        (Habits(n="ignored", seed="ignored"), {"n": False, "max_n": 1, "distinct": None, "seeds": False}),
        (Habits(max_n=2, logprobs="refused"), {"n": False, "max_n": 2, "logprobs": False, "distinct": True}),
        (Habits(distinct=False, usage=False, stop_reasons=False), {"distinct": False, "usage": False}),
        (Habits(limit="max_completion_tokens", seed="refused"), {"limit": "max_completion_tokens", "seeds": False}),
    ],
)
def test_a_probe_finds_an_endpoint_s_habits(habits: Habits, expected: dict[str, Any]) -> None:
    with running(HostileEndpoint(writer=Made(tokens=60, spread=20), habits=habits)) as endpoint:
        model = open_model(endpoint.name)

        async def ask() -> dict[str, Any]:
            found = await probe(model)
            await model.aclose()
            return found.profile.known()

        known = run_sync(ask())
    assert {name: known[name] for name in expected} == expected
    assert known["stop_reasons"] is habits.stop_reasons


def test_streams_are_booked_as_whole_replies_are(tmp_path: Path) -> None:
    faults = Faults(rate=0.3, seed=5, retry_after_s=0.05, slow_s=0.05)
    with running(HostileEndpoint(faults=faults)) as endpoint:
        go(endpoint, 10, tmp_path / "r", method="self-consistency", k=4, max_tokens=4500)
        totals = endpoint.ledger.totals()
    store = RunStore(tmp_path / "r" / "store.sqlite")
    accounts = role_accounts(store.completion_rows(), store.failed_calls())
    store.close()
    assert sum(account.usage.completion for account in accounts) == totals["stated"]["completion"] > 0
    assert sum(account.unknown for account in accounts) == totals["undelivered"]["replies"] + totals["gone"]["replies"]
    assert totals["repeated"] == 0


def test_a_dead_replica_costs_nothing_and_is_used_again_when_it_is_back() -> None:
    with running(HostileEndpoint(writer=Made(tokens=20), replicas=2)) as endpoint:
        run_sync(endpoint.stop_replica(1))
        run = go(endpoint, 6, method="self-consistency", k=4)
        assert run.summary["failed"] == 0 and "unknown_calls" not in run.summary
        assert {entry.replica for entry in endpoint.ledger.entries} == {0}
        run_sync(endpoint.start_replica(1))
        go(endpoint, 6, method="self-consistency", k=4)
        assert {entry.replica for entry in endpoint.ledger.entries} == {0, 1}


def test_limits_grow_while_the_endpoint_keeps_up_and_no_request_is_refused_for_long() -> None:
    service = Service(slots=16, sample_s=0.02, queue=32)
    with running(HostileEndpoint(writer=Made(tokens=20), service=service)) as endpoint:
        run = go(endpoint, 40, method="self-consistency", k=8)
        totals = endpoint.ledger.totals()
    assert run.summary["failed"] == 0 and totals["delivered"]["choices"] == 320
    assert totals["refused"] < totals["delivered"]["replies"]


def test_keys_appear_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The endpoint quotes the key in every error; a run is made with logs, and its whole process is searched."""
    caplog.set_level(logging.DEBUG)
    faults = Faults(rate=0.5, kinds={"server-error": 1, "rate-limit": 1, "unavailable": 1}, seed=2)
    config = tmp_path / "run.toml"
    with running(HostileEndpoint(faults=faults, habits=Habits(key=KEY))) as endpoint:
        url = endpoint.urls[0]
        config.write_text(f'[models.m]\nname = "openai:hostile@{url}"\napi_key_env = "MY_KEY"\n')
        data = tmp_path / "problems.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in problems(12)))
        command = [sys.executable, "-X", "faulthandler", "-m", "magicore", "run", "--config", str(config)]
        command += ["--model", "m", "--data", str(data), "--method", "self-consistency", "--k", "4"]
        command += ["--out", str(tmp_path / "run"), "--log-json", str(tmp_path / "log.jsonl")]
        environment = {**os.environ, "MY_KEY": KEY, "OPENAI_LOG": "debug"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            listed = Path(f"/proc/{process.pid}/cmdline")
            shown = listed.read_bytes() if listed.exists() else b""
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert endpoint.ledger.totals()["refused"] > 0
        wrong = {"table": {"api_key_env": "WRONG_KEY"}, "method": "cot"}
        os.environ["WRONG_KEY"] = wrong_key = "sk-wrong-9876543210"
        try:
            with pytest.raises(AuthenticationFailed) as caught:
                go(endpoint, 1, tmp_path / "wrong", **wrong)
        finally:
            del os.environ["WRONG_KEY"]
    texts = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    texts |= {"out": out.encode(), "err": err.encode(), "cmdline": shown}
    texts |= {"error": repr(caught.value).encode(), "log": caplog.text.encode()}
    assert [name for name, text in texts.items() if KEY.encode() in text or wrong_key.encode() in text] == []


def test_a_key_in_a_configuration_is_refused_without_being_shown() -> None:
    with running(HostileEndpoint()) as endpoint, pytest.raises(magicore.MagicoreError) as caught:
        go(endpoint, 1, table={"api_key": KEY})
    assert "api_key_env" in str(caught.value) and KEY not in str(caught.value)


def test_what_an_endpoint_refuses_is_said_of_the_run_and_of_no_problem(tmp_path: Path) -> None:
    with running(HostileEndpoint(habits=Habits(refused=("top_p",)))) as endpoint:
        runs = [
            go(endpoint, 4, tmp_path / str(concurrency), method="cot", concurrency=concurrency)
            for concurrency in (1, 8)
        ]
        before = (tmp_path / "1" / "results.jsonl").read_bytes()
        (tmp_path / "1" / "results.jsonl").unlink()
        again = go(endpoint, 4, tmp_path / "1", method="cot", concurrency=1)  # from the store alone
    sentence = f"openai:{endpoint.model}@{','.join(endpoint.urls)} refuses top_p, which is left out from now on"
    assert [run.summary["warnings"] for run in runs] == [[sentence]] * 2
    assert not any("refuses" in warning for run in runs for result in run.results for warning in result.warnings)
    assert {(tmp_path / name / "results.jsonl").read_bytes() for name in ("1", "8")} == {before}
    assert again.summary["warnings"] == [sentence]


@pytest.mark.parametrize("treatment", ["honoured", "refused"])
def test_the_seed_of_a_request_is_kept_with_what_it_brought(
    treatment: Literal["honoured", "refused"], tmp_path: Path
) -> None:
    with running(HostileEndpoint(habits=Habits(seed=treatment, max_n=2))) as endpoint:
        go(endpoint, 2, tmp_path / "run", method="self-consistency", k=4, concurrency=1)
    store = RunStore(tmp_path / "run" / "store.sqlite")
    rows = list(store.completion_rows())
    store.close()
    if treatment == "refused":
        assert [row.completion.seed for row in rows] == [None] * 8
        return
    for row in rows:  # the first sample of its request is the one that bears the call
        if row.completion.usage.calls:
            first = row
        assert row.completion.seed == sample_seed(first.key)
    assert len({row.completion.seed for row in rows}) == sum(row.completion.usage.calls for row in rows)
