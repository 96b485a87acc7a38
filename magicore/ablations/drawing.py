"""Figures that several studies share. Each function gives one that draws on a matplotlib ``Axes``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

Row = Mapping[str, Any]
Draw = Callable[[Any], None]
_MARKERS = "osD^vP*Xh<>"
_NAMED = 16
"""A figure of more points names those on the frontier only, and one of those that lie together."""


def accuracy_bars(rows: Sequence[Row], *, column: str = "method") -> Draw:
    """Accuracy of each row with its interval, the first at the top; a row without accuracy is named and left empty."""

    def draw(axes: Any) -> None:
        for at, row in enumerate(rows):
            value, low, high = row["accuracy"], row["accuracy_low"], row["accuracy_high"]
            if value is None:
                axes.text(0.01, at, "not known", va="center", fontsize=8)
                continue
            baseline = row["reading"] == "baseline"
            axes.errorbar(
                value,
                at,
                xerr=[[value - low], [high - value]],
                fmt="s" if baseline else "o",
                color="C1" if baseline else "C0",
                capsize=3,
            )
        axes.set_yticks(range(len(rows)), [str(row[column]) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"accuracy, with its {_percent(rows)} % Wilson interval")
        axes.set_xlim(0, 1)
        axes.grid(axis="x", alpha=0.3)

    return draw


def lines(
    rows: Sequence[Row],
    *,
    x: str,
    y: str,
    series: str,
    band: tuple[str, str] | None = None,
    labels: tuple[str, str] | None = None,
    log_x: bool = False,
) -> Draw:
    """One line a value of ``series``; points without a value are gaps. ``band`` shades between two columns."""

    def draw(axes: Any) -> None:
        marker = cycle(_MARKERS)
        for name in dict.fromkeys(str(row[series]) for row in rows):
            own = [row for row in rows if str(row[series]) == name and row[x] is not None and row[y] is not None]
            if not own:
                continue
            own.sort(key=lambda row: row[x])
            xs = [row[x] for row in own]
            (line,) = axes.plot(xs, [row[y] for row in own], marker=next(marker), markersize=3, lw=1.2, label=name)
            if band is not None and all(row[edge] is not None for row in own for edge in band):
                axes.fill_between(
                    xs, [row[band[0]] for row in own], [row[band[1]] for row in own], alpha=0.1, color=line.get_color()
                )
        if log_x:
            axes.set_xscale("log")
        axes.set_xlabel((labels or (x, y))[0])
        axes.set_ylabel((labels or (x, y))[1])
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, ncols=2)

    return draw


def frontier_scatter(rows: Sequence[Row], axis: str, label: str) -> Draw:
    """Accuracy against one cost axis, methods named, the frontier joined. Rows of ``frontier_rows``."""

    def draw(axes: Any) -> None:
        own = [row for row in rows if row["axis"] == axis]
        named: set[tuple[float, float]] = set()
        for row in own:
            at = (row["cost"], row["accuracy"])
            axes.plot(*at, "o", color="C0" if row["on_frontier"] else "0.6", markersize=4)
            if at not in named and (row["on_frontier"] or len(own) <= _NAMED):
                named.add(at)
                axes.annotate(str(row["method"]), at, textcoords="offset points", xytext=(4, 3), fontsize=6)
        best = sorted((row for row in own if row["on_frontier"]), key=lambda row: row["cost"])
        axes.step([row["cost"] for row in best], [row["accuracy"] for row in best], where="post", lw=1, color="C0")
        axes.set_xlabel(label)
        axes.set_ylabel("accuracy")
        if own and min(row["cost"] for row in own) > 0:
            axes.set_xscale("log")
        axes.grid(alpha=0.3)

    return draw


def _percent(rows: Sequence[Row]) -> str:
    return f"{100 * rows[0]['confidence']:g}" if rows else "95"
