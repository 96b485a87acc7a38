"""A training's progress in the terminal, and its curve as a figure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from magicore.report.bars import progress_bars
from magicore.training.loop import CurvePoint

FIGURE = "curve.png"


class TrainingBar:
    """A bar on stderr with loss, held-out figures and speed; nothing where stderr is no terminal."""

    def __init__(self, title: str, steps: int, *, shown: bool | None = None) -> None:
        self._progress = progress_bars(shown=sys.stderr.isatty() if shown is None else shown)
        self._task = self._progress.add_task(title, total=steps, figures="")
        self._held_out = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def told(self, point: CurvePoint, steps: int) -> None:
        """A step is done."""
        if point.held_out_loss is not None:
            area = "" if point.held_out_auroc is None else f", AUROC {point.held_out_auroc:.3f}"
            self._held_out = f", held out {point.held_out_loss:.3f}{area}"
        loss = "" if point.loss is None else f"loss {point.loss:.3f}"
        speed = f", {point.tokens / max(point.seconds, 1e-9):,.0f} tokens/s"
        self._progress.update(self._task, completed=point.step, total=steps, figures=loss + self._held_out + speed)


def draw_curve(curve: Sequence[CurvePoint], folder: Path, title: str) -> Path | None:
    """The losses over the steps as ``curve.png``; ``None`` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for label, values in (
        ("training", [(one.step, one.loss) for one in curve]),
        ("held out", [(one.step, one.held_out_loss) for one in curve]),
    ):
        points = [(step, value) for step, value in values if value is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=label)
    axes.set(xlabel="step", ylabel="loss a read (nats)", title=title)
    axes.legend()
    figure.savefig(folder / FIGURE, dpi=120)
    return folder / FIGURE
