"""A calibration from a finished run: mean and standard deviation of S over its first chains."""

from __future__ import annotations

from pathlib import Path

from difficulty import CalibrationSample, RewardStats, load_calibration, save_calibration
from magicore.chains import FAMILY_AGGREGATION
from magicore.config import load_config
from magicore.errors import InputError
from magicore.store.chain_rows import read_chain_row
from magicore.store.json_lines import read_json_lines

CHAINS, CONFIG, CALIBRATION = "chains.jsonl", "config.toml", "calibration.json"


def calibrate(directory: str | Path, out: str | Path | None = None) -> tuple[RewardStats, Path]:
    """Make a calibration file from a run of any method that had an outcome and a process model.

    The population is the paper's: every chain of round 0 that has both scores, abstaining ones included. A run that was
    routed by its own batch has this file already.

    Args:
        directory: The run's directory.
        out: The file to write; by default ``calibration.json`` in the directory.

    Returns:
        The statistics, and where they are.

    Raises:
        InputError: The directory holds no finished run, or was routed by other statistics and no ``out`` is given.
        CalibrationError: No chain has both scores, or the file cannot be written.
    """
    folder = Path(directory)
    if not (folder / CHAINS).is_file():
        raise InputError(f"{folder} holds no {CHAINS}: name the directory of a finished run")
    config = load_config(folder / CONFIG, {})
    stats = CalibrationSample.of(_first_scores(folder / CHAINS)).stats(
        orm=config.orm,
        prm=config.prm,
        aggregation=None if config.aggregation == FAMILY_AGGREGATION else config.aggregation,
    )
    own = folder / CALIBRATION
    path = own if out is None else Path(out)
    if own.is_file():
        routed = load_calibration(own)
        if (routed.mu, routed.sigma, routed.n) == (stats.mu, stats.sigma, stats.n):
            stats = routed
        elif path.resolve() == own.resolve():
            raise InputError(f"{own} says what the run was routed by, which is something else; give --out FILE")
    save_calibration(stats, path)
    return stats, path


def _first_scores(chains: Path) -> list[float | None]:
    """S of every chain of round 0."""
    records = (read_chain_row(row, where) for where, row in read_json_lines(chains) if row.get("round") == 0)
    return [record.scored.combined for record in records]
