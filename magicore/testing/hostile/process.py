"""Running an endpoint: beside the tests on magicore's loop, or as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from magicore._sync import run_sync
from magicore.testing.hostile.server import HostileEndpoint


@contextmanager
def running(endpoint: HostileEndpoint) -> Iterator[HostileEndpoint]:
    """Serve from this process, on the loop behind magicore's synchronous calls."""
    run_sync(endpoint.start())
    try:
        yield endpoint
    finally:
        run_sync(endpoint.stop())


@dataclass(frozen=True, kw_only=True)
class EndpointProcess:
    """An endpoint in a process of its own.

    Attributes:
        name: The endpoint as magicore names it.
        urls: The base URL of each replica.
        pid: The process.
    """

    name: str
    urls: tuple[str, ...]
    pid: int

    def ledger(self) -> dict[str, Any]:
        """See :meth:`magicore.testing.hostile.ledger.Ledger.totals`."""
        found: dict[str, Any] = self._ask("/ledger")
        return found

    def entries(self) -> list[dict[str, Any]]:
        """Every request as an object with the attributes of :class:`~magicore.testing.hostile.ledger.Entry`."""
        found: list[dict[str, Any]] = self._ask("/ledger/entries")
        return found

    def clear(self) -> None:
        """Empty the ledger."""
        self._ask("/ledger/clear", method="POST")

    def replica(self, number: int, *, up: bool) -> None:
        """Stop or start a replica; not the first one, which is asked."""
        self._ask(f"/replicas/{number}/{'start' if up else 'stop'}", method="POST")

    def _ask(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(self.urls[0].removesuffix("/v1") + path, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
            return json.loads(response.read())


@contextmanager
def endpoint_process(*arguments: str) -> Iterator[EndpointProcess]:
    """``python -m magicore.testing.hostile ARGUMENTS`` for as long as the context lasts.

    Raises:
        RuntimeError: It did not start; with what it said.
    """
    command = [sys.executable, "-m", "magicore.testing.hostile", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            if not line:
                process.wait()
                raise RuntimeError(f"the endpoint did not start: {process.stderr.read().strip()}")
            said = json.loads(line)
            yield EndpointProcess(name=said["model"], urls=tuple(said["urls"]), pid=process.pid)
        finally:
            process.terminate()
            process.wait()
