"""``magicore hostile-endpoint`` and ``python -m magicore.testing.hostile``: serve until interrupted."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from magicore._sync import run_sync
from magicore.datasets import iter_problems
from magicore.errors import InputError
from magicore.store.json_lines import read_json_lines
from magicore.testing.hostile.faults import KINDS, FaultKind, Faults
from magicore.testing.hostile.habits import Habits
from magicore.testing.hostile.server import HostileEndpoint
from magicore.testing.hostile.service import Service
from magicore.testing.hostile.writing import Made, Recorded, Writer, by_rule


def hostile_endpoint(
    port: Annotated[int, typer.Option("--port", help="The first replica's port; 0: any free one.")] = 0,
    host: Annotated[str, typer.Option("--host", help="127.0.0.1, or localhost for IPv4 and IPv6.")] = "127.0.0.1",
    model: Annotated[str, typer.Option("--model", help="The model id that it serves.")] = "hostile",
    replicas: Annotated[int, typer.Option("--replicas", help="How many servers, one port each.")] = 1,
    slots: Annotated[int, typer.Option("--slots", help="Samples that a replica generates at once.")] = 64,
    token_s: Annotated[float, typer.Option("--token-s", help="Seconds a generated token.")] = 0.0,
    sample_s: Annotated[float, typer.Option("--sample-s", help="Seconds before a sample's first token.")] = 0.0,
    queue: Annotated[int | None, typer.Option("--queue", help="Samples that may wait for a slot; then 429.")] = None,
    fault_rate: Annotated[float, typer.Option("--fault-rate", help="The share of replies that go wrong.")] = 0.0,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="KIND[=WEIGHT]", help=f"Only these (repeatable): {', '.join(KINDS)}."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides which replies go wrong.")] = 0,
    retry_after_s: Annotated[float, typer.Option("--retry-after-s", help="What Retry-After says.")] = 1.0,
    slow_s: Annotated[float, typer.Option("--slow-s", help="How late a late first token is.")] = 1.0,
    habit: Annotated[
        list[str] | None,
        typer.Option("--habit", metavar="NAME=VALUE", help="n=ignored, usage=false, limit=max_tokens ... (JSON)."),
    ] = None,
    made: Annotated[
        str | None, typer.Option("--made", metavar="TOKENS[:SPREAD]", help="Samples of this length that say nothing.")
    ] = None,
    recorded: Annotated[Path | None, typer.Option("--recorded", help="Recorded responses to serve.")] = None,
    data: Annotated[str | None, typer.Option("--data", help="The problems that were recorded.")] = None,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Write every request here at the end.")] = None,
) -> None:
    """Serve an OpenAI-compatible endpoint that misbehaves on purpose; its address is printed as one JSON line."""
    try:
        endpoint = HostileEndpoint(
            writer=_writer(made, recorded, data),
            service=Service(slots=slots, token_s=token_s, sample_s=sample_s, queue=queue),
            faults=_faults(fault_rate, fault, seed=seed, retry_after_s=retry_after_s, slow_s=slow_s),
            habits=Habits(**_habits(habit)),
            model=model,
            replicas=replicas,
            host=host,
            port=port,
        )
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        run_sync(_serve(endpoint))
    if ledger is not None:
        ledger.write_text("".join(json.dumps(row) + "\n" for row in endpoint.ledger.rows()), encoding="utf-8")


async def _serve(endpoint: HostileEndpoint) -> None:
    """Serve until cancelled."""
    try:
        await endpoint.start()
    except OSError as error:
        raise InputError(f"the endpoint cannot listen on {endpoint.host}: {error.strerror or error}") from error
    sys.stdout.write(json.dumps({"model": endpoint.name, "urls": endpoint.urls}) + "\n")
    sys.stdout.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await endpoint.stop()


def _faults(rate: float, given: Sequence[str] | None, **others: Any) -> Faults:
    if not given:
        return Faults(rate=rate, **others)
    pairs = [item.partition("=") for item in given]
    return Faults(rate=rate, kinds={cast(FaultKind, kind): float(weight or 1) for kind, _, weight in pairs}, **others)


def _habits(given: Sequence[str] | None) -> dict[str, Any]:
    """``NAME=VALUE`` with the value as JSON, or as it stands where it is none."""
    found: dict[str, Any] = {}
    for item in given or ():
        name, _, text = item.partition("=")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def _writer(made: str | None, recorded: Path | None, data: str | None) -> Writer:
    if made is not None:
        tokens, _, spread = made.partition(":")
        return Made(tokens=int(tokens), spread=int(spread or 0))
    if recorded is None:
        return by_rule
    if data is None:
        raise InputError("recorded responses are found by their question: name the problems with --data")
    rows = [row for _, row in read_json_lines(recorded)]
    return Recorded(rows=rows, questions={problem.id: problem.question for problem in iter_problems(data)})
