"""``magicore check-reward-model``: does a reward model work here?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from magicore.cli import options as opt

if TYPE_CHECKING:
    from reward_models.check import CheckReport

EXIT_UNSOUND = 1


def check_reward_model(
    name: Annotated[str, typer.Argument(help="A reward model, here or on a server; see `magicore list`.")],
    kind: opt.RewardKind = None,
    model: opt.Model = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    config: opt.Config = None,
) -> None:
    """Load a reward model, check its tags, counts and order, and score a right and a wrong solution of three questions.

    Exits with 1 if a check fails, which means that its scores cannot be believed. A model that is loaded correctly and
    yet prefers a wrong solution is weak; that is said, and is no failure.
    """
    from magicore.cli.reward_model import open_named
    from reward_models import check

    console = Console()
    with Console(stderr=True).status(f"checking {name}"):
        opened, _ = open_named(name, kind, opt.given({"model": model, "device": device, "dtype": dtype}), config)
        report = check.check_reward_model(opened)
    _show(report, console)
    if not report.sound:
        raise typer.Exit(EXIT_UNSOUND)


def _show(report: CheckReport, console: Console) -> None:
    marks = {True: "[green]passed[/]", False: "[bold red]failed[/]", None: "[dim]does not apply[/]"}
    checks = Table(title=report.model, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for found in report.checks:
        checks.add_row(found.name, marks[found.passed], _plain(found.detail))
    console.print(checks)
    pairs = Table(title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("question", "right", "wrong", ""):
        pairs.add_column(heading, justify="right" if heading in ("right", "wrong") else "left")
    for pair in report.pairs:
        mark = "[green]in order[/]" if pair.ordered else "[yellow]not in order[/]"
        pairs.add_row(_plain(pair.question), _number(pair.right), _number(pair.wrong), mark)
    if report.pairs:
        console.print(pairs)
    console.print(_verdict(report))


def _verdict(report: CheckReport) -> str:
    if not report.sound:
        return "[bold red]Its scores cannot be believed here.[/]"
    if report.orders:
        return "[green]Sound, and every right solution scores above the wrong one.[/]"
    return "[yellow]Sound, but it does not put every right solution above the wrong one: weak, not broken.[/]"


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.4f}"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text.encode("utf-8", "replace").decode())
