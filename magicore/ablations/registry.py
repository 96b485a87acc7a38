"""The studies by name, and how each is run, shown and written."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from magicore.ablations.options import Options
from magicore.ablations.study import Study, StudyTable, table_csv, write_study
from magicore.config import load_config
from magicore.errors import UnknownNameError
from magicore.evaluate.published import published_for
from magicore.runtime.directory import CONFIG
from magicore.store.json_lines import write_whole

STUDIES: dict[str, tuple[str, str]] = {
    "easy-hard": (
        "magicore.ablations.easy_hard:easy_hard_study",
        "aggregate everything, refine everything, or route, by every router; threshold sweeps",
    ),
    "error-localisation": (
        "magicore.ablations.error_localisation:error_localisation_study",
        "which step scores reviewer and refiner see: prm, random, orm, none, oracle",
    ),
    "iterations": (
        "magicore.ablations.iterations:iterations_study",
        "accuracy after each round of refinement, and what it fixed and broke",
    ),
    "k-sweep": (
        "magicore.ablations.k_sweep:k_sweep_study",
        "every aggregation with 1 to k chains, and the run's method at equal tokens",
    ),
    "reward-models": (
        "magicore.ablations.reward_models:reward_models_study",
        "pairs of outcome and process models, step aggregations, vote weights",
    ),
    "roles": (
        "magicore.ablations.roles:roles_study",
        "separate, joint, MARS's reviewers, personas, other models",
    ),
    "components": (
        "magicore.ablations.components:components_study",
        "selective refinement, error localisation and iteration, alone and together",
    ),
    "methods": (
        "magicore.ablations.methods:methods_study",
        "the whole family at matched tokens and matched wall time",
    ),
}
"""Name -> where its function is, and one line on what it asks."""


def study_names() -> dict[str, str]:
    """Every study with its one-line summary."""
    return {name: summary for name, (_, summary) in STUDIES.items()}


def study_function(name: str) -> Callable[[Path, Options], Study]:
    """The function of a study.

    Raises:
        UnknownNameError: there is no such study; near names are suggested.
    """
    known = name.replace("_", "-")
    if known not in STUDIES:
        near = difflib.get_close_matches(known, STUDIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"studies: {', '.join(STUDIES)}"
        raise UnknownNameError(f"there is no study {name!r}; {hint}")
    module, _, attribute = STUDIES[known][0].partition(":")
    function: Callable[[Path, Options], Study] = getattr(importlib.import_module(module), attribute)
    return function


def with_published(study: Study, directory: Path) -> Study:
    """The study with what papers report of the same model and data, as a table of its own, labelled."""
    config = load_config(directory / CONFIG, {})
    figures = published_for(config.model, config.data)
    if not figures:
        return study
    table = StudyTable(
        name="published",
        title=f"Published for {config.model} on {config.data} (other prompts, samples and readings of answers)",
        rows=tuple(figure.row for figure in figures),
        shown=("label", "method", "setting", "accuracy", "difference", "tokens", "source", "note"),
    )
    return replace(study, tables=(*study.tables, table))


def run_study(
    name: str,
    directory: Path,
    options: Options | None = None,
    *,
    out: Path | None = None,
    csv: Path | None = None,
    figures: bool = True,
    console: Console | None = None,
) -> Study:
    """Run a study over the run in ``directory``, print it, and write it.

    Args:
        name: The study.
        directory: A finished run's directory.
        options: How it is to be made.
        out: Where tables and figures go; ``DIR/studies/NAME`` if not given.
        csv: The main table goes into this file too.
        figures: Whether figures are drawn.
        console: Where it is printed; nothing is printed without one.

    Raises:
        UnknownNameError: there is no such study.
        MagicoreError: as the study itself.
    """
    from magicore.report.study_tables import show_study

    function = study_function(name)
    study = with_published(function(directory, options or Options()), directory)
    if console is not None:
        show_study(study, console)
    folder = directory / "studies" / study.name if out is None else out
    written = write_study(study, folder, figures=figures)
    if csv is not None:
        write_whole(csv, [table_csv(study.tables[0]).encode("utf-8", "backslashreplace")])
    if console is not None:
        console.print(f"{len(written)} files written to {folder}", highlight=False, markup=False)
    return study
