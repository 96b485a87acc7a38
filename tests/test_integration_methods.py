"""Every method and variant against a real server and with the embedded model: it ends, and books every token.

A proxy in front of the server adds up the usage that the server states in its replies.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

import magicore
from fake_servers import Answer, Call, serving
from magicore import Run
from magicore.llms.base import Generation, LanguageModel, Request
from magicore.llms.registry import open_model
from magicore.types import Usage
from servers import Server
from test_methods_contract import EVERY

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

QUESTIONS = 4
MAX_TOKENS = 24


class Proxy:
    """Passes requests on, and adds up what the server says it served."""

    def __init__(self, server: Server) -> None:
        self.spent = Usage()
        self._base = server.url.removesuffix("/v1")
        self._lock = threading.Lock()

    def __call__(self, call: Call) -> Answer:
        reply = httpx2.post(f"{self._base}{call.path}", json=call.body, timeout=600, trust_env=False)
        body = reply.json()
        usage = body.get("usage") if reply.status_code == httpx2.codes.OK else None
        if usage is not None:
            with self._lock:
                self.spent += Usage(prompt=usage["prompt_tokens"], completion=usage["completion_tokens"], calls=1)
        return Answer(body, status=reply.status_code)


class Counted:
    """A model that adds up what it brings."""

    def __init__(self, model: LanguageModel) -> None:
        self.name, self.fingerprint, self.traits = model.name, model.fingerprint, getattr(model, "traits", None)
        self.spent = Usage()
        self._model = model

    async def generate(self, request: Request) -> Generation:
        generation = await self._model.generate(request)
        self.spent = sum((one.usage for one in generation.completions), self.spent)
        return generation

    async def aclose(self) -> None:
        """The model stays open for the next test."""


def run(name: str, options: dict[str, Any], model: Any, data: Path) -> Run:
    finished = magicore.solve_batch(
        str(data / "benchmarks" / "gsm8k.jsonl"),
        limit=QUESTIONS,
        model=model,
        method=name,
        orm="random",
        prm="random",
        max_tokens=MAX_TOKENS,
        progress=False,
        **options,
    )
    assert [result.stop for result in finished.results if result.error is not None] == []
    assert len(finished.results) == QUESTIONS
    return finished


def booked(finished: Run) -> Usage:
    return sum((entry.usage for result in finished.results for entry in result.usage), Usage())


@EVERY
def test_against_vllm(name: str, options: dict[str, Any], vllm_server: Server, shared_data: Path) -> None:
    proxy = Proxy(vllm_server)
    with serving(proxy) as front:
        finished = run(name, options, f"openai:{vllm_server.model}@{front.url}/v1", shared_data)
    assert booked(finished) == proxy.spent and proxy.spent.calls > 0


@pytest.fixture(scope="module")
def embedded() -> LanguageModel:
    return open_model("embedded")


@EVERY
def test_with_the_embedded_model(
    name: str, options: dict[str, Any], embedded: LanguageModel, shared_data: Path
) -> None:
    counted = Counted(embedded)
    finished = run(name, options, counted, shared_data)
    assert booked(finished) == counted.spent and counted.spent.calls > 0
