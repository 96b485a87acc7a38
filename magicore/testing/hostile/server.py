"""The server: HTTP/1.1 read by hand on asyncio's transports, so that one core answers thousands of requests a second.

It speaks as much HTTP as clients of chat completions do: ``content-length`` bodies, connections that are kept, one
request at a time on each.

    POST .../chat/completions           whole or streamed
    GET  .../models
    GET  /ledger, /ledger/entries       what was delivered (see :mod:`magicore.testing.hostile.ledger`)
    POST /ledger/clear
    POST /replicas/N/stop, .../start    close and reopen a replica's port, connections included
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from magicore.testing.hostile.faults import LOSING, REFUSING, Faults
from magicore.testing.hostile.generation import Asked, fault_response, generate, read_request, refusal
from magicore.testing.hostile.habits import Habits
from magicore.testing.hostile.ledger import Entry, Ledger, Outcome
from magicore.testing.hostile.replies import error_response, json_response, streamed_reply, whole_reply
from magicore.testing.hostile.service import Service, Slots
from magicore.testing.hostile.writing import Writer, by_rule

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 s: closing sends a reset


@dataclass(frozen=True, kw_only=True)
class _Reply:
    """Bytes with the loop times they go out at, and how the request ends."""

    parts: Sequence[tuple[float, bytes]]
    entry: Entry | None = None
    outcome: Outcome = "refused"
    reset: bool = False
    stalled: bool = False


class HostileEndpoint:
    """An endpoint, or several replicas of one with a common ledger.

    Args:
        writer: What it writes; sums by rule unless given.
        service: How long that takes, in each replica.
        faults: What goes wrong.
        habits: What it is like.
        model: The model id it serves.
        replicas: How many servers it is.
        host: ``127.0.0.1``, or ``localhost`` for IPv4 and IPv6.
        port: The first replica's port, the others' follow; 0: any free ones.
    """

    def __init__(
        self,
        *,
        writer: Writer = by_rule,
        service: Service | None = None,
        faults: Faults | None = None,
        habits: Habits | None = None,
        model: str = "hostile",
        replicas: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        if replicas < 1:
            raise ValueError(f"an endpoint has at least one replica, not {replicas}")
        self.writer = writer
        self.service = service or Service()
        self.faults = faults or Faults()
        self.habits = habits or Habits()
        self.model = model
        self.host = host
        self.ledger = Ledger()
        self._replicas = [_Replica(self, number, port + number if port else 0) for number in range(replicas)]

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URL of each replica."""
        return tuple(f"http://{self.host}:{replica.port}/v1" for replica in self._replicas)

    @property
    def name(self) -> str:
        """The endpoint as magicore names it."""
        return f"openai:{self.model}@{','.join(self.urls)}"

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: A port is taken.
        """
        for replica in self._replicas:
            await replica.start()

    async def stop(self) -> None:
        """Close all ports and connections."""
        for replica in self._replicas:
            await replica.stop()

    async def stop_replica(self, number: int) -> None:
        """Let a replica (from 0) die: its port refuses, what it was working on is lost."""
        await self._replicas[number].stop()

    async def start_replica(self, number: int) -> None:
        """Let it come back at the same port."""
        await self._replicas[number].start()


class _Replica:
    """One port."""

    def __init__(self, endpoint: HostileEndpoint, number: int, port: int) -> None:
        self.endpoint = endpoint
        self.number = number
        self.port = port
        self.connections: set[_Connection] = set()
        self._slots = Slots(endpoint.service)
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Listen; the port is kept when started again. Two families of addresses share one port."""
        if self._servers:
            return
        loop = asyncio.get_running_loop()
        hosts = ("127.0.0.1", "::1") if self.endpoint.host == "localhost" else (self.endpoint.host,)
        for host in hosts:
            try:
                server = await loop.create_server(lambda: _Connection(self), host, self.port)
            except OSError:
                if not self._servers:
                    raise
                continue  # no IPv6 here
            self._servers.append(server)
            self.port = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and cut all connections."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for connection in list(self.connections):
            connection.cut()
        await asyncio.sleep(0)

    def complete(self, raw: bytes, authorisation: str, now: float) -> _Reply:
        """What becomes of a chat completion."""
        endpoint = self.endpoint
        asked = read_request(raw)
        if asked is None:
            return _Reply(parts=[(now, error_response(400, "The body is no chat."))])
        entry = endpoint.ledger.open(request=f"{asked.digest:016x}", replica=self.number, asked=asked.n)
        if (refused := refusal(asked, endpoint.habits, endpoint.model, authorisation)) is not None:
            return _Reply(parts=[(now, refused)], entry=entry)
        if self._slots.full(now, asked.n):
            return _Reply(parts=[(now, error_response(429, "Too many requests are waiting."))], entry=entry)
        fault = endpoint.faults.draw(asked.digest, entry.attempt, asked.n)
        if fault in REFUSING:
            entry.fault = fault
            return _Reply(parts=[(now, fault_response(fault, endpoint.faults, authorisation))], entry=entry)
        return self._generated(asked, entry, now)

    def _generated(self, asked: Asked, entry: Entry, now: float) -> _Reply:
        endpoint = self.endpoint
        fault = endpoint.faults.draw(asked.digest, entry.attempt, asked.n)
        answer = generate(asked, entry, fault, writer=endpoint.writer, habits=endpoint.habits, model=endpoint.model)
        first, last = self._slots.reserve(now, [choice.written.tokens for choice in answer.choices])
        late = endpoint.faults.slow_s if fault == "slow" else 0.0
        first, last = first + endpoint.service.sample_s + late, last + late
        if asked.body.get("stream"):
            pieces = streamed_reply(answer)
            step = (last - first) / max(1, len(pieces) - 1)
            parts = [(first + at * step, piece) for at, piece in enumerate(pieces)]
        else:
            parts = [(last, whole_reply(answer))]
        return _Reply(
            parts=parts,
            entry=entry,
            outcome="undelivered" if fault in LOSING else "delivered",
            reset=fault == "reset",
            stalled=fault == "stall",
        )


