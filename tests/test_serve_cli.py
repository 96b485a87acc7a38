"""``magicore serve`` and ``magicore calibrate`` as a user runs them: a process, a port, a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

import magicore
from conftest import ROOT
from gateways import ask, client
from magicore.cli import main
from magicore.testing.hostile import HostileEndpoint, Service, running

BODY = {"magicore": {"kind": "number"}}


@contextmanager
def command(*arguments: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The running command, its address, and what it said when it was ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "magicore", "serve", *map(str, arguments), "--port", "0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        yield process, said.partition("serving at ")[2].partition("/v1;")[0], said
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_what_was_begun_is_answered_before_it_ends(sent: signal.Signals, tmp_path: Path) -> None:
    replies: list[httpx2.Response] = []
    with running(HostileEndpoint(service=Service(sample_s=0.5))) as endpoint:
        options = ("--model", endpoint.name, "--out", tmp_path / "out", "--k", 3)
        with command(*options) as (process, url, said):
            assert "models: cot, debate, mars" in said and "weighted-self-consistency" not in said
            thread = threading.Thread(target=lambda: replies.append(ask(url, model="self-consistency", **BODY)))
            thread.start()
            while not endpoint.ledger.entries:
                assert process.poll() is None
            process.send_signal(sent)
            thread.join()
            _, rest = process.communicate(timeout=20)
    assert process.returncode == 0 and rest == "stopped\n"
    [reply] = replies
    assert reply.status_code == 200 and reply.json()["magicore"]["calls"] == 1
    assert (tmp_path / "out" / "config.toml").is_file() and (tmp_path / "out" / "store.sqlite").is_file()


def test_what_does_not_end_in_time_is_answered_with_what_it_has() -> None:
    with running(HostileEndpoint(service=Service(sample_s=0.3))) as endpoint:
        options = ("--model", endpoint.name, "--orm", "constant:0.5", "--prm", "arithmetic", "--grace", 1)
        with command(*options) as (process, url, _):
            replies: list[httpx2.Response] = []
            model = "magicore:k=2,router=hard,iterations=50"
            thread = threading.Thread(target=lambda: replies.append(ask(url, model=model, **BODY)))
            thread.start()
            while not any(endpoint.ledger.where("delivered")):
                assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            thread.join()
            process.communicate(timeout=20)
    [choice] = replies[0].json()["choices"]
    assert (choice["finish_reason"], choice["magicore"]["stop"]) == ("length", "budget")
    assert process.returncode == 0


def test_the_key_comes_from_the_environment() -> None:
    with command("--model", "scripted", "--api-key-env", "OURS", OURS="secret-1") as (_, url, said):
        assert "secret-1" not in said
        assert ask(url).status_code == 401
        with client(url, "secret-1") as openai_client:
            messages: Any = [{"role": "user", "content": "What is 3 plus 4?"}]
            assert openai_client.chat.completions.create(model="cot", messages=messages).choices


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines, so a key is needed: set MAGICORE_API_KEY"),
        (["--api-key-env", "ABSENT"], "--api-key-env names ABSENT, which is not set"),
        (["--model", "nonsense:x"], "nonsense"),
        (["--orm", "likelihod"], "likelihood"),
        (["--calibration", "absent.json"], "calibration"),
        (["-o", "kk=3"], "no method has an option 'kk'"),
        (["--placement", "apart"], "placement is together, phased, cpu-rewards, and 'apart' is none"),
        (["--grace", "0"], "grace_s must be above 0"),
        (["--budget", "problem.pages=3"], "there is no budget"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["magicore", "serve", "--model", "scripted", "--port", "0", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and said in error


def test_the_placement_is_the_engine_s(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr("magicore.serve.server.run_server", lambda app, **_: served.append(app.state.gateway.config))
    for options in ([], ["--placement", "phased"], ["--placement", "cpu-rewards"]):
        monkeypatch.setattr(sys, "argv", ["magicore", "serve", "--model", "scripted", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    assert [config.placement for config in served] == ["together", "phased", "cpu-rewards"]


def test_calibrate_writes_what_serve_routes_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = [{"question": f"What is {i} plus {i + 2}?"} for i in range(3)]
    magicore.solve_batch(
        questions, model="scripted", orm="random", prm="arithmetic", method="sc+prm", k=2, out=tmp_path / "run",
        progress=False,
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["magicore", "calibrate", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    saved = tmp_path / "run" / "calibration.json"
    found = json.loads(saved.read_text())
    assert f"mu = {found['mu']:.4f}" in (said := capsys.readouterr().out) and "over 6 chains" in said
    assert (found["orm"], found["prm"], found["population"]) == ("random", "arithmetic", "batch")
