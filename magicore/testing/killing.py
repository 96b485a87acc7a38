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

JUST_BEFORE_S = 0.02
"""A call that was in flight so shortly before a kill may have been answered and not yet stored."""


@dataclass(frozen=True, kw_only=True)
class KilledRun:
    """What came of it.

    Attributes:
        kills: How often the run was killed before it ended.
        same: Whether results.jsonl equals that of a run left alone.
        repeated: Calls that were asked for again after they had been delivered.
        in_flight: Calls that were in flight at the kills or just before: the most that may have to be repeated.
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
            process = _start(settings, endpoint, folder / "killed")
            if _lived(process, endpoint, longest_s * draw.random()):
                break
            early = _pending(endpoint)
            time.sleep(JUST_BEFORE_S)
            flying = early | _pending(endpoint)
            process.send_signal(signal.SIGKILL)
            process.wait()
            in_flight += len(flying)
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


def _pending(endpoint: HostileEndpoint) -> set[int]:
    return {entry.number for entry in list(endpoint.ledger.entries) if entry.outcome == "pending"}
