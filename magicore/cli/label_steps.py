"""``magicore label-steps``: label the steps of solutions without people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def label_steps(
    solutions: Annotated[Path, typer.Argument(help="JSONL of {id, question, solution | steps}, or a chains.jsonl.")],
    out: Annotated[Path, typer.Option("--out", help="Directory for labels.jsonl, labels.json and the store.")],
    source: Annotated[str, typer.Option("--from", help="model (complete each step), gold, or arithmetic.")] = "model",
    model: opt.Model = None,
    n: Annotated[int, typer.Option("--n", help="Completions a step.")] = 8,
    soft: Annotated[
        bool, typer.Option("--soft/--hard", help="The share that reaches the answer, or whether any does.")
    ] = False,
    gold: Annotated[
        str | None, typer.Option("--gold", help="Worked solutions for --from gold: a file or gen:..., by problem id.")
    ] = None,
    data: opt.Questions = None,
    kind: opt.Kind = None,
    prompts: opt.Prompts = None,
    temperature: opt.Temperature = None,
    top_p: opt.TopP = None,
    max_tokens: opt.MaxTokens = None,
    seed: opt.Seed = None,
    deterministic: opt.Deterministic = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    concurrency: opt.Concurrency = None,
    cache: opt.Cache = None,
    budget: opt.BudgetOption = None,
    config: opt.Config = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Label every step: does completing the solution from there reach the gold answer? Goes on where it stopped."""
    from magicore.cli.labelling import label_file

    settings = opt.given(
        {
            "model": model,
            "kind": kind,
            "prompts": prompts,
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "seed": seed,
            "deterministic": deterministic,
            "device": device,
            "dtype": dtype,
            "concurrency": concurrency,
            "cache": cache,
            "budget": opt.numbers(budget, "--budget"),
        }
    )
    label_file(
        solutions,
        out,
        settings,
        source=source,
        n=n,
        soft=soft,
        gold=gold,
        data=data,
        config=config,
        force=force,
        as_json=json,
    )
