"""``magicore score``: score solutions with reward models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def score(
    solutions: Annotated[Path, typer.Argument(help="JSONL of {id, question, solution | steps}, or a chains.jsonl.")],
    out: Annotated[Path, typer.Option("--out", help="Directory for chains.jsonl and the score store.")],
    orm: opt.Orm = None,
    prm: opt.Prm = None,
    model: opt.Model = None,
    aggregation: opt.Aggregation = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    placement: opt.Placement = None,
    config: opt.Config = None,
    data: opt.Questions = None,
) -> None:
    """Score every solution and every step; an interrupted command goes on where it stopped."""
    from magicore.cli.scoring import score_file

    settings = opt.given(
        {"model": model, "aggregation": aggregation, "device": device, "dtype": dtype, "placement": placement}
    )
    score_file(solutions, out, orm=orm, prm=prm, data=data, settings=settings, config=config)
