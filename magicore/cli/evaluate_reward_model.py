"""``magicore evaluate-reward-model``: how well a reward model tells right from wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def evaluate_reward_model(
    model: Annotated[str, typer.Argument(help="A reward model's name; see `magicore list`.")],
    data: Annotated[Path, typer.Argument(help="ProcessBench JSON, labels.jsonl, or chains with gold answers.")],
    kind: opt.RewardKind = None,
    problems: opt.Questions = None,
    threshold: Annotated[float, typer.Option("--threshold", help="A step below it is taken for wrong.")] = 0.5,
    tune: Annotated[Path | None, typer.Option("--tune", help="Choose the threshold on this file instead.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Directory for report.json and the scores.")] = None,
    language_model: opt.Model = None,
    aggregation: opt.Aggregation = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    config: opt.Config = None,
    json: opt.Json = False,
) -> None:
    """AUROC and calibration of steps and outcomes, first-error F1, best-of-k and weighted voting, by length."""
    from magicore.cli.judging import judge_file

    settings = opt.given({"model": language_model, "aggregation": aggregation, "device": device, "dtype": dtype})
    judge_file(
        model,
        data,
        out,
        settings,
        kind=kind,
        problems=problems,
        threshold=threshold,
        tune=tune,
        config=config,
        as_json=json,
    )
