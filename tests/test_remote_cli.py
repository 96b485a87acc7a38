"""``magicore serve-reward-model`` as a user runs it: a process, a port, a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from conftest import ROOT
from magicore.cli import main
from reward_models.registry import load_process_model
from reward_models.types import Solution

pytest.importorskip("uvicorn")


@contextmanager
def command(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running command, and what it said when it was ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "magicore", "serve-reward-model", *arguments, "--port", "0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


def test_serves_says_how_to_use_it_and_ends_on_interrupt() -> None:
    with command("arithmetic") as (process, said):
        assert said.startswith("arithmetic (process) is served; use it as arithmetic@http://127.0.0.1:")
        name = said.rpartition(" ")[2].strip()
        model = load_process_model(name)
        assert model.score([Solution(question="q", text="2 + 2 = 5")])[0].scores[0].raw == 0.0
        model.close()  # type: ignore[attr-defined]
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=20)
    assert process.returncode == 0
    assert rest == "stopped\n"


SLOW = """
import pathlib, time
from reward_models.types import OutcomeScore

class Slow:
    name = "slow_model:Slow"

    def score(self, solutions):
        here = pathlib.Path(__file__).parent
        (here / "begun").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
        return [OutcomeScore(value=0.5) for _ in solutions]
"""


def test_what_was_accepted_is_answered_before_it_ends(tmp_path: Path) -> None:
    (tmp_path / "slow_model.py").write_text(SLOW)
    answers: list[int] = []

    def ask(url: str) -> None:
        body = {"contract": 1, "solutions": [{"question": "q", "text": "t"}]}
        answers.append(httpx2.post(f"{url}/v1/score", json=body, timeout=60).status_code)

    with command("slow_model:Slow", "--kind", "outcome", PYTHONPATH=str(tmp_path)) as (process, said):
        url = said.rpartition("@")[2].strip()
        asking = threading.Thread(target=ask, args=(url,))
        asking.start()
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        with pytest.raises(httpx2.TransportError):  # nothing new is accepted
            while True:
                httpx2.get(f"{url}/health", timeout=60)
        (tmp_path / "go").touch()
        asking.join(60)
        process.communicate(timeout=60)
    assert answers == [200]
    assert process.returncode == 0


def test_the_key_comes_from_the_environment() -> None:
    with command("arithmetic", "--api-key-env", "SCORE_KEY", SCORE_KEY="abc") as (_, said):
        url = said.rpartition("@")[2].strip()
        assert httpx2.get(f"{url}/v1/model").status_code == 401
        assert httpx2.get(f"{url}/v1/model", headers={"authorization": "Bearer abc"}).json()["model"] == "arithmetic"
        assert "abc" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["constant:0.5"], "may be an outcome or a process reward model; say which by --kind"),
        (["arithmetics"], "did you mean arithmetic"),
        (["arithmetic", "--kind", "steps"], "--kind is outcome or process, not 'steps'"),
        (["arithmetic", "--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, so a key is needed"),
        (["arithmetic", "--api-key-env", "NO_SUCH_KEY"], "--api-key-env names NO_SUCH_KEY, which is not set"),
        (["math-shepherd@http://127.0.0.1:1", "--kind", "process"], "is the server running"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["magicore", "serve-reward-model", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = " ".join(capsys.readouterr().err.split())
    assert ended.value.code == 1
    assert said.startswith("error: ")
    assert words in said


def checked(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Exit code, output and errors of ``magicore check-reward-model``."""
    monkeypatch.setattr(sys, "argv", ["magicore", "check-reward-model", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), " ".join(said.out.split()), " ".join(said.err.split())


def test_check_of_a_sound_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = checked(["random:7", "--kind", "process"], monkeypatch, capsys)
    assert code == 0
    assert "counts passed 6 solutions, 18 steps, one outcome each" in out
    assert "token ids does not apply" in out
    assert "Sound" in out


def test_check_of_a_model_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = checked(["constant:0.5", "--kind", "outcome"], monkeypatch, capsys)
    assert code == 1
    assert "spread failed all scores are the same" in out
    assert "Its scores cannot be believed here." in out


def test_check_over_a_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with command("random:7", "--kind", "process") as (_, said):
        name = said.rpartition(" ")[2].strip()
        code, out, _ = checked([name, "--kind", "process"], monkeypatch, capsys)
    assert code == 0
    assert "counts passed" in out


def test_check_of_a_name_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = checked(["math-shepard"], monkeypatch, capsys)
    assert code == 1
    assert err.startswith("error: no process reward model is called 'math-shepard': did you mean math-shepherd")
