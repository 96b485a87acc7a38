"""``magicore ablate``: a study over a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magicore.cli import options as opt

BOOTSTRAP = 10_000


def ablate(
    study: Annotated[str, typer.Argument(help="The study; `magicore list studies` shows them.")],
    directory: Annotated[Path, typer.Argument(help="The directory of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Directory for tables and figures; DIR/studies/STUDY if not given.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Also write the main table to this CSV file.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="What the others are compared with.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the study (repeatable)."),
    ] = None,
    limit: opt.Limit = None,
    k: opt.K = None,
    iterations: opt.Iterations = None,
    role_model: opt.RoleModel = None,
    placement: opt.Placement = None,
    seed: Annotated[int, typer.Option("--seed", help="Of resampling.")] = 0,
    resamples: Annotated[int, typer.Option("--resamples", help="Of the bootstrap.")] = BOOTSTRAP,
    confidence: Annotated[float, typer.Option("--confidence", help="Of every interval.")] = 0.95,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw figures (PNG and SVG).")] = True,
    offline: Annotated[bool, typer.Option("--offline", help="Use what is stored; draw and score nothing new.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Draw and score what is missing without asking.")] = False,
) -> None:
    """Answer a question about a finished run, without a model where its store suffices.

    What is missing is drawn once, after a yes, in runs of their own in the run's directory; without one the study says
    what it left out.
    """
    from rich.console import Console

    from magicore.ablations.options import Options
    from magicore.ablations.registry import run_study
    from magicore.ablations.statistics import Luck
    from magicore.cli.consenting import consent

    roles = opt.pairs(role_model, "--role-model")
    settings = opt.given({"k": k, "iterations": iterations, "role_models": roles, "placement": placement})
    options = Options(
        luck=Luck(seed=seed, resamples=resamples, confidence=confidence),
        baseline=baseline,
        limit=limit,
        settings=settings,
        values=opt.pairs(option, "--option") or {},
        consent=consent(offline=offline, yes=yes),
    )
    run_study(study, directory, options, out=out, csv=csv, figures=figures, console=Console())
