"""``magicore list``: every name that the other commands take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def list_names(
    what: Annotated[
        str | None,
        typer.Argument(help="methods, models, reward-models, routers, prompts, kinds, studies; all if left out."),
    ] = None,
) -> None:
    """List methods, models, reward models, routers, prompt sets, answer kinds and studies by name."""
    from magicore.errors import UnknownNameError

    sections = _sections()
    if what is not None and what not in sections:
        raise UnknownNameError(f"there is no list {what!r}; lists: {', '.join(sections)}")
    console = Console()
    for title, names in sections.items():
        if what in (None, title):
            console.print(_table(title, names))


def _sections() -> dict[str, Mapping[str, str]]:
    from difficulty import router_names
    from magicore.ablations.registry import study_names
    from magicore.answers.kinds import KINDS
    from magicore.llms.registry import model_names
    from magicore.methods import method_names
    from magicore.methods.presets import PRESETS
    from magicore.prompts import prompt_set_names
    from magicore.roles.names import ROLES

    return {
        "methods": method_names(),
        "presets": {name: _settings(settings) for name, settings in PRESETS.items()},
        "models": model_names(),
        "roles": ROLES,
        "reward-models": _reward_models(),
        "routers": dict.fromkeys(router_names(), ""),
        "prompts": dict.fromkeys(prompt_set_names(), ""),
        "kinds": dict.fromkeys(KINDS, ""),
        "studies": study_names(),
    }


def _settings(settings: Mapping[str, object]) -> str:
    """Settings as the command line has them."""
    shown = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def _table(title: str, names: Mapping[str, str]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 2))
    for name, summary in names.items():
        table.add_row(name, summary)
    return table


def _reward_models() -> dict[str, str]:
    """Outcome and process models together, each with its kind; a name that is both is listed once."""
    from reward_models.registry import outcome_models, process_models

    outcome, process = outcome_models.names(), process_models.names()
    return {
        name: f"{'ORM' if name in outcome else ''}{', ' if name in outcome and name in process else ''}"
        f"{'PRM' if name in process else ''}: {(outcome | process)[name]}"
        for name in sorted(outcome.keys() | process.keys())
    }
