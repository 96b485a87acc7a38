"""``magicore merge``: the shards of a run put together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def merge(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="The directories of all shards.")],
    out: Annotated[Path, typer.Option("--out", help="Directory for the whole run.")],
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="The shards are prepared: fix the statistics over all of them.")
    ] = False,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Put the shards of a run together, as if one process had run it (see `magicore run --shard`)."""
    from magicore.cli.merging import merge_shards

    merge_shards(directories, out, calibrate=calibrate, force=force, as_json=json)
