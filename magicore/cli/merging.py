"""What ``magicore merge`` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from magicore.ablations.comparison import method_row
from magicore.report.tables import method_table, show
from magicore.runtime.directory import CALIBRATION
from magicore.runtime.merge import Merged, merge_runs


def merge_shards(
    directories: Sequence[Path], out: Path, *, calibrate: bool, force: bool = False, as_json: bool = False
) -> None:
    """Merge, and say what came of it and what is next.

    Raises:
        MagicoreError: as :func:`magicore.runtime.merge.merge_runs`.
    """
    merged = merge_runs(directories, out, calibrate=calibrate, force=force)
    notes = Console(stderr=True, highlight=False)
    if as_json:
        sys.stdout.write(json.dumps(merged.summary or _calibrated_row(merged), indent=2) + "\n")
    elif merged.summary is not None:
        show(method_table([method_row(merged.config.method, merged.results, merged.summary["wall_s"])]))
    if merged.doubles:
        notes.print(f"{merged.doubles:,} samples of equal questions were drawn by several shards; the first is kept")
    if merged.failed:
        notes.print(
            f"[yellow]warning:[/] {merged.failed:,} of {merged.problems:,} problems failed; the next run tries again"
        )
    notes.print(f"{len(directories)} shards, {merged.problems:,} problems, written to {out}")
    if calibrate:
        notes.print(_next_step(merged, out))


def _calibrated_row(merged: Merged) -> dict[str, object]:
    stats = merged.stats
    return {
        "stage": "prepare",
        "n": merged.problems,
        "failed": merged.failed,
        "mu": None if stats is None else stats.mu,
        "sigma": None if stats is None else stats.sigma,
        "chains": 0 if stats is None else stats.n,
    }


def _next_step(merged: Merged, out: Path) -> str:
    if merged.stats is None:
        return "no chain has both scores, so there are no statistics; --stage finish routes without"
    if merged.config.calibration == "running":
        return f"next: the same command without --shard, with --out {out} and --stage finish"
    stats = merged.stats
    return (
        f"S over {stats.n:,} chains: mean {stats.mu:.4f}, standard deviation {stats.sigma:.4f}; next: the same command "
        f"with --stage finish, either without --shard and with --out {out}, or for each shard with --calibration "
        f"{out / CALIBRATION}"
    )
