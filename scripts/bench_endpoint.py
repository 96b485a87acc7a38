#!/usr/bin/env python3
"""Measure runs against an endpoint that takes its time and misbehaves, and compare clients of it.

    python scripts/bench_endpoint.py survive      a fifth of all replies faulty: is anything lost, do the books agree?
    python scripts/bench_endpoint.py occupancy    are all slots busy, and do generation and scoring overlap?
    python scripts/bench_endpoint.py clients      magicore, a plain asyncio loop and its-hub on the same questions
    python scripts/bench_endpoint.py              all three, with small numbers

its-hub is measured where `--its-hub-python` names a Python that has it (`pip install 'its-hub[lm]==1.2.0'` into an
environment of its own).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import magicore
from magicore.store.accounting import role_accounts
from magicore.store.run_store import RunStore
from magicore.testing.hostile import endpoint_process
from reward_models import OutcomeScore, Solution

SLOTS = 64
TOKENS = 100
FAILING = ("server-error", "unavailable", "rate-limit-after", "reset", "malformed", "empty", "null")


def say(text: str) -> None:
    """One line of output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def problems(n: int) -> list[dict[str, str]]:
    """Sums that the endpoint's rule can solve."""
    return [{"id": f"p{i}", "question": f"What is {i} plus {3 * i}?", "answer": str(4 * i)} for i in range(n)]


def survive(args: argparse.Namespace) -> None:
    """A run with rounds and faults; the endpoint's ledger against the run's own accounts."""
    options = ["--fault-rate", "0.2", "--retry-after-s", "0.2", "--slow-s", "0.5", "--seed", str(args.seed)]
    with endpoint_process(*options) as endpoint, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        started = time.perf_counter()
        run = magicore.solve_batch(
            problems(args.problems),
            model="endpoint",
            models={"endpoint": {"name": "openai:hostile", "urls": list(endpoint.urls), "idle_timeout": 5.0}},
            method="magicore",
            k=args.k,
            iterations=1,
            router="hard",
            orm="likelihood",
            prm="arithmetic",
            max_tokens=150,
            out=out,
            progress=False,
        )
        wall = time.perf_counter() - started
        store = RunStore(out / "store.sqlite")
        accounts = role_accounts(store.completion_rows(), store.failed_calls())
        store.close()
        ledger = endpoint.ledger()
    ours = {
        "prompt": sum(account.usage.prompt for account in accounts),
        "completion": sum(account.usage.completion for account in accounts),
        "replies": sum(account.usage.calls for account in accounts),
        "unknown": sum(account.unknown for account in accounts),
    }
    theirs = {
        "prompt": ledger["stated"]["prompt"],
        "completion": ledger["stated"]["completion"],
        "replies": ledger["delivered"]["replies"],
        "unknown": ledger["undelivered"]["replies"] + ledger["gone"]["replies"],
    }
    say(f"{len(run.results)} problems x {args.k} chains in {wall:.1f} s: {dict(Counter(r.stop for r in run.results))}")
    say(f"requests {ledger['requests']:,}, faults {sum(ledger['faults'].values()):,}: {ledger['faults']}")
    say(f"our accounts       {ours}")
    say(f"endpoint's ledger  {theirs}   {'EQUAL' if ours == theirs else 'DIFFERENT'}")
    say(f"delivered and asked for again: {ledger['repeated']}")


@dataclass(frozen=True, kw_only=True)
class SlowORM:
    """An outcome model on one device: so many seconds a solution, whatever the batch."""

    seconds: float
    name: str = "slow"

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """Take the time; every solution is worth a half."""
        time.sleep(self.seconds * len(solutions))
        return [OutcomeScore(value=0.5) for _ in solutions]


