"""A re-analysis at the size of GSM8K's test set: 1,319 problems x 120 chains over 100 pairs of router thresholds.

python scripts/bench_reanalysis.py [--problems 1319] [--chains 120] [--rounds 1]

Every pair routes every problem through all rounds and is counted against the oracle: precision, recall, hard rate and
accuracy. CPU time of this process is what counts; the wall time is beside it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console

from difficulty import batch_stats
from magicore.ablations.thresholds import CONFIDENCE_GRID, Z_GRID, sweep_rows
from magicore.ablations.trajectories import RoundArrays, Trajectories
from magicore.testing.synthetic import SyntheticTruth, draw

LIMIT_S = 10.0


def trajectories(problems: int, chains: int, rounds: int) -> Trajectories:
    """Rounds that grow better, of chains with the same truth."""
    arrays: list[RoundArrays] = [
        draw(SyntheticTruth(problems=problems, k=chains, alpha=1 + number), seed=number) for number in range(rounds + 1)
    ]
    return Trajectories(
        ids=tuple(map(str, range(problems))),
        graded=np.ones(problems, dtype=np.bool_),
        rounds=tuple(arrays),
        closed=np.zeros(problems, dtype=np.bool_),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--problems", type=int, default=1319)
    parser.add_argument("--chains", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    taken = trajectories(given.problems, given.chains, given.rounds)
    cpu, wall = time.process_time(), time.perf_counter()
    stats = batch_stats(taken.rounds[0].table.combined.ravel().tolist())
    rows = [row for row in sweep_rows(taken, stats) if row["router"] == "magicore"]
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    best = max(rows, key=lambda row: row["accuracy"] or 0.0)
    console = Console(highlight=False)
    console.print(
        f"{given.problems:,} problems x {given.chains} chains x {given.rounds + 1} rounds, {len(Z_GRID)} x "
        f"{len(CONFIDENCE_GRID)} = {len(rows)} pairs of thresholds: {cpu:.2f} s CPU, {wall:.2f} s wall "
        f"(limit {LIMIT_S:g} s)"
    )
    console.print(
        f"best pair: z >= {best['z_threshold']:g}, confidence >= {best['confidence_threshold']:g}: accuracy "
        f"{best['accuracy']:.4f}, precision {best['precision']:.3f}, recall {best['recall']:.3f}"
    )
    raise SystemExit(cpu > LIMIT_S)
