"""Judging a reward model from the command line, and showing the report as tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from magicore.errors import InputError
from magicore.evaluate.judging import Judgement, RewardKind, evaluate_reward_model
from magicore.report.tables import show
from magicore.runtime.directory import STORE
from magicore.store.json_lines import write_whole

REPORT = "report.json"


def judge_file(
    model: str,
    data: Path,
    out: Path | None,
    settings: Mapping[str, Any],
    *,
    kind: str | None,
    problems: str | None,
    threshold: float,
    tune: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Judge, print the tables or the JSON, and write report.json where there is a directory for it."""
    if kind not in (None, "process", "outcome"):
        raise InputError(f"--kind is outcome or process, not {kind!r}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    found = evaluate_reward_model(
        model,
        data,
        kind=cast("RewardKind | None", kind),
        problems=problems,
        threshold=threshold,
        tune=tune,
        store=None if out is None else out / STORE,
        config=config,
        **settings,
    )
    text = json.dumps(found.row(), indent=2) + "\n"
    if as_json:
        sys.stdout.write(text)
    else:
        for table in tables(found):
            show(table)
    if out is not None:
        write_whole(out / REPORT, [text.encode()])
        Console(stderr=True, highlight=False).print(f"written to {out / REPORT}")


def tables(found: Judgement) -> list[Table]:
    """The report for people: discrimination, selection by k, and groups by length."""
    report = found.report
    head = Table("", "n", "right", "unscored", "AUROC", "Brier", "ECE", title=f"{found.model} on {found.data}")
    for name, part in (("steps", report.steps), ("outcomes", report.outcomes)):
        if part is not None:
            shares = [_figure(part.auroc), _figure(part.brier), _figure(part.calibration_error)]
            head.add_row(name, f"{part.n:,}", f"{part.right:,}", f"{part.unscored:,}", *shares)
    made = [head]
    if (errors := report.first_error) is not None:
        first = Table("threshold", "F1", "erroneous", "found", "right", "passed", title="First error (ProcessBench)")
        found_, passed = _figure(errors.accuracy_erroneous), _figure(errors.accuracy_right)
        counts = (f"{errors.erroneous:,}", f"{errors.right:,}")
        first.add_row(f"{errors.threshold:g}", _figure(errors.f1), counts[0], found_, counts[1], passed)
        made.append(first)
    if report.selection:
        choice = Table(
            "k", "problems", "single", "majority", "weighted", "best of k", "any right", title="Choosing among k"
        )
        for one in report.selection:
            figures = (one.single, one.majority, one.weighted, one.best_of, one.any_right)
            choice.add_row(str(one.k), f"{one.problems:,}", *(f"{100 * value:.1f} %" for value in figures))
        made.append(choice)
    lengths = Table("steps", "solutions", "step AUROC", "first-error F1", "outcome AUROC", title="By length")
    for name, row in report.by_length.items():
        figures_ = [_figure(row[key]) for key in ("step_auroc", "first_error_f1", "outcome_auroc")]
        lengths.add_row(name, f"{row['solutions']:,}", *figures_)
    made.append(lengths)
    return made


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
