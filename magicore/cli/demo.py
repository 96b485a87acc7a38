"""``magicore demo``: the embedded models on the packaged problems, every method from the same chains, in one table."""

from __future__ import annotations

from typing import Annotated

import typer

from magicore.cli import options as opt


def demo(
    model: opt.Model = None,
    orm: opt.Orm = None,
    prm: opt.Prm = None,
    data: opt.Data = None,
    limit: opt.Limit = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Chains a question.")] = 8,
    iterations: Annotated[int, typer.Option("--iterations", min=0, help="Refinement rounds.")] = 1,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="New tokens a completion at the most.")] = 220,
    seed: Annotated[int, typer.Option("--seed", help="The run's seed.")] = 0,
) -> None:
    """Compare cot, self-consistency, weighted self-consistency, best-of-k and MAgICoRe on 24 held-out problems."""
    from magicore.cli.demonstration import show_demo

    show_demo(
        opt.given({"model": model, "orm": orm, "prm": prm, "data": data, "limit": limit}),
        k=k,
        iterations=iterations,
        max_tokens=max_tokens,
        seed=seed,
    )
