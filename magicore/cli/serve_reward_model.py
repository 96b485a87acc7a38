"""``magicore serve-reward-model``: one machine scores for many."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from magicore.cli import options as opt


def serve_reward_model(
    name: Annotated[str, typer.Argument(help="A reward model; see `magicore list`.")],
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; other than loopback needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", help="Environment variable with the key that clients must send.")
    ] = None,
    kind: opt.RewardKind = None,
    model: opt.Model = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    config: opt.Config = None,
) -> None:
    """Serve a reward model over HTTP; use it elsewhere as NAME@http://HOST:PORT.

    Requests that come in while the model is busy are scored together. The contract is described in
    reward_models/contract.py: POST /v1/score, GET /v1/model, GET /health.
    """
    from magicore.cli.reward_model import client_name, open_named
    from magicore.errors import InputError
    from reward_models.server import LOOPBACK, ScoringService, require_serve, run_server

    require_serve()
    key = None
    if api_key_env is not None:
        key = opt.named_key(api_key_env)
    elif host not in LOOPBACK:
        raise InputError(f"{host} can be reached from other machines, so a key is needed: name it by --api-key-env")
    settings = opt.given({"model": model, "device": device, "dtype": dtype})
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    with console.status(f"opening {name}"):
        opened, found = open_named(name, kind, settings, config)
    service = ScoringService(opened, found)
    run_server(
        service,
        host=host,
        port=port,
        api_key=key,
        started=lambda url: console.print(
            f"{opened.name} ({found}) is served; use it as {client_name(opened.name)}@{url}", markup=False
        ),
    )
    console.print("stopped")
