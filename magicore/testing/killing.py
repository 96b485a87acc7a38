"""Kill a run at random moments and take it up again: nothing that was answered may be asked for twice."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from magicore.testing.hostile import HostileEndpoint, running


@dataclass(frozen=True, kw_only=True)
class KilledRun:
    """What came of it.

    Attributes:
        kills: How often the run was killed before it ended.
        same: Whether results.jsonl equals that of a run left alone.
        repeated: Calls that were asked for again after they had been delivered.
        in_flight: Calls that had been sent and not yet ended for the run at the kills, whether the endpoint had
            answered them or not: the most that may have to be repeated. The run's own log says which had ended.
        requests: Calls in all, over the killed run.
    """

    kills: int
    same: bool
    repeated: int
    in_flight: int
    requests: int


def kill_and_resume(
    make_endpoint: Callable[[int], HostileEndpoint],
    settings: Sequence[str],
    folder: Path,
    *,
    kills: int,
    longest_s: float,
    seed: int = 0,
) -> KilledRun:
    """Run ``magicore run`` with ``settings`` twice, once left alone and once killed ``kills`` times.

    Args:
        make_endpoint: Makes the endpoint of each of the two runs at a port; they must behave alike. The port is the
            same, since the address is part of a model's identity.
        settings: Arguments of ``magicore run`` but for ``--out``; ``--config {config}`` names the model ``m``, which is
            the endpoint.
        folder: Where the two runs' directories are made.
        kills: How often to kill, if the run lasts long enough.
        longest_s: Each life lasts between 0 and so many seconds after its first call.
        seed: Of the moments.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running(make_endpoint(port)) as endpoint:
        _start(settings, endpoint, folder / "alone").wait()
    draw = random.Random(seed)
    done = in_flight = 0
    with running(make_endpoint(port)) as endpoint:
        while done < kills:
            log = folder / f"life-{done}.jsonl"
            before = len(endpoint.ledger.entries)
            process = _start([*settings, "--log-json", str(log)], endpoint, folder / "killed")
            if _lived(process, endpoint, longest_s * draw.random()):
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            in_flight += len(endpoint.ledger.entries) - before - _ended_calls(log)
            done += 1
        _start(settings, endpoint, folder / "killed").wait()
        totals = endpoint.ledger.totals()
    results = [(folder / name / "results.jsonl").read_bytes() for name in ("alone", "killed")]
    return KilledRun(
        kills=done,
        same=results[0] == results[1],
        repeated=totals["repeated"],
        in_flight=in_flight,
        requests=totals["requests"],
    )


def _start(settings: Sequence[str], endpoint: HostileEndpoint, out: Path) -> subprocess.Popen[bytes]:
    config = out.with_name("config.toml")
    urls = ", ".join(f'"{url}"' for url in endpoint.urls)
    config.write_text(f'[models.m]\nname = "openai:{endpoint.model}"\nurls = [{urls}]\n', encoding="utf-8")
    arguments = [part.replace("{config}", str(config)) for part in settings]
    command = [sys.executable, "-m", "magicore", "run", *arguments, "--model", "m", "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _lived(process: subprocess.Popen[bytes], endpoint: HostileEndpoint, seconds: float) -> bool:
    """Whether the process ended by itself before ``seconds`` after its first call."""
    before = len(endpoint.ledger.entries)
    while process.poll() is None and len(endpoint.ledger.entries) == before:
        time.sleep(0.002)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended_calls(log: Path) -> int:
    """Calls that the run knew to have ended. It logs one after what it brought is stored."""
    return log.read_bytes().count(b'"event": "call"') if log.is_file() else 0
