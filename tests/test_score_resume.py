"""``magicore score`` on a file: what is scored is kept, whatever ends the command, and nothing is scored twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ORM = '''
"""Scores by length, says of each solution in a file that it scored it, and takes its time."""
import os, time
from pathlib import Path
from reward_models import OutcomeScore

class Slow:
    name = "slow"

    def score(self, solutions):
        with Path(os.environ["SCORED_LOG"]).open("a") as log:
            for solution in solutions:
                time.sleep(0.001)
                print(solution.text, file=log, flush=True)
        return [OutcomeScore(value=1 / len(solution.text)) for solution in solutions]
'''
BATCH = 64


class Scoring:
    """The command over a file of solutions, in a process of its own, with a count of what the model was asked."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self._folder = folder
        self._log = folder / "scored.log"
        self._log.touch()
        (folder / "slow_orm.py").write_text(ORM)
        rows = [{"id": at, "question": "How many?", "solution": f"There are {at}."} for at in range(count)]
        (folder / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "magicore", "score", "solutions.jsonl", "--orm", "slow_orm:Slow"]
        paths = [str(self._folder), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"SCORED_LOG": str(self._log), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return subprocess.Popen(
            [*command, "--out", "scored"],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def calls(self) -> Counter[str]:
        """How often each solution was scored."""
        return Counter(self._log.read_text().splitlines())

    def interrupt(self, how: signal.Signals, after: int) -> tuple[int, str]:
        """Start, and send a signal once ``after`` more solutions were scored; the exit status and what was said."""
        wanted = self.calls.total() + after
        process = self.start()
        while process.poll() is None and self.calls.total() < wanted:
            time.sleep(0.002)
        process.send_signal(how)
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    def finish(self) -> list[float]:
        process = self.start()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        rows = [json.loads(line) for line in (self._folder / "scored" / "chains.jsonl").read_text().splitlines()]
        return [row["orm"] for row in rows]


@pytest.fixture
def scoring(tmp_path: Path) -> Scoring:
    return Scoring(tmp_path, 300)


def test_an_interrupted_command_keeps_what_it_has_and_scores_nothing_twice(scoring: Scoring) -> None:
    status, said = scoring.interrupt(signal.SIGINT, after=90)
    assert status == 130
    assert f"of {scoring.count:,} solutions are scored and kept, and the same command goes on" in " ".join(said.split())
    assert "Traceback" not in said
    before = scoring.calls
    assert before.total() % BATCH == 0  # the batch in hand was finished
    assert scoring.finish() == [1 / len(f"There are {at}.") for at in range(scoring.count)]
    assert scoring.finish() == [1 / len(f"There are {at}.") for at in range(scoring.count)]  # all is kept
    assert set(scoring.calls.values()) == {1}
    assert len(scoring.calls) == scoring.count


def test_a_killed_command_repeats_at_most_the_batch_in_hand(scoring: Scoring) -> None:
    kills = 2
    for _ in range(kills):
        status, _ = scoring.interrupt(signal.SIGKILL, after=90)
        assert status == -signal.SIGKILL
    assert scoring.finish() == [1 / len(f"There are {at}.") for at in range(scoring.count)]
    assert len(scoring.calls) == scoring.count
    assert scoring.calls.total() <= scoring.count + kills * BATCH
    assert max(scoring.calls.values()) <= 1 + kills
