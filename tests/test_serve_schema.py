"""Schemathesis against the gateway's OpenAPI document: whatever is sent, the answer is one that the document names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateways import gateway
from magicore.llms.scripted import ScriptedModel
from magicore.serve import Limits

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def document() -> Iterator[Any]:
    """The document of a running gateway whose model answers everything at once."""
    model = ScriptedModel(lambda request, index: "Step 1: so\nThe answer is 1.", logprobs=True)
    limits = Limits(completions=100)
    with gateway(model=model, orm="likelihood", prm="arithmetic", k=2, iterations=1, limits=limits) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


OPERATIONS = [
    ("/v1/chat/completions", "POST"),
    ("/v1/models", "GET"),
    ("/v1/models/{name}", "GET"),
    ("/health", "GET"),
    ("/metrics", "GET"),
]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_answer_is_one_that_the_document_names(document: Any, path: str, method: str, mode: Any) -> None:
    operation = document[path][method]
    examples = 60 if method == "POST" else 10
    statuses: set[int] = set()

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if isinstance(case.body, dict) and isinstance(case.body.get("model"), str) and len(case.body["model"]) % 3:
            case.body["model"] = "weighted-self-consistency:k=2"  # made-up names never get further
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    try:
        send()
    except Unsatisfiable:  # there is nothing to get wrong
        assert mode is schemathesis.GenerationMode.NEGATIVE
    assert max(statuses, default=0) < 500
    if (method, mode) == ("POST", schemathesis.GenerationMode.POSITIVE):
        assert {200, 400, 404} <= statuses


def test_the_document_is_openai_s(document: Any) -> None:
    paths = document.raw_schema["paths"]
    assert {path for path, _ in OPERATIONS} == set(paths)
    responses = paths["/v1/chat/completions"]["post"]["responses"]
    assert {"200", "400", "401", "404", "413", "429", "500", "502", "503", "504"} <= set(responses)
    assert "422" not in responses and responses["429"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/ErrorBody"
    }
