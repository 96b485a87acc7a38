"""A chat completions server here whose every answer the test gives, for what the hostile endpoint never says."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer: a status and what is sent. ``break_after`` resets the connection after so many bytes; ``silent`` says
    nothing until the server is closed.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    break_after: int | None = None
    silent: bool = False

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def completion(*texts: str | None, usage: Body | bool | None = True, **choice: Any) -> Answer:
    """A normal answer, one choice a text; further keywords go into each choice (``finish_reason``, ``logprobs``)."""
    choices = [
        {"index": at, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}
        for at, text in enumerate(texts)
    ]
    if usage is True:
        usage = {"prompt_tokens": 10, "completion_tokens": sum(len((text or "").split()) for text in texts)}
    return Answer({"choices": choices, "usage": usage or None})


def refusal(message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Answer:
    """An error as OpenAI words it."""
    return Answer(
        {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}, status
    )


Rule = Callable[[Body], Answer]


class FakeEndpoint:
    """Keeps the requests it got in ``bodies`` and ``headers``, and answers by a rule or from a list."""

    def __init__(self, answers: Rule | Sequence[Answer]) -> None:
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models: Answer = Answer({"data": [{"id": "m", "owned_by": "vllm"}]})
        self.closing = threading.Event()
        self.port = 0
        self._answers = answers
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, path: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        with self._lock:
            self.paths.append(path)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            if path.endswith("/models"):
                return self.models
            body = json.loads(raw)
            self.bodies.append(body)
            if callable(self._answers):
                return self._answers(body)
            return self._answers[min(len(self.bodies), len(self._answers)) - 1]


@contextmanager
def serving(answers: Rule | Sequence[Answer]) -> Iterator[FakeEndpoint]:
    """A :class:`FakeEndpoint` for as long as the context lasts. The last answer of a list is given again and again."""
    endpoint = FakeEndpoint(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers.get("content-length", 0))))

        def do_GET(self) -> None:
            self._reply(b"")

        def _reply(self, raw: bytes) -> None:
            answer = endpoint.answer(self.path, dict(self.headers.items()), raw)
            if answer.silent:
                endpoint.closing.wait(30)
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.raw)))
            self.end_headers()
            self.wfile.write(answer.raw[: answer.break_after])
            if answer.break_after is not None:
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True

        def finish(self) -> None:
            if self.connection.fileno() >= 0:
                super().finish()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
