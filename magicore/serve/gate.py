"""What every request passes before it reaches a route: the key, the size of its body, and the count of its answer."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magicore.serve.failures import Refusal, invalid
from magicore.serve.limits import Limits
from magicore.serve.metrics import Metrics
from magicore.serve.responding import refusal_response
from reward_models.server import LOOPBACK

_OPEN = frozenset({"/health"})
_PATHS = frozenset({"/health", "/metrics", "/openapi.json", "/v1/models", "/v1/chat/completions"})
_DROPPED = 4
"""Of a body that is too large so many times the limit is read and dropped, so that the answer arrives."""


class Gate:
    """The middleware.

    Without a key only requests that name this machine as their host are let in, so that no web page can reach the
    server through a browser.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics, api_key: str | None) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._key = api_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = path if path in _PATHS else "/v1/models/{model}" if path.startswith("/v1/models/") else "other"
                self._metrics.requested(named, message["status"])
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            if path not in _OPEN:
                self._check_caller(headers)
            body = await self._body(headers, receive)
        except Refusal as refusal:
            await refusal_response(refusal)(scope, receive, counted)
            return
        await self._app(scope, _replayed(body, receive), counted)

    def _check_caller(self, headers: Mapping[str, str]) -> None:
        if self._key is None:
            host = urlsplit(f"//{headers.get('host', '')}")
            if host.hostname not in LOOPBACK:
                raise Refusal(
                    403, "without a key this server answers only requests to localhost or 127.0.0.1", code="forbidden"
                )
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._key.encode()):
            raise Refusal(
                401,
                "the key is missing or wrong; send it as Authorization: Bearer KEY",
                kind="authentication_error",
                code="invalid_api_key",
            )

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The body, as far as it is not too large and comes in time."""
        most, seconds = self._limits.body_bytes, self._limits.body_s
        body = bytearray()
        size = 0
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise invalid("the request did not arrive whole")
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= most:
                        body += part
                    if size > _DROPPED * most or not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Refusal(408, f"the request did not arrive within {seconds:g} s", code="request_timeout") from None
        if size > most:
            raise Refusal(413, f"the request is larger than the {most} bytes that are taken", code="request_too_large")
        return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, then whatever comes: that the client leaves."""
    given = False

    async def again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
