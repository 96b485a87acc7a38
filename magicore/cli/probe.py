"""``magicore probe``: what an endpoint does and does not do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from magicore.llms.probe import Probe


def probe(
    model: Annotated[str, typer.Argument(help="openai:NAME@URL, or a nickname of the configuration.")],
    config: Annotated[Path | None, typer.Option("--config", help="TOML file with [models.NICK] tables.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Ask an endpoint five small questions and say what it can be relied on for."""
    import sys
    from json import dumps

    from magicore._sync import run_sync
    from magicore.report.probes import probe_table
    from magicore.report.tables import show

    found = run_sync(_probed(model, config))
    if json:
        cost = {"prompt": found.usage.prompt, "completion": found.usage.completion, "calls": found.usage.calls}
        sys.stdout.write(dumps({"model": model, **found.profile.known(), "notes": found.notes, "cost": cost}) + "\n")
        return
    show(probe_table(model, found))


async def _probed(name: str, config: Path | None) -> Probe:
    from magicore.config import load_config
    from magicore.llms.probe import probe as ask
    from magicore.llms.registry import open_model

    model = open_model(name, models=load_config(config, {}).models)
    try:
        return await ask(model)
    finally:
        await model.aclose()
