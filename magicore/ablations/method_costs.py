"""What each method costs and how long it waits: calls and critical path, on models that give every call one latency.

Measured, not derived: each method runs on one question, once on a :class:`~magicore.llms.lockstep.LockstepModel`, which
counts calls and ticks without a clock, and, where asked, once over HTTP on a server that takes the same time for every
request, which gives the wall time in latencies.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rich.table import Table

from magicore.api import solve_batch
from magicore.llms.base import Request
from magicore.llms.lockstep import LockstepModel
from magicore.types import Problem

PROBLEM = Problem(id="q", question="What is 2 + 3?", kind="number", answer="5")
REWARD_MODELS = {"orm": "random", "prm": "random"}

CONFIGURATIONS: Sequence[tuple[str, Mapping[str, Any], str, str]] = (
    ("cot", {}, "1", "1"),
    ("self-consistency", {"k": 8}, "1 (k samples)", "1"),
    ("mars", {"reviewers": 2}, "1 + R(m + 2)", "1 + 3R"),
    ("mars", {"reviewers": 4}, "1 + R(m + 2)", "1 + 3R"),
    ("mars", {"reviewers": 8}, "1 + R(m + 2)", "1 + 3R"),
    ("mars", {"reviewers": 2, "max_rounds": 3}, "1 + R(m + 2)", "1 + 3R"),
    ("peer-review", {"agents": 3}, "n + R n^2", "1 + 2R"),
    ("peer-review", {"agents": 5}, "n + R n^2", "1 + 2R"),
    ("peer-review", {"agents": 3, "rounds": 2}, "n + R n^2", "1 + 2R"),
    ("peer-review", {"agents": 3, "exchange": "solutions"}, "n + R n", "1 + R"),
    ("debate", {"agents": 3, "rounds": 2}, "n R", "R"),
    ("debate", {"agents": 5, "rounds": 3}, "n R", "R"),
    ("self-reflection", {}, "2", "2"),
    ("self-correction", {"agents": 3}, "3n", "3"),
    ("self-refine", {"iterations": 3}, "1 + 2T", "1 + 2T"),
    ("self-refine+sc", {"k": 8, "iterations": 3}, "1 + 2kT", "1 + 2T"),
    ("magicore", {"k": 8, "iterations": 3, "router": "hard"}, "1 + 2kT", "1 + 2T"),
    ("magicore", {"k": 8, "iterations": 3, "router": "hard", "review": "joint"}, "1 + kT", "1 + T"),
    ("magicore", {"k": 8, "iterations": 1, "router": "hard", "review": "mars"}, "1 + k(m + 2)T", "1 + 3T"),
)
"""Method, options, and calls and critical path by formula: k chains, m reviewers, n agents, R rounds, T iterations.

Every meta-review rejects and every question is hard."""


@dataclass(frozen=True, kw_only=True)
class MethodCost:
    """One measured method.

    Attributes:
        calls: Requests.
        path: The longest chain of requests that wait for each other.
        by_role: Requests by role.
        latencies: Wall time over HTTP, in latencies of the server; ``None`` if not measured.
    """

    method: str
    options: Mapping[str, Any]
    calls: int
    path: int
    by_role: Mapping[str, int] = field(default_factory=dict)
    latencies: float | None = None


def reply(which: str) -> str:
    """One text that serves every role: a review that rejects, and below it a solution."""
    return (
        f"Decision: wrong\nConfidence: 4\nJustification: {which}\nSuggestions: add again\nAnswer: 5\n\n"
        f"Improved solution:\nStep 1: 2 + 3 = 5 ({which})\nStep 2: The final answer is 5."
    )


def _reply(request: Request, index: int) -> str:
    key = request.key
    return reply(f"{key.role}.{key.instance}.{key.round}.{key.parent}.{index}")


def measure(method: str, options: Mapping[str, Any]) -> MethodCost:
    """Run one method on one question, in lockstep."""
    model = LockstepModel(_reply)
    needs = REWARD_MODELS if method.startswith("magicore") else {}
    solve_batch([PROBLEM], model=model, method=method, progress=False, **needs, **options)
    return MethodCost(method=method, options=options, calls=model.calls, path=model.ticks, by_role=model.by_role)


def measure_wall(method: str, options: Mapping[str, Any], url: str, latency: float) -> float:
    """Wall time of one method on one question over HTTP, in latencies; the connection is made beforehand."""
    needs = REWARD_MODELS if method.startswith("magicore") else {}
    model = f"openai:costs@{url}"
    started = time.perf_counter()
    solve_batch([PROBLEM], model=model, method=method, progress=False, **needs, **options)
    return (time.perf_counter() - started) / latency


@contextmanager
def latency_server(latency: float) -> Iterator[str]:
    """An OpenAI-compatible server on this machine that takes ``latency`` seconds for every request; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(latency)
            text = reply(secrets.token_hex(4))
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            content = json.dumps(
                {
                    "choices": [{"index": i, **choice} for i in range(body.get("n") or 1)],
                    "usage": {"prompt_tokens": 1, "completion_tokens": len(text.split())},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # a call that finds the queue full would connect a second or more later

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def cost_table(latency: float | None = None) -> Table:
    """Every configuration measured. With ``latency``, in seconds, also over HTTP, the shortest of three runs."""
    table = Table(box=None, pad_edge=False)
    for title in (
        "Method",
        "Options",
        "Calls",
        "by formula",
        "Path",
        "by formula",
        *(["Wall / latency"] if latency else []),
    ):
        table.add_column(title)
    measured = [measure(method, options) for method, options, _, _ in CONFIGURATIONS]
    walls: Sequence[str] = [""] * len(measured)
    if latency:
        with latency_server(latency) as url:
            walls = [
                f"{min(measure_wall(cost.method, cost.options, url, latency) for _ in range(3)):.2f}"
                for cost in measured
            ]
    for (_, _, calls, path), cost, wall in zip(CONFIGURATIONS, measured, walls, strict=True):
        shown = ", ".join(f"{name}={value}" for name, value in cost.options.items())
        table.add_row(cost.method, shown, str(cost.calls), calls, str(cost.path), path, *([wall] if latency else []))
    return table
