"""A small HTTP server on a real socket, answering by a function: what the tests put in place of a scoring server."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """A request that came in."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]
    client: tuple[str, int]


@dataclass(frozen=True)
class Answer:
    """What goes out: JSON or raw bytes, or nothing but a reset connection."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False


Respond = Callable[[Call], Answer]


class FakeServer:
    """Collects the calls and answers them, each on a thread of its own."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(length)
                headers = {key.lower(): value for key, value in self.headers.items()}
                call = Call(self.command, self.path, json.loads(raw) if raw else None, headers, self.client_address)
                with outer._lock:
                    outer.calls.append(call)
                found = outer.respond(call)
                if found.reset:
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                    self.connection.close()
                    return
                content = found.body if isinstance(found.body, bytes) else json.dumps(found.body).encode()
                self.send_response(found.status)
                for key, value in found.headers.items():
                    self.send_header(key, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:  # a connection that the test has reset
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def paths(self) -> list[str]:
        return [call.path for call in self.calls]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(respond: Respond) -> Iterator[FakeServer]:
    """A server for the length of a block."""
    server = FakeServer(respond)
    try:
        yield server
    finally:
        server.close()