def occupancy(args: argparse.Namespace) -> None:
    """Time against what the slots could do at best, for sampling, and for sampling with scoring of equal cost."""
    chains = args.problems * args.k
    ideal = chains * TOKENS * args.token_s / SLOTS
    orm = SlowORM(seconds=ideal / chains)
    settings: dict[str, Any] = {"k": args.k, "progress": False, "max_tokens": 1000}
    say(f"{args.problems} problems x {args.k} chains, {SLOTS} slots, {TOKENS * args.token_s:g} s a chain")
    with endpoint_process("--made", str(TOKENS)) as endpoint:  # imports what a first call imports
        magicore.solve_batch(problems(1), model=endpoint.name, method="self-consistency", **settings)
    for _ in range(args.repeats):
        walls: dict[str, float] = {}
        for name, method, scorer in (("sampling", "self-consistency", None), ("overlapped", "best-of-k", orm)):
            with (
                endpoint_process(
                    "--slots", str(SLOTS), "--token-s", str(args.token_s), "--made", str(TOKENS)
                ) as endpoint,
                tempfile.TemporaryDirectory() as folder,
            ):
                started = time.perf_counter()
                magicore.solve_batch(
                    problems(args.problems),
                    model=endpoint.name,
                    method=method,
                    orm=scorer,
                    out=Path(folder) / "run",
                    **settings,
                )
                walls[name] = time.perf_counter() - started
        started = time.perf_counter()
        orm.score([Solution(question="", text="")] * chains)
        staged = walls["sampling"] + time.perf_counter() - started
        say(
            f"ideal {ideal:.1f} s; sampling alone {walls['sampling']:.1f} s ({walls['sampling'] / ideal:.3f}); "
            f"with scoring {walls['overlapped']:.1f} s ({walls['overlapped'] / ideal:.3f} of the longer of the two); "
            f"one after the other {staged:.1f} s ({staged / ideal:.3f})"
        )


def clients(args: argparse.Namespace) -> None:
    """Every client in a process of its own, in turn, on both names of this machine, without faults and with."""
    runs: list[tuple[str, list[str]]] = [
        ("magicore", ["magicore"]),
        ("magicore, 1 a call", ["magicore", "--alone"]),
        ("plain loop", ["plain"]),
    ]
    if args.its_hub_python:
        runs.append(("its-hub, default 32", ["its-hub", "--concurrency", "32"]))
        runs.append(("its-hub, unlimited", ["its-hub", "--concurrency", "-1"]))
    ideal = args.questions * args.chains * TOKENS * args.token_s / SLOTS
    say(f"{args.questions} questions x {args.chains} chains; {ideal:.1f} s is what {SLOTS} slots take at best")
    for host in args.hosts:
        for rate in args.rates:
            say(f"{host}, {100 * rate:g} % of replies fail")
            for _ in range(args.repeats):
                for name, command in runs:
                    say(f"  {name:20} {client(args, command, host, rate, limit=4 * ideal + 60)}")


def client(args: argparse.Namespace, command: Sequence[str], host: str, rate: float, *, limit: float) -> str:
    """One client against a fresh endpoint."""
    options = ["--host", host, "--slots", str(SLOTS), "--token-s", str(args.token_s), "--made", f"{TOKENS}:50"]
    options += ["--fault-rate", str(rate), "--retry-after-s", "0.5"]
    options += [part for kind in FAILING for part in ("--fault", kind)]
    python = args.its_hub_python if command[0] == "its-hub" else sys.executable
    script = str(Path(__file__).with_name("endpoint_client.py"))
    with endpoint_process(*options) as endpoint:
        asked = [python, script, command[0], endpoint.urls[0], "--questions", str(args.questions)]
        asked += ["--chains", str(args.chains), *command[1:]]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            delivered = endpoint.ledger()["delivered"]["choices"]
            return f"NOT DONE: stopped after {limit:.0f} s with {delivered:,} chains delivered"
        ledger = endpoint.ledger()
    if done.returncode:
        return f"FAILS: {done.stderr.strip().splitlines()[-1][:160]}"
    found = json.loads(done.stdout.splitlines()[-1])
    known = {name: value for name, value in found.items() if name not in ("wall_s", "cpu_s", "peak_mb")}
    return (
        f"wall {found['wall_s']:6.1f} s  cpu {found['cpu_s']:5.1f} s  peak {found['peak_mb']:4.0f} MB  "
        f"calls {ledger['requests']:,}  {known}"
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["survive", "occupancy", "clients"])
    parser.add_argument("--problems", type=int, help="survive: 300, occupancy: 120")
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--token-s", type=float, help="seconds a token; occupancy: 0.01, clients: 0.005")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--hosts", nargs="+", default=["127.0.0.1", "localhost"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.0, 0.05])
    parser.add_argument("--its-hub-python", help="a Python that has its-hub")
    args = parser.parse_args()
    if args.what is None:
        args.questions, args.chains, args.k = 20, 16, 8
    given, token_s = args.problems, args.token_s
    if args.what in (None, "survive"):
        args.problems = given or (300 if args.what else 30)
        survive(args)
    if args.what in (None, "occupancy"):
        args.problems, args.token_s = given or (120 if args.what else 60), token_s or 0.01
        occupancy(args)
    if args.what in (None, "clients"):
        args.token_s = token_s or 0.005
        clients(args)


if __name__ == "__main__":
    main()
