"""A scoring server for one reward model: the other end of :mod:`reward_models.contract`.

Requests that arrive while the model is busy are scored together with the next batch (:mod:`reward_models.batcher`); a
model that does its own I/O is awaited instead. Without a key only this machine is listened to, and only requests that
name it as their host are answered, so that no web page can reach the model through a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib.util
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from reward_models.base import RewardModel, fingerprint, requirements, usage
from reward_models.batcher import Batcher
from reward_models.contract import (
    MAX_BYTES,
    MAX_SOLUTIONS,
    ContractError,
    Kind,
    Score,
    ServedModel,
    answer_to_json,
    dumps,
    loads,
    model_to_json,
    request_from_json,
)
from reward_models.errors import MissingExtraError, RewardModelError, ScoringServerError
from reward_models.types import Solution

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_GRACE_S = 30
_RETRY_AFTER_S = 1
_DROPPED = 4
_REFUSED, _UNAUTHORISED, _FORBIDDEN, _LARGE, _MEDIA_TYPE, _UNPROCESSABLE, _BUSY, _FAILED, _STOPPING = (
    400, 401, 403, 413, 415, 422, 429, 500, 503,
)  # fmt: skip
_log = logging.getLogger(__name__)


class _Refusal(Exception):
    """A request that is answered with a failure."""

    def __init__(self, status: int, message: str, *, kind: str = "RequestRefused", retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"type": kind, "message": message, "retryable": retryable}}


class ScoringService:
    """One model behind the routes: reads requests, scores, writes answers.

    ``waiting`` counts the solutions that wait or are being scored.

    Args:
        model: The reward model.
        kind: ``outcome`` or ``process``.
        max_bytes: Largest request.
        max_solutions: Most solutions in a request.
        max_waiting: Most solutions that may wait; more are asked to come later.
    """

    def __init__(
        self,
        model: RewardModel,
        kind: Kind,
        *,
        max_bytes: int = MAX_BYTES,
        max_solutions: int = MAX_SOLUTIONS,
        max_waiting: int = 16 * MAX_SOLUTIONS,
    ) -> None:
        self.model = model
        self.kind = kind
        self.max_waiting = max_waiting
        self.served = ServedModel(
            model=model.name,
            kind=kind,
            fingerprint=fingerprint(model),
            aggregation=getattr(model, "aggregation", "product") if kind == "process" else None,
            requires=frozenset(requirements(model)) - {"generate"},
            max_solutions=max_solutions,
            max_bytes=max_bytes,
        )
        self.waiting = 0
        self._closing = False
        own: Callable[[Sequence[Solution]], Any] | None = getattr(model, "ascore", None)
        self._batcher: Batcher[Score] | None = Batcher(cast(Any, model)) if own is None else None
        self._ascore = own or cast("Batcher[Score]", self._batcher).ascore

    def describe(self) -> dict[str, Any]:
        """The answer to ``GET /v1/model``."""
        spent = usage(self.model)
        told = {name: getattr(spent, name) for name in ("prompt_tokens", "completion_tokens", "calls")}
        return model_to_json(self.served, told)

    async def answer(self, content: bytes) -> bytes:
        """The answer to ``POST /v1/score``.

        Raises:
            _Refusal: The request is wrong, comes too soon, or the model refuses or fails.
        """
        try:
            solutions = request_from_json(loads(content))
        except ContractError as error:
            raise _Refusal(_REFUSED, str(error)) from None
        if len(solutions) > self.served.max_solutions:
            raise _Refusal(
                _LARGE, f"{len(solutions)} solutions in a request; at most {self.served.max_solutions} are taken"
            )
        if self._closing:
            raise _Refusal(_STOPPING, "the server is stopping", retryable=True)
        if self.waiting and self.waiting + len(solutions) > self.max_waiting:
            raise _Refusal(_BUSY, f"{self.waiting} solutions are waiting already; come again later", retryable=True)
        self.waiting += len(solutions)
        try:
            scores = await self._ascore(solutions)
        except RewardModelError as error:
            raise _refused(error) from error
        finally:
            self.waiting -= len(solutions)
        return dumps(answer_to_json(self.served.model, self.kind, solutions, scores))

    def close(self) -> None:
        """Score what is waiting, then take nothing more."""
        self._closing = True
        if self._batcher is not None:
            self._batcher.close()


def _refused(error: RewardModelError) -> _Refusal:
    retryable = isinstance(error, ScoringServerError) and error.retryable
    status = _FAILED if isinstance(error, ScoringServerError) else _UNPROCESSABLE
    return _Refusal(status, str(error), kind=type(error).__name__, retryable=retryable)


def create_app(service: ScoringService, *, api_key: str | None = None) -> Starlette:
    """The routes of :mod:`reward_models.contract`.

    Args:
        service: The model.
        api_key: A bearer key that every request but ``/health`` must carry. Without one, only requests addressed to
            this machine by a loopback name are answered.

    Raises:
        MissingExtraError: Starlette (a part of FastAPI) is not installed.
    """
    require_serve()
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.routing import Route

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    def answer(body: bytes, status: int = 200) -> Response:
        headers = {"retry-after": str(_RETRY_AFTER_S)} if status == _BUSY else None
        return Response(body, status_code=status, media_type="application/json", headers=headers)

    async def refusal(_: Request, error: Exception) -> Response:
        assert isinstance(error, _Refusal)
        return answer(dumps(error.body), error.status)

    async def http_failure(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        said = _Refusal(error.status_code, f"{error.detail}; the routes are /health, /v1/model and /v1/score")
        return answer(dumps(said.body), error.status_code)

    async def defect(_: Request, error: Exception) -> Response:
        _log.error("scoring failed", exc_info=error)
        said = _Refusal(_FAILED, f"the reward model failed with {type(error).__name__}; the server's log says more")
        return answer(dumps(said.body), _FAILED)

    async def health(_: Request) -> Response:
        return answer(dumps({"status": "ok"}))

    async def model(request: Request) -> Response:
        _check_caller(request, api_key)
        return answer(dumps(service.describe()))

    async def score(request: Request) -> Response:
        _check_caller(request, api_key)
        return answer(await service.answer(await _read(request, service.served.max_bytes)))

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/model", model),
            Route("/v1/score", score, methods=["POST"]),
        ],
        exception_handlers={_Refusal: refusal, HTTPException: http_failure, Exception: defect},
        lifespan=lifespan,
    )


def run_server(
    service: ScoringService,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until interrupted or terminated; what has been accepted is answered first.

    Args:
        service: The model.
        host: Where to listen; another host than loopback needs a key.
        port: The port; 0 takes a free one.
        api_key: See :func:`create_app`.
        started: Called with the address once it is listened to.

    Raises:
        RewardModelError: The host is not loopback and there is no key, or it cannot be listened to.
        MissingExtraError: Starlette or uvicorn is not installed.
    """
    require_serve()
    import uvicorn

    if api_key is None and host not in LOOPBACK:
        raise RewardModelError(
            f"{host} can be reached from other machines, so a key is needed: --api-key-env names the variable with it"
        )
    config = uvicorn.Config(
        create_app(service, api_key=api_key), log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_S
    )
    listening = _listen(host, port)
    with listening:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listening.getsockname()[1]}")
        with contextlib.suppress(KeyboardInterrupt):  # raised again by uvicorn once it has stopped
            uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise RewardModelError(f"{host} port {port} cannot be listened to: {error}") from None


def _check_caller(request: Request, api_key: str | None) -> None:
    """The key, or without one that the request was addressed to this machine."""
    if api_key is None:
        if request.url.hostname not in LOOPBACK:
            raise _Refusal(_FORBIDDEN, "without a key this server answers only requests to localhost or 127.0.0.1")
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), api_key.encode()):
        raise _Refusal(_UNAUTHORISED, "the key is missing or wrong; send it as Authorization: Bearer KEY")


async def _read(request: Request, most: int) -> bytes:
    """The body, as far as it is no larger than ``most`` bytes; more of it is read and dropped, so that the answer
    arrives."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _Refusal(_MEDIA_TYPE, "the body must be JSON, with content-type application/json")
    body = bytearray()
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _DROPPED * most:
            break
        if size <= most:
            body += part
    if size > most:
        raise _Refusal(
            _LARGE, f"the request is larger than the {most} bytes that are taken; send fewer solutions at once"
        )
    return bytes(body)


def require_serve() -> None:
    """Raise unless the packages of the server are there.

    Raises:
        MissingExtraError: They are not; says how to install them.
    """
    for package in ("starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(f"serving a reward model needs {package}: pip install 'magicore[serve]'")
