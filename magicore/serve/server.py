"""Serving the gateway with uvicorn, until it is interrupted or terminated."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

from magicore.errors import InputError
from magicore.serve.app import require_serve
from reward_models.server import LOOPBACK

if TYPE_CHECKING:
    from fastapi import FastAPI

DEFAULT_PORT = 8000
_LAST_S = 5
"""Seconds after the grace period in which requests that still run are cancelled."""


def run_server(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve an application of :func:`magicore.serve.create_app`.

    Terminated or interrupted, it takes no further connection, and requests in work have ``limits.grace_s`` seconds.

    Args:
        app: The application.
        host: Where to listen; another host than loopback needs a key.
        port: The port; 0 takes a free one.
        started: Called with the address once it is listened to.

    Raises:
        InputError: The host is not loopback and there is no key, or it cannot be listened to.
        MagicoreError, RewardModelError: A model cannot be opened.
    """
    require_serve()
    import uvicorn

    if app.state.api_key is None and host not in LOOPBACK:
        raise InputError(f"{host} can be reached from other machines, so a key is needed: --api-key-env names it")
    gateway = app.state.gateway

    class Server(uvicorn.Server):
        """Tells the gateway when it is asked to stop, and the caller when it is up."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            gateway.stop()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                started(f"http://{shown}:{listening.getsockname()[1]}")

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=int(gateway.limits.grace_s) + _LAST_S,
        lifespan="on",
    )
    shown = f"[{host}]" if ":" in host else host
    with _listen(host, port) as listening, contextlib.suppress(KeyboardInterrupt), _terminated_as_interrupted():
        try:
            Server(config).run(sockets=[listening])  # signals are raised again once it has stopped
        except SystemExit:
            if gateway.failure is None:
                raise
    if gateway.failure is not None:
        raise gateway.failure


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end in a KeyboardInterrupt, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise InputError(f"{host} port {port} cannot be listened to: {error}") from None
