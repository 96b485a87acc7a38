"""A report as HTML and its summary as CSV, written whole or not at all."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from magicore.errors import InputError, MissingExtraError, StoreError
from magicore.evaluate import Comparison
from magicore.report.html.data import ReportData, as_json
from magicore.store.files import SUMMARY_KEYS
from magicore.store.json_lines import write_whole

TEMPLATE, STYLE, SCRIPT = "report.html.j2", "report.css", "report.js"
USAGE = ("generation_tokens", "reward_tokens", "judge_tokens")
COLUMNS = ("run", "state", *(name for key in SUMMARY_KEYS for name in (USAGE if key == "usage" else (key,))))
"""The summary table's columns: summary.json's keys, its usage spread out."""


def write_report(data: ReportData, out: str | Path, *, csv: str | Path | None = None) -> Path:
    """Write the report, and with ``csv`` its summary table; returns the HTML file.

    Raises:
        InputError: ``out`` is a folder.
        MissingExtraError: Jinja2 is not installed (extra ``report``).
        StoreError: A file cannot be written.
    """
    path = Path(out)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the HTML file to write, such as {path / 'report.html'}")
    page = render(data).encode("utf-8")
    for target, content in ((path, page), *(() if csv is None else ((Path(csv), summary_csv(data).encode("utf-8")),))):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{target.parent} cannot be made: {error.strerror}") from error
        write_whole(target, [content])
    return path


def render(data: ReportData) -> str:
    """The whole page. Equal data give equal bytes; what models wrote is only ever data, never markup.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise MissingExtraError("the report needs Jinja2: pip install 'magicore[report]'")
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(FILTERS)
    style, script = _asset(STYLE), _asset(SCRIPT)
    page = environment.from_string(_asset(TEMPLATE)).render(
        data=data,
        rows=summary_rows(data),
        comparisons={name: one for name, one in data.comparisons.items() if isinstance(one, Comparison)},
        refused={name: one for name, one in data.comparisons.items() if not isinstance(one, Comparison)},
        policy=_policy(style, script),
        style=style,
        script=script,
        embedded=as_json(data),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def summary_rows(data: ReportData) -> list[dict[str, Any]]:
    """One row a run with :data:`COLUMNS`, as summary.json has them; ``None`` where it has nothing."""
    return [
        {"run": run.label, "state": run.state, **{name: _value(run.summary or {}, name) for name in COLUMNS[2:]}}
        for run in data.runs
    ]


def summary_csv(data: ReportData) -> str:
    """:func:`summary_rows` as CSV, numbers unrounded and missing ones empty."""
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summary_rows(data))
    return sheet.getvalue()


def _value(summary: Mapping[str, Any], name: str) -> Any:
    return summary.get("usage", {}).get(name) if name in USAGE else summary.get(name)


def _policy(style: str, script: str) -> str:
    """What the page may do: run this script, use this style, and nothing else; no request of any kind."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _p_value(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d} h" if hours else f"{minutes}:{seconds:02d} min"


FILTERS: Mapping[str, Callable[..., str]] = {
    "percent": _percent,
    "points": _points,
    "count": _count,
    "p_value": _p_value,
    "seconds": _seconds,
}
