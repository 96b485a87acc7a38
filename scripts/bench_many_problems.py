#!/usr/bin/env python3
"""Run one method over very many tiny problems with the scripted model: peak memory, time, and time to resume.

The run is a process of its own, as a user's would be. It is then started again, which must cost almost nothing, and
once more without its files, which are made again from the store without a call.

    python scripts/bench_many_problems.py
    python scripts/bench_many_problems.py --problems 5000 --method self-consistency --json many.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

MOST_MB = 600.0
"""The bound on peak memory."""
MOST_RESUME_S = 10.0
"""The bound on starting a finished run again."""


def write_problems(path: Path, n: int) -> None:
    """``n`` sums as a problems file."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            row = {"id": f"p{i}", "question": f"What is {i} plus {3 * i + 1}?", "answer": str(4 * i + 1)}
            file.write(json.dumps(row) + "\n")


def timed_run(command: Sequence[str]) -> dict[str, float]:
    """Wall and processor seconds of a command, and its peak memory in megabytes.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    scale = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return {
        "wall_s": round(wall, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / scale, 1),
    }


def main() -> int:
    """Print the figures; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description="Time a run over very many tiny problems, and its resumption.")
    parser.add_argument("--problems", type=int, default=100_000, help="how many problems (default 100,000)")
    parser.add_argument("--k", type=int, default=4, help="chains a problem (default 4)")
    parser.add_argument("--method", default="magicore", help="the method (default magicore)")
    parser.add_argument("--rebuild", action="store_true", help="also make the files again from the store")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    options = parser.parse_args()
    for name in ("problems", "k"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "problems.jsonl", Path(folder) / "run"
        write_problems(data, options.problems)
        command = [sys.executable, "-m", "magicore", "run", "--model", "scripted", "--method", options.method]
        command += ["--orm", "likelihood", "--prm", "arithmetic", "--k", str(options.k), "--data", str(data)]
        command += ["--out", str(out), "--yes"]
        figures: dict[str, object] = {"problems": options.problems, "k": options.k, "method": options.method}
        first = timed_run(command)
        before = (out / "results.jsonl").read_bytes()
        again = timed_run(command)
        figures |= {"run": first, "again": again, "store_mb": round((out / "store.sqlite").stat().st_size / 1e6, 1)}
        if options.rebuild:
            (out / "results.jsonl").unlink()
            figures["rebuilt"] = timed_run(command)
            figures["rebuilt_equal"] = (out / "results.jsonl").read_bytes() == before
    text = json.dumps(figures, indent=2) + "\n"
    sys.stdout.write(text)
    if options.json is not None:
        options.json.write_text(text, encoding="utf-8")
    missed = max(first["peak_mb"], again["peak_mb"]) > MOST_MB or again["wall_s"] > MOST_RESUME_S
    return int(missed or not figures.get("rebuilt_equal", True))


if __name__ == "__main__":
    sys.exit(main())
