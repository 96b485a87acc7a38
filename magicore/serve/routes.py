"""The routes, and what is answered where a request does not get through."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magicore.serve.failures import Refusal, invalid, refusal_of
from magicore.serve.gateway import Gateway
from magicore.serve.responding import Responding, json_response, refusal_response
from magicore.serve.wire import ChatCompletion, ChatRequest, ErrorBody, ModelBody, ModelList, Unsupported

log = logging.getLogger(__name__)
router = APIRouter()

_ROUTES = "/v1/chat/completions, /v1/models, /health, /metrics and /openapi.json"
_FAILURES = {
    400: "The request is wrong.",
    401: "The key is missing or wrong.",
    403: "Without a key the server answers only requests to this machine.",
    404: "There is no such model.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    429: "Too many requests, here or at the model's server, or a budget is used up.",
    500: "A defect.",
    502: "The model's server failed, or refused the request or its key.",
    503: "The model's server cannot be reached, or this one is being stopped.",
    504: "The model's server did not answer in time.",
}


def _documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody, "description": _FAILURES[status]} for status in statuses}


def _gateway(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


@router.post(
    "/v1/chat/completions",
    summary="Answer a conversation by a method",
    response_class=Response,
    responses={
        200: {
            "model": ChatCompletion,
            "description": "The answer; with stream: true as server-sent events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **_documented(*_FAILURES),
    },
)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """The model's name picks the method; the messages go to the solver unchanged."""
    gateway = _gateway(request)
    return Responding(gateway, gateway.accept(body))


@router.get(
    "/v1/models",
    summary="The methods that this server can run",
    response_class=Response,
    responses={200: {"model": ModelList, "description": "One model a method."}, **_documented(401, 403)},
)
async def models(request: Request) -> Response:
    """Methods whose reward models are there."""
    gateway = _gateway(request)
    data = [_model(name, summary, gateway.created) for name, summary in gateway.methods().items()]
    return json_response({"object": "list", "data": data})


@router.get(
    "/v1/models/{name:path}",
    summary="One method, with or without options",
    response_class=Response,
    responses={200: {"model": ModelBody, "description": "It can be run."}, **_documented(400, 401, 403, 404)},
)
async def model(name: str, request: Request) -> Response:
    """Says whether a model's name, options included, can be used."""
    gateway = _gateway(request)
    method = gateway.method(name)
    return json_response(_model(name, gateway.methods()[method.name], gateway.created))


@router.get("/health", summary="Whether requests are taken", response_class=Response, responses=_documented(503))
async def health(request: Request) -> Response:
    """``ok``, or 503 while the server is being stopped."""
    stopping = _gateway(request).stopping
    return json_response({"status": "stopping" if stopping else "ok"}, 503 if stopping else 200)


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response, responses=_documented(401, 403))
async def metrics(request: Request) -> Response:
    """The text exposition format."""
    return Response(_gateway(request).metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


def _model(name: str, summary: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "magicore", "description": summary}


async def refused(_: Request, error: Exception) -> Response:
    """A request that was refused on purpose."""
    return refusal_response(refusal_of(error))


async def misread(request: Request, error: Exception) -> Response:
    """A request that is no chat: the first thing that is wrong with it."""
    assert isinstance(error, RequestValidationError)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and request.method == "POST":
        return refusal_response(invalid("the body must be JSON, with content-type application/json"))
    return refusal_response(_first_of(error.errors()))


def _first_of(errors: Any) -> Refusal:
    found = errors[0]
    places = [str(part) for part in found.get("loc", ()) if part != "body"]
    where = [part for part in places if part.isalnum() or part.isidentifier()]  # others are names of validators
    if found["type"] == "json_invalid":
        return invalid(f"the body is not JSON: {found.get('ctx', {}).get('error', 'it cannot be read')}")
    why = found.get("ctx", {}).get("error")
    if isinstance(why, Unsupported):
        return invalid(str(why), param=why.field, code="unsupported_parameter")
    param = ".".join(where) or None
    if found["type"] == "extra_forbidden":
        return invalid(f"there is no field {param} here; leave it out", param=param, code="unknown_parameter")
    said = str(why) if isinstance(why, ValueError) else found["msg"]
    return invalid(f"{param}: {said}" if param else said, param=param)


async def http_failure(_: Request, error: Exception) -> Response:
    """No such route or method."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_value")
    said = f"{error.detail}; the routes are {_ROUTES}"
    response = refusal_response(Refusal(error.status_code, said, code=code))
    if error.headers and "allow" in {name.lower() for name in error.headers}:
        response.headers["allow"] = next(v for k, v in error.headers.items() if k.lower() == "allow")
    return response


async def defect(_: Request, error: Exception) -> Response:
    """Something that should not happen."""
    log.error("a request failed", exc_info=error)
    return refusal_response(refusal_of(error))
