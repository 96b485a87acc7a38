"""Answering a request, whole or as a stream, for as long as its client is there.

The client is watched while the work goes on: when it leaves, the work is cancelled, and nothing more is spent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from magicore import __version__
from magicore.serve.answers import choice_body, cost_body, usage_body
from magicore.serve.failures import CLIENT_GONE, Refusal, refusal_of
from magicore.serve.gateway import Answered, Asked, Found, Gateway
from magicore.serve.progress import Note

KEEP_ALIVE_S = 10.0
"""A stream that has nothing to say says so after so many seconds."""
FINGERPRINT = f"magicore-{__version__}"
_KEEP_ALIVE = b": working\n\n"
_DONE = b"data: [DONE]\n\n"


def dumps(body: Mapping[str, Any]) -> bytes:
    """JSON in ASCII, so that whatever a model or a client wrote can be sent."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def json_response(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(dumps(body), status_code=status, media_type="application/json", headers=dict(headers or {}))


def refusal_response(refusal: Refusal) -> Response:
    """An error."""
    return json_response(refusal.body, refusal.status, refusal.headers)


class Responding(Response):
    """The answer to a chat completion: does the work when it is called."""

    def __init__(self, gateway: Gateway, asked: Asked) -> None:
        super().__init__()
        self._gateway = gateway
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._gateway.answer(self._asked))
        gone = asyncio.create_task(_client_gone(receive))
        try:
            if self._asked.request.stream:
                await self._stream(work, gone, scope, receive, send)
            else:
                await self._whole(work, gone, scope, receive, send)
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _whole(
        self, work: asyncio.Task[Answered], gone: asyncio.Task[None], scope: Scope, receive: Receive, send: Send
    ) -> None:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            response = Response(status_code=CLIENT_GONE)
        else:
            try:
                response = json_response(completion_body(work.result()))
            except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
                response = refusal_response(refusal_of(error))
        await response(scope, receive, send)

    async def _stream(
        self, work: asyncio.Task[Answered], gone: asyncio.Task[None], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Nothing is sent before something was done, so that a request that fails at once gets its status."""
        asked = self._asked
        pieces = Pieces(asked)
        begun = False

        async def say(content: bytes, *, more: bool = True) -> None:
            nonlocal begun
            if not begun:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            await send({"type": "http.response.body", "body": content, "more_body": more})

        while True:
            note = asyncio.create_task(asked.account.notes.get())
            try:
                await asyncio.wait({work, gone, note}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not note.done():
                    note.cancel()
            if gone.done():
                if not begun:
                    await Response(status_code=CLIENT_GONE)(scope, receive, send)
                return
            if note.done() and not note.cancelled():
                await say(pieces.progress(note.result()))
            elif work.done():
                break
            else:
                await say(_KEEP_ALIVE)
        try:
            for piece in pieces.answer(work.result()):
                await say(piece)
        except Exception as error:  # noqa: BLE001 - as above
            refusal = refusal_of(error)
            if not begun:
                await refusal_response(refusal)(scope, receive, send)
                return
            await say(_event(refusal.body))
        await say(_DONE, more=False)


_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def _client_gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Pieces:
    """The pieces of a stream: what is done as reasoning, then each answer with its end, then the usage."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        request = asked.request
        self._tells = request.magicore is None or request.magicore.progress
        self._usage = request.stream_options is not None and bool(request.stream_options.include_usage)
        self._opened: set[int] = set()

    def progress(self, note: Note) -> bytes:
        """A line of progress."""
        if not self._tells:
            return _KEEP_ALIVE
        return self._delta(note.choice, {"reasoning_content": note.text})

    def answer(self, answered: Answered) -> Iterator[bytes]:
        """Every answer, and what they cost."""
        for found in answered.found:
            if found.content.thinking:
                yield self._delta(found.index, {"reasoning_content": found.content.thinking})
            yield self._delta(found.index, {"content": found.content.text})
            end = {"finish_reason": found.content.finish, "magicore": _choice(found, answered)}
            yield self._piece([{"index": found.index, "delta": {}, "logprobs": None, **end}])
        if self._usage:
            usage = {"usage": usage_body(answered.spent.models), "magicore": _cost(answered)}
            yield self._piece([], usage)

    def _delta(self, index: int, delta: dict[str, Any]) -> bytes:
        if index not in self._opened:
            self._opened.add(index)
            delta = {"role": "assistant", **delta}
        return self._piece([{"index": index, "delta": delta, "logprobs": None, "finish_reason": None}])

    def _piece(self, choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> bytes:
        body = _head(self._asked, "chat.completion.chunk") | {"choices": choices}
        if self._usage:
            body["usage"] = None
        return _event(body | (more or {}))


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + dumps(body) + b"\n\n"


def completion_body(answered: Answered) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    return _head(answered.asked, "chat.completion") | {
        "choices": [_whole_choice(found, answered) for found in answered.found],
        "usage": usage_body(answered.spent.models),
        "magicore": _cost(answered),
    }


def _whole_choice(found: Found, answered: Answered) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": found.content.text, "refusal": None}
    if found.content.thinking:
        message["reasoning_content"] = found.content.thinking
    return {
        "index": found.index,
        "message": message,
        "logprobs": None,
        "finish_reason": found.content.finish,
        "magicore": _choice(found, answered),
    }


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": asked.id,
        "object": kind,
        "created": asked.created,
        "model": asked.request.model,
        "system_fingerprint": FINGERPRINT,
    }


def _choice(found: Found, answered: Answered) -> dict[str, Any]:
    return choice_body(found.result, found.content, seed=found.seed, warnings=answered.warnings)


def _cost(answered: Answered) -> dict[str, Any]:
    return cost_body(answered.spent, method=answered.asked.method.name, seed=answered.asked.seed)