class _Connection(asyncio.Protocol):
    """One client's connection: reads requests, one at a time, and writes their replies when they are due."""

    def __init__(self, replica: _Replica) -> None:
        self._replica = replica
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._transport: Any = None
        self._reply: _Reply | None = None
        self._at = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._replica.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._replica.connections.discard(self)
        reply, self._reply = self._reply, None
        if reply is not None and reply.entry is not None and reply.entry.outcome == "pending":
            self._replica.endpoint.ledger.settle(reply.entry, "gone")

    def cut(self) -> None:
        """Reset the connection."""
        if self._transport is not None:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._reply is None:
            self._read()

    def _read(self) -> None:
        """Take the next request out of the buffer, if it is there whole."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        size = int(headers.get("content-length") or 0)
        if len(self._buffer) < end + 4 + size:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
        method, path, *_ = (*lines[0].split(" "), "", "")
        path = path.partition("?")[0].rstrip("/")
        if method == "POST" and path.endswith("/chat/completions"):
            reply = self._replica.complete(body, headers.get("authorization", ""), self._loop.time())
        else:
            reply = _Reply(parts=[(0.0, self._other(method, path))])
        self._reply, self._at = reply, 0
        self._write()

    def _other(self, method: str, path: str) -> bytes:
        endpoint = self._replica.endpoint
        match method, path.split("/")[1:]:
            case "GET", [*_, "models"]:
                habits = endpoint.habits
                row = {"id": endpoint.model, "object": "model", "owned_by": habits.owner}
                return json_response({"object": "list", "data": [row | {"max_model_len": habits.context}]})
            case "GET", ["ledger"]:
                return json_response(endpoint.ledger.totals())
            case "GET", ["ledger", "entries"]:
                return json_response(endpoint.ledger.rows())
            case "POST", ["ledger", "clear"]:
                endpoint.ledger.clear()
                return json_response({})
            case "POST", ["replicas", number, ("stop" | "start") as what] if number.isdigit():
                act = endpoint.stop_replica if what == "stop" else endpoint.start_replica
                self._loop.call_soon(partial(asyncio.ensure_future, act(int(number))))
                return json_response({})
        return error_response(404, f"There is no {method} {path}.")

    def _write(self) -> None:
        """Write what is due of the reply; come back when the rest is."""
        reply = self._reply
        while reply is not None and self._transport is not None:
            if self._at == len(reply.parts):
                self._finish(reply)
                return
            due, part = reply.parts[self._at]
            if due > self._loop.time() + 1e-4:
                self._loop.call_at(due, self._write)
                return
            self._transport.write(part)
            self._at += 1

    def _finish(self, reply: _Reply) -> None:
        if reply.entry is not None:
            self._replica.endpoint.ledger.settle(reply.entry, reply.outcome)
        if reply.stalled:
            return  # nothing more is said on this connection until the client gives up
        self._reply = None
        if reply.reset:
            self._loop.call_later(0.01, self.cut)  # what was written has left by then
        elif self._buffer:
            self._read()
