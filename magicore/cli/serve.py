"""``magicore serve``: an OpenAI-compatible server, where the model name picks the method."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.console import Console

from magicore.cli import options as opt

KEY_VARIABLE = "MAGICORE_API_KEY"


def serve(
    model: opt.Model = None,
    orm: opt.Orm = None,
    prm: opt.Prm = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; other than loopback needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            help=f"Environment variable with the key that clients must send; {KEY_VARIABLE} where that is set.",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option("--calibration", help="A saved calibration file that questions are routed by."),
    ] = None,
    out: opt.Out = None,
    cache: opt.Cache = None,
    k: opt.K = None,
    iterations: opt.Iterations = None,
    router: opt.Router = None,
    option: opt.MethodOption = None,
    kind: opt.Kind = None,
    config: opt.Config = None,
    role_model: opt.RoleModel = None,
    prompts: opt.Prompts = None,
    temperature: opt.Temperature = None,
    top_p: opt.TopP = None,
    max_tokens: opt.MaxTokens = None,
    aggregation: opt.Aggregation = None,
    duplicates: opt.Duplicates = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of requests without one; by default each gets a new one.")
    ] = None,
    deterministic: opt.Deterministic = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    placement: opt.Placement = None,
    budget: opt.BudgetOption = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests worked on at once.")] = 64,
    waiting: Annotated[int, typer.Option("--waiting", min=0, help="Requests that may wait; more get a 429.")] = 1024,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Bytes of a request at the most.")] = 4 * 2**20,
    max_choices: Annotated[int, typer.Option("--max-choices", min=1, help="The largest n.")] = 16,
    max_completions: Annotated[
        int, typer.Option("--max-completions", min=1, help="Completions that a request may take at the most.")
    ] = 1000,
    grace: Annotated[
        float, typer.Option("--grace", help="Seconds that requests in work have left when it is stopped.")
    ] = 30.0,
    force: opt.Force = False,
    log_json: opt.LogJson = None,
    otel: opt.Traces = False,
) -> None:
    """Serve /v1/chat/completions in front of any model; the model name picks the method.

    model="weighted-self-consistency:k=8" is a method with options, which may also stand in the request's `magicore`
    object, beside the answer's kind: {"magicore": {"kind": "number", "k": 8}}. --budget problem.tokens=N and the like
    limit each request, run.* all of them.
    """
    from magicore.errors import InputError
    from magicore.serve.app import create_app, require_serve
    from reward_models.server import LOOPBACK

    require_serve()
    from magicore.serve.limits import Limits
    from magicore.serve.server import run_server

    key = opt.named_key(api_key_env) if api_key_env is not None else os.environ.get(KEY_VARIABLE, "").strip() or None
    if key is None and host not in LOOPBACK:
        raise InputError(
            f"{host} can be reached from other machines, so a key is needed: set {KEY_VARIABLE}, or name its variable "
            "by --api-key-env"
        )
    settings: dict[str, Any] = opt.given(
        {
            "model": model,
            "orm": orm,
            "prm": prm,
            "calibration": calibration,
            "k": k,
            "iterations": iterations,
            "router": router,
            "kind": kind,
            "role_models": opt.pairs(role_model, "--role-model"),
            "prompts": prompts,
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "aggregation": aggregation,
            "duplicates": duplicates,
            "seed": seed,
            "deterministic": deterministic,
            "device": device,
            "dtype": dtype,
            "placement": placement,
            "cache": cache,
            "budget": opt.numbers(budget, "--budget"),
        }
    )
    settings |= opt.pairs(option, "--option") or {}
    limits = Limits(
        concurrency=concurrency,
        waiting=waiting,
        body_bytes=max_body,
        choices=max_choices,
        completions=max_completions,
        grace_s=grace,
    )
    app = create_app(
        config, api_key=key, limits=limits, out=out, force=force, log_json=log_json, traces=otel, **settings
    )
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    methods = ", ".join(app.state.gateway.methods())

    def started(url: str) -> None:
        console.print(f"serving at {url}/v1; models: {methods}", markup=False)

    run_server(app, host=host, port=port, started=started)
    console.print("stopped")
