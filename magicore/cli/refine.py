"""``magicore refine``: review and refine given solutions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def refine(
    solutions: Annotated[Path, typer.Argument(help="JSONL of {id, question, solution | steps}, or a chains.jsonl.")],
    out: Annotated[Path, typer.Option("--out", help="Directory for the store and the files.")],
    model: opt.Model = None,
    orm: opt.Orm = None,
    prm: opt.Prm = None,
    iterations: opt.Iterations = None,
    router: opt.Router = None,
    option: opt.MethodOption = None,
    kind: opt.Kind = None,
    prompts: opt.Prompts = None,
    temperature: opt.Temperature = None,
    max_tokens: opt.MaxTokens = None,
    aggregation: opt.Aggregation = None,
    duplicates: opt.Duplicates = None,
    seed: opt.Seed = None,
    deterministic: opt.Deterministic = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    placement: opt.Placement = None,
    config: opt.Config = None,
    data: opt.Questions = None,
    force: opt.Force = False,
    yes: opt.Yes = False,
    log_json: opt.LogJson = None,
    otel: opt.Traces = False,
    json: opt.Json = False,
) -> None:
    """Review and refine every solution, whatever its difficulty (another --router refines only hard questions)."""
    from magicore.cli.scoring import refine_file

    settings = opt.given(
        {
            "model": model,
            "orm": orm,
            "prm": prm,
            "iterations": iterations,
            "router": router,
            "kind": kind,
            "prompts": prompts,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "aggregation": aggregation,
            "duplicates": duplicates,
            "seed": seed,
            "deterministic": deterministic,
            "device": device,
            "dtype": dtype,
            "placement": placement,
        }
    )
    settings |= opt.pairs(option, "--option") or {}
    settings |= opt.given({"log_json": log_json, "traces": otel or None})
    refine_file(solutions, out, settings, data=data, config=config, force=force, yes=yes, as_json=json)
