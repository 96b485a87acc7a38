"""``magicore train``: train a reward model, a policy or a refiner as a LoRA adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt


def train(
    kind: Annotated[str, typer.Argument(help="prm, orm, policy or refiner.")],
    data: Annotated[
        str,
        typer.Argument(
            help="labels.jsonl (prm, orm, refiner); gen:..., a file with `solution` or `messages` (policy)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The adapter's folder.")],
    base: Annotated[
        str, typer.Option("--base", help="embedded, embedded:base, hf:REPO_OR_FOLDER, or another adapter.")
    ] = "embedded",
    head: Annotated[
        str | None,
        typer.Option("--head", help="prm: math-shepherd (default) or trl-prm; orm: sequence-classification."),
    ] = None,
    gold: Annotated[str | None, typer.Option("--gold", help="Worked solutions by problem id (refiner).")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Optimiser steps, instead of --epochs.")] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="Passes over the data (1).")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Examples a step (16).")] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="LoRA's rank (16).")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="LoRA's alpha (twice the rank).")] = None,
    dropout: Annotated[float | None, typer.Option("--dropout", help="LoRA's dropout (0).")] = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="The highest learning rate (5e-4).")] = None,
    weight_decay: Annotated[float | None, typer.Option("--weight-decay", help="AdamW's (0).")] = None,
    warmup: Annotated[
        float | None, typer.Option("--warmup", help="The share of steps in which the rate rises.")
    ] = None,
    max_length: Annotated[int | None, typer.Option("--max-length", help="Leave longer examples out (1024).")] = None,
    micro_tokens: Annotated[
        int | None, typer.Option("--micro-tokens", help="Tokens at once, for memory (2048).")
    ] = None,
    held_out: Annotated[float | None, typer.Option("--held-out", help="The share of problems held out (0.05).")] = None,
    evaluate_every: Annotated[int | None, typer.Option("--evaluate-every", help="Steps between measurements.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option("--checkpoint-every", help="Steps between checkpoints.")
    ] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="auto, fp32, bf16 or autocast.")] = None,
    prompts: opt.Prompts = None,
    seed: opt.Seed = None,
    device: opt.Device = None,
    force: opt.Force = False,
) -> None:
    """Train a LoRA adapter; what it writes loads by `family:FOLDER` or `hf:FOLDER`. Goes on where it stopped."""
    from magicore.cli.training import train_file

    settings = {
        "base": base,
        "head": head,
        "steps": steps,
        "epochs": epochs,
        "batch": batch,
        "rank": rank,
        "alpha": alpha,
        "dropout": dropout,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "warmup": warmup,
        "max_length": max_length,
        "micro_tokens": micro_tokens,
        "held_out": held_out,
        "evaluate_every": evaluate_every,
        "checkpoint_every": checkpoint_every,
        "precision": precision,
        "prompts": prompts,
        "seed": seed,
        "device": device,
    }
    train_file(kind, data, out, opt.given(settings), gold=gold, force=force)
