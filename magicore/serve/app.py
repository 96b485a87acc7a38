"""The FastAPI application."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magicore import __version__
from magicore.api import Configuration, make_config
from magicore.config import RunConfig
from magicore.errors import InputError, MissingExtraError
from magicore.llms.base import LanguageModel
from reward_models.base import OutcomeRewardModel, ProcessRewardModel

if TYPE_CHECKING:
    from fastapi import FastAPI

    from magicore.serve.gateway import Gateway
    from magicore.serve.limits import Limits

_NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def require_serve() -> None:
    """Raise unless the packages of the gateway are there.

    Raises:
        MissingExtraError: They are not; says how to install them.
    """
    from importlib.util import find_spec

    for package in _NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(f"the gateway needs {package}: pip install 'magicore[serve]'")


def create_app(  # noqa: PLR0913 - a front door takes its options as keywords
    config: Configuration = None,
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    api_key: str | None = None,
    limits: Limits | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    log_json: str | Path | None = None,
    traces: bool = False,
    **settings: Any,
) -> FastAPI:
    """A gateway as an ASGI application; models are opened when it starts.

    Args:
        config: A configuration or a TOML file; the other arguments go over it.
        model, orm, prm: Names or objects, as in :func:`magicore.solve_batch`.
        api_key: The bearer key that every request but ``/health`` must carry. Without one, only requests to a loopback
            name are answered.
        limits: What is taken on.
        seed: The seed of requests without one. By default each gets a new one: asked twice, a question is answered
            twice. A configuration's ``seed`` counts too.
        out: A directory for the store, kept for the next start with the same settings; by default a temporary file.
        force: Take over a directory with other settings.
        log_json, traces: As in :func:`magicore.solve_batch`.
        **settings: Settings of :class:`~magicore.config.RunConfig` and options of methods (``k=8``), which hold for
            every request that says nothing else. ``prompts`` words the roles beside the solver, ``raw`` by default.

    Raises:
        MissingExtraError: FastAPI, uvicorn or prometheus-client is not installed.
        InputError: A setting is wrong.
    """
    require_serve()
    from magicore.serve.gateway import Gateway

    given = {
        name: value
        for name, value in (("model", model), ("orm", orm), ("prm", prm))
        if value is not None and not isinstance(value, str)
    }
    names = {name: value for name, value in (("model", model), ("orm", orm), ("prm", prm)) if isinstance(value, str)}
    labels = {name: str(getattr(value, "name", type(value).__name__)) for name, value in given.items()}
    set_in_file = _set_in(config)
    if "prompts" not in set_in_file and not isinstance(config, RunConfig):
        settings.setdefault("prompts", "raw")
    chosen = make_config(config, {**names, **labels, **settings})
    if seed is None and ("seed" in set_in_file or (isinstance(config, RunConfig) and config.seed)):
        seed = chosen.seed
    if api_key is not None and not api_key.strip():
        raise InputError("the key is empty; leave it out to serve without one")
    gateway = Gateway(
        chosen,
        limits=limits,
        seed=seed,
        out=None if out is None else Path(out),
        force=force,
        log_json=None if log_json is None else Path(log_json),
        traces=traces,
        given=given,
    )
    return _application(gateway, api_key)


def _set_in(config: Configuration) -> frozenset[str]:
    """The settings that a configuration file makes."""
    if not isinstance(config, str | Path):
        return frozenset()
    try:
        return frozenset(tomllib.loads(Path(config).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return frozenset()  # what is wrong with it is said where it is read


def _application(gateway: Gateway, api_key: str | None) -> FastAPI:
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    from magicore.serve import routes
    from magicore.serve.failures import Refusal
    from magicore.serve.gate import Gate

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with gateway.opened():
            yield

    app = FastAPI(
        title="magicore",
        version=__version__,
        description="Reward-guided refinement of language-model reasoning, as OpenAI's chat completions.",
        lifespan=lifespan,
        docs_url=None,  # both would load scripts from elsewhere
        redoc_url=None,
        exception_handlers={
            Refusal: routes.refused,
            RequestValidationError: routes.misread,
            HTTPException: routes.http_failure,
            Exception: routes.defect,
        },
    )
    app.state.gateway = gateway
    app.state.api_key = api_key
    app.include_router(routes.router)
    app.add_middleware(Gate, limits=gateway.limits, metrics=gateway.metrics, api_key=api_key)
    _without_422(app)
    return app


def _without_422(app: FastAPI) -> None:
    """Leave FastAPI's own validation error out of the OpenAPI document: 400 is what is answered."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        paths: Mapping[str, Mapping[str, Any]] = document["paths"]
        for operation in (operation for path in paths.values() for operation in path.values()):
            operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            document.get("components", {}).get("schemas", {}).pop(name, None)
        return document

    app.__dict__["openapi"] = openapi
