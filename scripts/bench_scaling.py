#!/usr/bin/env python3
"""Does throughput grow with the replicas of an endpoint, up to where one client process has no processor time left?

    python scripts/bench_scaling.py                               1, 4 and 16 slow replicas, a few seconds each
    python scripts/bench_scaling.py --rate 20 --seconds 30 --past     as many more as it takes to find the limit
    python scripts/bench_scaling.py --rate 20 --seconds 30 --past --clients 2 4      and what several processes do there

Each replica of the hostile endpoint has slots that are busy for a sample's length, so it can do so many requests a
second and no more. A client is a process with an ordinary run: a store on disk, answers read and voted on, one sample a
request. Throughput is taken between the first 40 % and the last 10 % of its requests, after it has found out how many
to have in flight; processor time likewise. Several clients are shards of one run, as `--shard` and `--engine ray` make
them.

What is printed: a table, a sentence on where the limit is, and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import magicore
from magicore.llms.calls import Call
from magicore.runtime.observer import RunObserver
from magicore.testing.hostile import endpoint_process
from magicore.testing.hostile.process import EndpointProcess

TOKENS, SPREAD = 100, 50
SLOTS = 8
CHAINS = 8
STEADY = (0.4, 0.9)
BUSY = 0.9
"""A process that uses so much of one processor has no more to give."""
ENOUGH = 0.9
"""The share of linear growth that is asked for."""
MOST_REPLICAS = 1024


@dataclass(frozen=True, kw_only=True)
class Level:
    """One measurement.

    Attributes:
        replicas, clients: How many.
        offered: Requests a second that the replicas can do.
        requests: Requests a second that were done.
        efficiency: The same as a share of that of one replica and one client, times ``replicas``.
        client_cpu: Processors that each client used, 1 being all that a process with one thread can; the mean.
        request_cpu_ms: Processor time of the clients for each request.
        server_cpu: Processors that the busiest endpoint process used: near 1 it is the endpoint that is at its limit.
    """

    replicas: int
    clients: int
    offered: float
    requests: float
    efficiency: float
    client_cpu: float
    request_cpu_ms: float
    server_cpu: float


class Stopwatch(RunObserver):
    """When each call ended, and how much processor time this process had used by then."""

    def __init__(self) -> None:
        self.ticks: list[tuple[float, float]] = []

    def called(self, call: Call) -> None:
        self.ticks.append((time.perf_counter(), time.process_time()))

    def steady(self) -> dict[str, float]:
        """Requests, seconds and processor seconds between the beginning and the end."""
        first, last = (int(share * len(self.ticks)) for share in STEADY)
        (began, used), (ended, used_then) = self.ticks[first], self.ticks[last]
        return {"requests": last - first, "seconds": ended - began, "cpu_s": used_then - used}


def client(args: argparse.Namespace) -> None:
    """One client process: says that it is ready, waits for a line, runs its shard, and prints what it measured."""
    work = json.loads(args.client)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        magicore.solve_batch(
            [{"question": f"What is {i} plus {3 * i}?", "kind": "number"} for i in range(work["problems"])],
            model="endpoint",
            models={"endpoint": {"name": "openai:hostile", "urls": work["urls"], "max_n": 1}},
            method="self-consistency",
            k=CHAINS,
            max_tokens=1000,
            shard=work["shard"],
            concurrency=work["concurrency"],
            out=Path(folder) / "run",
            progress=watch,
        )
    sys.stdout.write(json.dumps(watch.steady()) + "\n")


@contextmanager
def endpoint(replicas: int, rate: float, processes: int) -> Iterator[list[EndpointProcess]]:
    """So many replicas that each do ``rate`` requests a second, in several processes."""
    processes = min(processes, replicas)
    token_s = SLOTS / rate / TOKENS
    with ExitStack() as stack:
        options = ["--slots", str(SLOTS), "--token-s", f"{token_s:.9f}", "--made", f"{TOKENS}:{SPREAD}"]
        shares = [len(range(number, replicas, processes)) for number in range(processes)]
        yield [stack.enter_context(endpoint_process("--replicas", str(share), *options)) for share in shares]


def measure(args: argparse.Namespace, replicas: int, clients: int) -> dict[str, float]:
    """One level, without what it is compared with."""
    problems = max(clients, round(args.rate * replicas * args.seconds / CHAINS))
    with endpoint(replicas, args.rate, args.server_processes) as servers, ExitStack() as stack:
        urls = [url for server in servers for url in server.urls]
        running = []
        for number in range(1, clients + 1):
            # Twice what the replicas hold at once, so that none ever waits for a problem to end.
            work = {
                "urls": urls,
                "problems": problems,
                "shard": f"{number}/{clients}",
                "concurrency": max(1, 2 * SLOTS * replicas // CHAINS // clients),
            }
            command = [sys.executable, __file__, "--client", json.dumps(work)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            running.append(stack.enter_context(process))
        for process in running:
            _line(process)
        before, began = [_cpu_s(server.pid) for server in servers], time.perf_counter()
        for process in running:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        found = [json.loads(_line(process)) for process in running]
        wall = time.perf_counter() - began
        server_cpu = max(_cpu_s(server.pid) - then for server, then in zip(servers, before, strict=True)) / wall
    return {
        "requests": sum(one["requests"] / one["seconds"] for one in found),
        "client_cpu": sum(one["cpu_s"] / one["seconds"] for one in found) / clients,
        "request_cpu_ms": 1000 * sum(one["cpu_s"] for one in found) / sum(one["requests"] for one in found),
        "server_cpu": server_cpu,
    }


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("a client process failed; its error is above")
    return line


def _cpu_s(pid: int) -> float:
    """Processor seconds that another process has used; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def levels(args: argparse.Namespace) -> Iterator[Level]:
    """The numbers of replicas asked for, with ``--past`` twice as many again and again up to the limit, and there with
    several clients."""
    one: float | None = None
    waiting = list(args.replicas)
    last = waiting[-1]
    while waiting:
        replicas = waiting.pop(0)
        found = _level(args, replicas, 1, one)
        one = one or found.requests / replicas
        yield found
        last = replicas
        within = found.efficiency >= ENOUGH and found.client_cpu < BUSY
        if args.past and not waiting and within and 2 * replicas <= MOST_REPLICAS:
            waiting.append(2 * replicas)
    for clients in args.clients:
        yield _level(args, last, clients, one)


