"""Everything a report shows, from the directories of its runs; one source for the HTML, the CSV and the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import magicore
from magicore.errors import InputError
from magicore.evaluate import Comparison, CostPoint, compare, holm
from magicore.evaluate import frontier as cheapest_and_best
from magicore.evaluate.axes import AXIS_LABELS
from magicore.evaluate.published import published_for
from magicore.report.compare_runs import clash, right_or_wrong
from magicore.report.html.cases import Chunk, case_chunks, case_rows
from magicore.report.html.graded import graded_problems
from magicore.report.html.panels import (
    Calibration,
    Flow,
    Frontier,
    Missing,
    RoleTokens,
    Routing,
    Trouble,
    calibration,
    flow,
    frontier,
    routing,
    tokens,
    troubles,
)
from magicore.report.run_files import RunFiles, State, labels, read_run

SHOWN_SETTINGS = (
    "method",
    "model",
    "orm",
    "prm",
    "data",
    "options",
    "seed",
    "calibration",
    "duplicates",
    "aggregation",
)
"""Settings that the report names."""


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run in the report.

    Attributes:
        label, state, remarks: As in :class:`~magicore.report.run_files.RunFiles`.
        settings: The main settings, where they are set.
        summary: summary.json, unchanged; ``None`` where there is none.
        why_no_questions: Why the case view has no questions, if it has none.
        frontier, routing, flow, calibration, tokens: The panels.
        published: What papers report of the same model and data, as rows with their label.
        troubles: Failures, abstentions, missing scores and warnings; empty where there are none.
        cases: One row a problem, a column a key.
        chunks: Every problem's details, compressed.
    """

    label: str
    state: State
    remarks: tuple[str, ...]
    settings: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    why_no_questions: str | None
    frontier: Frontier | Missing
    routing: Routing | Missing
    flow: Flow | Missing
    calibration: Calibration | Missing
    tokens: tuple[RoleTokens, ...] | Missing
    published: tuple[Mapping[str, Any], ...]
    troubles: tuple[Trouble, ...] | Missing
    cases: Mapping[str, Sequence[Any]]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, kw_only=True)
class ParetoPoint:
    """A method at one setting that no other one beats in accuracy and generated tokens a problem together."""

    name: str
    tokens: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """Runs side by side.

    Attributes:
        version: Of magicore.
        runs: In the order given.
        comparisons: Every later run against the first: paired tests, p-values adjusted by Holm over them, or why the
            two cannot be compared.
        pareto: The frontier over all runs and votes, coverage apart, from cheap to dear.
        axes: What a cost is called on each axis of the panels' ``spent``.
    """

    version: str
    runs: tuple[RunReport, ...]
    comparisons: Mapping[str, Comparison | Missing]
    pareto: tuple[ParetoPoint, ...]
    axes: Mapping[str, str]


def report_data(directories: Sequence[Path | str], *, resamples: int = 10_000, seed: int = 0) -> ReportData:
    """Read runs and compute what a report shows.

    Args:
        directories: Run directories; the later ones are compared with the first.
        resamples, seed: Of the paired bootstrap.

    Raises:
        InputError: None is given, one is given twice, or one holds no run or an unreadable file.
    """
    paths = [Path(directory) for directory in directories]
    if not paths:
        raise InputError("name at least one run's directory")
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a directory is named twice; a run is not compared with itself")
    runs = [read_run(path, label) for path, label in zip(paths, labels(paths), strict=True)]
    reports = tuple(map(run_report, runs))
    return ReportData(
        version=magicore.__version__,
        runs=reports,
        comparisons=comparisons(runs, resamples=resamples, seed=seed),
        pareto=pareto(reports),
        axes={str(axis): name for axis, name in AXIS_LABELS.items()},
    )


def pareto(runs: Sequence[RunReport]) -> tuple[ParetoPoint, ...]:
    """The frontier over everything that the runs' panels place on the axis."""
    points = [
        CostPoint(method=name, cost=point.tokens, accuracy=point.accuracy)
        for run in runs
        if isinstance(run.frontier, Frontier)
        for name, point in (
            (run.label, run.frontier.run),
            *(
                (f"{run.label}: {series}, first {point.k}", point)
                for series, series_points in run.frontier.series.items()
                for point in series_points
                if series != "coverage"
            ),
        )
        if point.tokens is not None
    ]
    return tuple(
        ParetoPoint(name=point.method, tokens=point.cost, accuracy=point.accuracy)
        for point in cheapest_and_best(points)
    )


def run_report(run: RunFiles) -> RunReport:
    """One run's panels and cases."""
    problems = graded_problems(run)
    settings = {name: value for name in SHOWN_SETTINGS if (value := getattr(run.config, name)) not in (None, {})}
    without = None
    if not run.results:
        without = Missing(missing="There are no results yet.")
    elif run.chains is None:
        without = Missing(missing="chains.jsonl is not in the directory.")
    return RunReport(
        label=run.label,
        state=run.state,
        remarks=run.remarks,
        settings=settings,
        summary=run.summary,
        why_no_questions=run.why_no_questions,
        frontier=without
        or frontier(problems, wall_s=(run.summary or {}).get("wall_s"), prices=run.config.prices or None),
        routing=(without if not run.results else None) or routing(problems),
        flow=without or flow(problems),
        calibration=without or calibration(run, problems),
        tokens=tokens(run),
        published=tuple(one.row for one in published_for(run.config.model, run.config.data)),
        troubles=(without if not run.results else None) or troubles(problems),
        cases=case_rows(run, problems),
        chunks=case_chunks(run, problems),
    )


def comparisons(runs: Sequence[RunFiles], *, resamples: int, seed: int) -> dict[str, Comparison | Missing]:
    """Every later run against the first."""
    found: dict[str, Comparison | Missing] = {}
    first = runs[0]
    for run in runs[1:]:
        why = clash(first, run)
        found[run.label] = (
            Missing(missing=why)
            if why is not None
            else compare(right_or_wrong(run), right_or_wrong(first), resamples=resamples, seed=seed)
        )
    tested = {label: one for label, one in found.items() if isinstance(one, Comparison)}
    adjusted = holm([one.p_value for one in tested.values()])
    for (label, one), value in zip(tested.items(), adjusted, strict=True):
        found[label] = replace(one, p_adjusted=value)
    return found


def as_json(data: ReportData) -> str:
    """The embedded JSON, chunks left out, safe inside a script element: no ``<``, ``>`` or ``&`` is in it."""
    text = json.dumps(_plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    """Dataclasses as objects, with what a comparison derives; numbers as they are."""
    if isinstance(value, Comparison):
        return {**{name: _plain(item) for name, item in vars(value).items()}, "verdict": value.verdict}
    if isinstance(value, RunReport):
        row = {name: _plain(item) for name, item in vars(value).items() if name != "chunks"}
        return row | {"chunks": [chunk.first for chunk in value.chunks]}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(item) for name, item in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
