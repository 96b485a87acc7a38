"""JSON over HTTP to one or several servers of the same model: balanced, retried, bounded, every failure typed.

A request goes to the server with the least work outstanding. One that does not answer is left alone for a while, longer
each time, and its requests go to the others. Failures that may pass are retried with growing, jittered pauses and never
sooner than the server asks for. There is no limit on the whole of a call, only on silence.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from reward_models.errors import RewardModelError, ScoringServerError
from reward_models.names import NO_VARIABLE, is_variable
from reward_models.remote.retry_after import retry_after

_CONNECT_TIMEOUT_S = 20.0
_FIRST_REST_S = 1.0
_LONGEST_REST_S = 60.0
_QUOTE_LENGTH = 300
_LARGEST_ANSWER = 256 * 1024 * 1024
_TRIES_AT_FIRST = 2

_UNAUTHORISED, _FORBIDDEN, _TIMEOUT, _CONFLICT, _TOO_EARLY, _SLOW, _FAILED, _NOT_IMPLEMENTED = (
    401, 403, 408, 409, 425, 429, 500, 501,
)  # fmt: skip


class StatusError(ScoringServerError):
    """The server answered with a failure.

    Attributes:
        status: The HTTP status.
        body: What it said, parsed if it was JSON.
        retry_after: Seconds that it asks to wait, where it does.
    """

    def __init__(
        self, message: str, *, model: str, status: int, body: Any = None, retry_after: float | None = None
    ) -> None:
        passing = status in (_TIMEOUT, _CONFLICT, _TOO_EARLY, _SLOW) or (
            status >= _FAILED and status != _NOT_IMPLEMENTED
        )
        super().__init__(message, model=model, retryable=passing)
        self.status = status
        self.body = body
        self.retry_after = retry_after


class UnreachableError(ScoringServerError):
    """No answer came: nothing listens, the connection broke, or the server fell silent."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model, retryable=True)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How failures are borne.

    The n-th retry waits between half and all of ``first_s * 2**(n - 1)``, at most ``longest_s``, and not less than the
    server asks for. Being asked to slow down does not count towards ``attempts``; it may happen ``slowdowns`` times.

    Attributes:
        attempts: Calls made at the most for one request.
        slowdowns: How often a server may ask to slow down.
        first_s, longest_s: Bounds of the pauses, in seconds.
        idle_s: Seconds without a sign of life after which a call is given up.
    """

    attempts: int = 6
    slowdowns: int = 30
    first_s: float = 0.5
    longest_s: float = 60.0
    idle_s: float = 600.0


@dataclass(eq=False)
class _Replica:
    """One server: its work outstanding, and until when it is left alone."""

    url: str
    outstanding: int = 0
    rests_until: float = 0.0
    rest_s: float = 0.0
    answered: bool = False


@dataclass
class _Connections:
    """What belongs to one event loop."""

    client: httpx2.AsyncClient
    slots: asyncio.Semaphore


class Transport:
    """Connections to the replicas of one scoring server.

    Args:
        urls: Where they are, without the engine's prefix.
        model: The reward model's name, for error messages.
        api_key_env: The environment variable that holds the bearer key; ``None`` sends none.
        concurrency: Requests in flight at the most, for each replica.
        patience: How failures are borne.
        sleep, clock: For tests.

    Raises:
        RewardModelError: The variable is not set.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        model: str,
        api_key_env: str | None = None,
        concurrency: int = 16,
        patience: Patience | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not urls:
            raise ValueError("a transport needs at least one URL")
        self.model = model
        self.urls = tuple(urls)
        self.patience = patience or Patience()
        self._key = _read_key(api_key_env, model)
        self._concurrency = concurrency * len(urls)
        self._replicas = [_Replica(url) for url in urls]
        self._loops: dict[asyncio.AbstractEventLoop, _Connections] = {}
        self._lock = threading.Lock()
        self._draw = random.Random()
        self._sleep = sleep
        self._clock = clock
        self.calls = 0
        self.close = weakref.finalize(self, _close, self._loops)
        """Close every connection, in whatever event loop; done by itself when the transport is no longer used."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.urls)})"

    async def post(self, path: str, body: Mapping[str, Any], *, weight: int = 1) -> Any:
        """The JSON answer of the least busy server.

        Args:
            path: What follows the server's URL, ``/pooling``.
            body: The JSON to send.
            weight: How much work it is, in tokens or any unit used throughout.

        Raises:
            StatusError: The server refused it, or kept failing.
            UnreachableError: No server answered.
            ScoringServerError: The answer cannot be read.
        """
        content = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
        async with self._connections().slots:
            return await self._persist(path, content, weight)

    async def get_each(self, path: str) -> list[Any]:
        """The JSON answer of every server, in the order of the URLs.

        Raises:
            ScoringServerError: As :meth:`post`; one server is enough.
        """
        return [await self._persist(path, None, 0, only=replica) for replica in self._replicas]

    async def aclose(self) -> None:
        """Close the connections of the running loop; those of loops that are gone went with them."""
        found = self._loops.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.client.aclose()

    async def _persist(self, path: str, content: bytes | None, weight: int, only: _Replica | None = None) -> Any:
        failures = slowdowns = 0
        passed_over: list[_Replica] = []
        while True:
            replica = self._take(weight, passed_over, only)
            try:
                return await self._once(replica, path, content)
            except ScoringServerError as caught:
                error = caught
            finally:
                self._release(replica, weight)
            passed_over.append(replica)
            if isinstance(error, UnreachableError) and only is None and len(passed_over) < len(self._replicas):
                continue
            passed_over = []
            asked = error.retry_after if isinstance(error, StatusError) else None
            if asked is None:
                failures += 1
            else:
                slowdowns += 1
            if not self._may_retry(error, failures, slowdowns):
                raise error
            await self._sleep(self._pause(failures + slowdowns, asked))

    def _may_retry(self, error: ScoringServerError, failures: int, slowdowns: int) -> bool:
        most = self.patience.attempts
        if isinstance(error, UnreachableError) and not any(replica.answered for replica in self._replicas):
            most = min(most, _TRIES_AT_FIRST)  # most likely a wrong address: say so soon
        return error.retryable and failures < most and slowdowns <= self.patience.slowdowns

    def _pause(self, attempt: int, asked: float | None) -> float:
        pause = min(self.patience.longest_s, self.patience.first_s * 2.0 ** (attempt - 1))
        pause *= 0.5 + 0.5 * self._draw.random()
        return pause if asked is None else asked + 0.1 * pause

    def _take(self, weight: int, passed_over: Sequence[_Replica], only: _Replica | None) -> _Replica:
        """The least busy server that is not resting; if all are, the one whose rest ends first."""
        with self._lock:
            now = self._clock()
            left = [replica for replica in self._replicas if replica not in passed_over]
            awake = [replica for replica in left if replica.rests_until <= now]
            if only is not None:
                chosen = only
            elif awake:
                chosen = min(awake, key=lambda replica: replica.outstanding)
            else:
                chosen = min(left, key=lambda replica: replica.rests_until)
            chosen.outstanding += weight
            return chosen

    def _release(self, replica: _Replica, weight: int) -> None:
        with self._lock:
            replica.outstanding -= weight

    async def _once(self, replica: _Replica, path: str, content: bytes | None) -> Any:
        """One call."""
        self.calls += 1
        headers = {"accept": "application/json"}
        if content is not None:
            headers["content-type"] = "application/json"
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        url = replica.url + path
        try:
            client = self._connections().client
            method = "GET" if content is None else "POST"
            async with client.stream(method, url, content=content, headers=headers) as response:
                body = await self._read(response, url)
        except (httpx2.RequestError, httpx2.StreamError) as error:
            self._rest(replica)
            raise UnreachableError(self._why_unreachable(error, url), model=self.model) from None
        replica.answered = True
        replica.rest_s = replica.rests_until = 0.0
        if not response.is_success:
            raise self._failure(response, body, url)
        try:
            return json.loads(body)
        except ValueError:
            raise ScoringServerError(
                f"{url} answered something that is no JSON", model=self.model, retryable=True
            ) from None

    async def _read(self, response: httpx2.Response, url: str) -> bytes:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _LARGEST_ANSWER:
                raise ScoringServerError(
                    f"{url} answers with more than {_LARGEST_ANSWER >> 20} MiB: these are no scores; does it give a "
                    "vector for every token?",
                    model=self.model,
                )
        return bytes(body)

    def _rest(self, replica: _Replica) -> None:
        with self._lock:
            replica.rest_s = min(_LONGEST_REST_S, replica.rest_s * 2 or _FIRST_REST_S)
            replica.rests_until = self._clock() + replica.rest_s

    def _failure(self, response: httpx2.Response, content: bytes, url: str) -> StatusError:
        status = response.status_code
        body: Any = None
        try:
            body = json.loads(content)
            words = _message(body)
        except ValueError:
            words = content[:_QUOTE_LENGTH].decode("utf-8", "replace")
        if self._key:
            words = words.replace(self._key, "***")
        words = " ".join(words.split())
        quoted = f" ({words[:_QUOTE_LENGTH]})" if words else ""
        if status == _UNAUTHORISED:
            said = f"{url} wants a key, or refuses the one it got; api_key_env names the variable that holds it"
        elif status == _FORBIDDEN:
            said = f"{url} does not let this key score{quoted}"
        elif status == _SLOW:
            said = f"{url} asks to slow down{quoted}"
        elif response.is_redirect:
            said = f"{url} redirects to {response.headers.get('location', 'nowhere')}; give that address instead"
        elif status >= _FAILED:
            said = f"{url} failed with status {status}{quoted}"
        else:
            said = f"{url} refused the request with status {status}{quoted}"
        wait = retry_after(response.headers)
        return StatusError(said, model=self.model, status=status, body=body, retry_after=wait)

    def _why_unreachable(self, error: Exception, url: str) -> str:
        cause: BaseException | None = error
        words = ""
        while cause is not None:
            words = str(cause) or words
            if isinstance(cause, ConnectionRefusedError) or "refused" in words.lower():
                return f"{url} refuses the connection; is the server running?"
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx2.ConnectTimeout):
            return f"{url} does not answer; check the address and the network"
        if isinstance(error, httpx2.TimeoutException):
            return f"{url} sent nothing for {self.patience.idle_s:g} s"
        if isinstance(error, httpx2.ConnectError):
            return f"no connection to {url} ({' '.join(words.split())[:120]}); check the address"
        return f"the connection to {url} broke ({' '.join(words.split())[:120] or type(error).__name__})"

    def _connections(self) -> _Connections:
        """Those of the running event loop: a connection cannot outlive the loop that made it."""
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            for old in [old for old in self._loops if old.is_closed()]:
                del self._loops[old]
            idle = self.patience.idle_s
            client = httpx2.AsyncClient(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30.0),
                timeout=httpx2.Timeout(connect=min(_CONNECT_TIMEOUT_S, idle), read=idle, write=idle, pool=None),
                trust_env=not all(map(_is_loopback, self.urls)),
            )
            found = self._loops[loop] = _Connections(client, asyncio.Semaphore(self._concurrency))
        return found


def _close(loops: dict[asyncio.AbstractEventLoop, _Connections]) -> None:
    while loops:
        loop, connections = loops.popitem()
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(connections.client.aclose(), loop)


def _read_key(variable: str | None, model: str) -> str:
    if variable is None:
        return ""
    if not is_variable(variable):
        raise RewardModelError(NO_VARIABLE, model=model)
    key = os.environ.get(variable, "").strip()
    if not key:
        raise RewardModelError(f"api_key_env names {variable}, which is not set", model=model)
    return key


def _message(body: Any) -> str:
    """The words in a failure's JSON, whichever of the usual shapes it has."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        for found in (
            inner.get("message") if isinstance(inner, dict) else inner,
            body.get("message"),
            body.get("detail"),
        ):
            if found:
                return found if isinstance(found, str) else json.dumps(found)
    return json.dumps(body)


def _is_loopback(url: str) -> bool:
    """Whether the address is this machine's own, which no proxy leads to."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
