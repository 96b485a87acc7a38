"""Training from the command line: Ctrl-C once ends with a checkpoint, and the outcome in a few lines."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

import typer
from rich.console import Console

from magicore.cli.running import EXIT_INTERRUPTED
from magicore.training.config import TrainingConfig
from magicore.training.train import train


def train_file(kind: str, data: str, out: Path, settings: Mapping[str, Any], *, gold: str | None, force: bool) -> None:
    """Train and say what came of it."""
    chosen: dict[str, Any] = {"kind": kind, **settings}
    config = TrainingConfig(**chosen)
    with _ending_early() as asked:
        trained = train(config, data, out, gold=gold, force=force, stop=asked.is_set)
    console = Console(highlight=False, soft_wrap=True)
    recipe = trained.recipe
    if trained.interrupted:
        last = trained.curve[-1]
        console.print(f"interrupted after {last.step} of {recipe['total_steps']} steps; the same command goes on")
        raise typer.Exit(EXIT_INTERRUPTED)
    last = trained.curve[-1]
    figures = [f"{last.step} steps in {recipe['minutes']:g} minutes, {recipe['tokens_per_second']:,.0f} tokens/s"]
    if last.held_out_loss is not None:
        figures.append(f"held-out loss {last.held_out_loss:.4f}")
    if last.held_out_auroc is not None:
        figures.append(f"held-out AUROC {last.held_out_auroc:.3f}")
    console.print(", ".join(figures))
    for reason, count in recipe["left_out"].items():
        console.print(f"[yellow]{count:,} examples left out: {reason}[/]")
    console.print(f"loads as {trained.name}")


@contextmanager
def _ending_early() -> Iterator[Event]:
    """Set by the first Ctrl-C; the second one interrupts."""
    asked = Event()
    if current_thread() is not main_thread():
        yield asked
        return

    def first(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, first)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
