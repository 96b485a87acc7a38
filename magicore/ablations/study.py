"""What a study brings: tidy tables, figures and remarks; and how they are written and shown."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import magicore
from magicore.errors import MissingExtraError, StoreError
from magicore.store.json_lines import write_whole

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """One tidy table: a row an observation, a column a variable, missing values ``None``.

    Attributes:
        name: File name without an ending.
        title: What it shows, over the table in the terminal.
        rows: All with the same keys.
        shown: The columns that the terminal shows, in order; all where empty.
        brief: The rows that the terminal shows; all where not given.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    shown: tuple[str, ...] = ()
    brief: Callable[[Row], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class StudyFigure:
    """One figure: ``draw`` draws on a matplotlib ``Axes``."""

    name: str
    title: str
    draw: Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class Study:
    """The outcome of a study.

    Attributes:
        name: As ``magicore ablate`` knows it.
        tables: The first is the main one.
        figures: Drawn only when they are written.
        remarks: What a reader has to know: what is missing and why, what is luck.
        notes: How it was made (seed, resamples, draws, settings); written to study.json.
    """

    name: str
    tables: tuple[StudyTable, ...]
    figures: tuple[StudyFigure, ...] = ()
    remarks: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> StudyTable:
        """A table by its name."""
        return next(table for table in self.tables if table.name == name)


def table_csv(table: StudyTable) -> str:
    """The rows as CSV: numbers unrounded, missing values empty, true and false in small letters."""
    sheet = io.StringIO()
    columns = list(table.rows[0]) if table.rows else list(table.shown)
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in table.rows)
    return sheet.getvalue()


def write_study(study: Study, out: Path, *, figures: bool = True) -> list[Path]:
    """Write every table as CSV (and Parquet where pyarrow is installed), every figure as PNG and SVG, and study.json.

    Raises:
        MissingExtraError: figures need the extra ``report``; everything else is written first.
        StoreError: a file cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{out} cannot be made: {error.strerror}") from error
    written: list[Path] = []
    for table in study.tables:
        path = out / f"{table.name}.csv"
        write_whole(path, [table_csv(table).encode("utf-8", "backslashreplace")])
        written.append(path)
        if table.rows and importlib.util.find_spec("pyarrow") is not None:
            written.append(_write_parquet(out / f"{table.name}.parquet", table))
    path = out / "study.json"
    body = {
        "study": study.name,
        "version": magicore.__version__,
        "tables": [table.name for table in study.tables],
        "figures": [figure.name for figure in study.figures],
        "remarks": list(study.remarks),
        **study.notes,
    }
    write_whole(path, [json.dumps(body, indent=2, ensure_ascii=False, default=str).encode(), b"\n"])
    written.append(path)
    if figures and study.figures:
        written += write_figures(study.figures, out)
    return written


def write_figures(figures: Sequence[StudyFigure], out: Path) -> list[Path]:
    """Draw figures as PNG and SVG; equal figures make equal SVG files.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StoreError: a file cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError(
            "figures need matplotlib: pip install 'magicore[report]', or leave them with --no-figures"
        )
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    written: list[Path] = []
    with mpl.rc_context({"svg.hashsalt": "magicore", "svg.fonttype": "none", "font.size": 9}):
        for one in figures:
            drawn = Figure(figsize=(7.0, 4.2), layout="constrained")
            FigureCanvasAgg(drawn)
            axes = drawn.add_subplot()
            one.draw(axes)
            axes.set_title(one.title, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            for ending in ("png", "svg"):
                path = out / f"{one.name}.{ending}"
                try:
                    drawn.savefig(path, dpi=150, metadata={"Date": None} if ending == "svg" else None)
                except OSError as error:
                    raise StoreError(f"{path} cannot be written: {error.strerror}") from error
                written.append(path)
    return written


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _write_parquet(path: Path, table: StudyTable) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(table.rows[0])
    arrays = {name: _column([row.get(name) for row in table.rows], pa) for name in columns}
    try:
        pq.write_table(pa.table(arrays), path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _column(values: Sequence[Any], pa: Any) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pa.array(values, type=pa.bool_())
    if kinds <= {int}:
        return pa.array(values, type=pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], type=pa.float64())
    return pa.array([None if value is None else str(value) for value in values], type=pa.string())
