"""A running gateway for tests: the real application on a real port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import uvicorn

from magicore.serve import create_app


@contextmanager
def gateway(**options: Any) -> Iterator[str]:
    """``create_app(**options)`` behind uvicorn, in a thread; its address."""
    app = create_app(**options)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=20)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), app.state.gateway.failure
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def client(url: str, key: str = "none") -> Iterator[openai.OpenAI]:
    """OpenAI's client for a gateway, without retries of its own."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as found:
        yield found


def ask(url: str, content: str = "What is 3 plus 4?", **fields: Any) -> httpx2.Response:
    """One request for a chat completion."""
    body = {"model": "cot", "messages": [{"role": "user", "content": content}], **fields}
    return httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