def _level(args: argparse.Namespace, replicas: int, clients: int, one: float | None) -> Level:
    found = measure(args, replicas, clients)
    efficiency = found["requests"] / (replicas * one) if one else 1.0
    return Level(
        replicas=replicas, clients=clients, offered=args.rate * replicas, efficiency=efficiency, **_rounded(found)
    )


def _rounded(found: dict[str, float]) -> dict[str, Any]:
    return {name: round(value, 3) for name, value in found.items()}


def verdict(found: Sequence[Level]) -> dict[str, Any]:
    """What the levels say of the limit."""
    alone = [level for level in found if level.clients == 1]
    bound = next((level for level in alone if level.client_cpu >= BUSY), None)
    linear = [level for level in alone if level.efficiency >= ENOUGH]
    return {
        "linear_up_to_requests_s": max(level.requests for level in linear),
        "linear_up_to_replicas": max(level.replicas for level in linear),
        "cpu_bound_at_requests_s": None if bound is None else bound.requests,
        "cpu_bound_by_request_cpu": round(1000 / alone[-1].request_cpu_ms, 1),
        "slowed_by_something_else": linear[-1] is not alone[-1] and bound is None,
        "endpoint_at_its_limit": any(level.server_cpu >= BUSY for level in found),
        "several_clients_requests_s": {level.clients: level.requests for level in found if level.clients > 1},
    }


def say(text: str) -> None:
    """One line of output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def sentences(found: dict[str, Any]) -> Iterator[str]:
    """The verdict in words."""
    yield (
        f"Throughput grows with the replicas up to {found['linear_up_to_replicas']} of them, "
        f"{found['linear_up_to_requests_s']:,.0f} requests/s."
    )
    if (bound := found["cpu_bound_at_requests_s"]) is None:
        yield (
            "One client process was not CPU-bound; by its processor time for each request it would be at about "
            f"{found['cpu_bound_by_request_cpu']:,.0f} requests/s."
        )
    else:
        yield f"One client process is CPU-bound at {bound:,.0f} requests/s."
    if found["slowed_by_something_else"]:
        yield (
            "Throughput stopped growing and the client had processor time left: this machine was busy with something "
            "else, or the levels were too short; measure again, with it to itself and more --seconds."
        )
    if found["endpoint_at_its_limit"]:
        yield "An endpoint process was CPU-bound too: more --server-processes, or another machine, would show more."
    for clients, requests in found["several_clients_requests_s"].items():
        yield f"{clients} client processes do {requests:,.0f} requests/s there."
    yield "Past that a run needs several processes: `magicore run --shard I/N` and `magicore merge`, or `--engine ray`."


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--rate", type=float, default=4.0, help="requests a second that one replica can do")
    parser.add_argument("--seconds", type=float, default=20.0, help="what each level takes at best")
    parser.add_argument("--past", action="store_true", help="go on with twice as many replicas up to the limit")
    parser.add_argument("--clients", nargs="+", type=int, default=[], help="then several client processes there")
    parser.add_argument("--server-processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--client", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client is not None:
        client(args)
        return
    say("replicas  clients  offered/s  requests/s  of offered  of linear  client CPU  ms a request  server CPU")
    found = []
    for level in levels(args):
        found.append(level)
        say(
            f"{level.replicas:8}  {level.clients:7}  {level.offered:9,.0f}  {level.requests:10,.1f}  "
            f"{100 * level.requests / level.offered:8.1f} %  {100 * level.efficiency:7.1f} %  "
            f"{level.client_cpu:10.2f}  {level.request_cpu_ms:12.2f}  {level.server_cpu:10.2f}"
        )
    told = verdict(found)
    for sentence in sentences(told):
        say(sentence)
    say(json.dumps({"levels": [asdict(level) for level in found], **told}))


if __name__ == "__main__":
    main()
