"""The application: commands are added here, and user errors become one sentence and a non-zero exit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from difficulty.errors import DifficultyError
from magicore import __version__
from magicore.cli.ablate import ablate
from magicore.cli.calibrate import calibrate
from magicore.cli.check_reward_model import check_reward_model
from magicore.cli.compare import compare
from magicore.cli.demo import demo
from magicore.cli.evaluate_reward_model import evaluate_reward_model
from magicore.cli.export import export
from magicore.cli.grade import grade
from magicore.cli.hostile_endpoint import hostile_endpoint
from magicore.cli.label_steps import label_steps
from magicore.cli.list import list_names
from magicore.cli.merge import merge
from magicore.cli.probe import probe
from magicore.cli.refine import refine
from magicore.cli.replay import replay
from magicore.cli.report import report
from magicore.cli.run import run
from magicore.cli.score import score
from magicore.cli.serve import serve
from magicore.cli.serve_reward_model import serve_reward_model
from magicore.cli.show import show
from magicore.cli.tokens import tokens
from magicore.cli.train import train
from magicore.errors import MagicoreError
from reward_models.errors import RewardModelError

EXIT_ERROR = 1

app = typer.Typer(
    name="magicore",
    help="Reward-guided refinement of language-model reasoning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        Console().out(f"magicore {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Reward-guided refinement of language-model reasoning."""


app.command(name="run")(run)
app.command(name="demo")(demo)
app.command(name="score")(score)
app.command(name="refine")(refine)
app.command(name="ablate")(ablate)
app.command(name="export")(export)
app.command(name="merge")(merge)
app.command(name="check-reward-model")(check_reward_model)
app.command(name="serve")(serve)
app.command(name="calibrate")(calibrate)
app.command(name="serve-reward-model")(serve_reward_model)
app.command(name="label-steps")(label_steps)
app.command(name="train")(train)
app.command(name="evaluate-reward-model")(evaluate_reward_model)
app.command(name="show")(show)
app.command(name="report")(report)
app.command(name="compare")(compare)
app.command(name="replay")(replay)
app.command(name="tokens")(tokens)
app.command(name="probe")(probe)
app.command(name="hostile-endpoint")(hostile_endpoint)
app.command(name="grade")(grade)
app.command(name="list")(list_names)


def main() -> None:
    """Run the command line. A mistake of the user's is one sentence on stderr; anything else is a defect and shows."""
    try:
        app()
    except (MagicoreError, RewardModelError, DifficultyError) as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_plain(str(error))}")
        sys.exit(EXIT_ERROR)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text.encode("utf-8", "replace").decode("utf-8"))
