#!/usr/bin/env python3
"""Time re-voting a whole benchmark by every aggregation, and re-routing it at many thresholds.

The table is synthetic but shaped like a run: each problem has a right answer that its chains reach with the problem's
own probability, a few wrong ones, some chains without an answer or a score, and rewards that know a little. What is
timed is what `magicore` does with a finished run once answers are keyed.

    python scripts/bench_votes.py
    python scripts/bench_votes.py --problems 500 --chains 40 --json votes.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from difficulty import batch_stats, condition_arrays
from magicore.vote_table import VoteTable
from magicore.voting import AGGREGATIONS, vote, vote_all, vote_table

ABSTAINING, UNSCORED = 0.03, 0.02  # shares of the chains without an answer, of the scores that are missing


def synthetic_table(problems: int, chains: int, seed: int) -> VoteTable:
    """A seeded table in which class 0 is right."""
    random = np.random.default_rng(seed)
    shape = (problems, chains)
    right = random.random(shape) < random.beta(2, 1, size=(problems, 1))
    wrong = 1 + np.minimum(random.geometric(0.3, size=shape), 30)
    classes = np.where(random.random(shape) < ABSTAINING, -1, np.where(right, 0, wrong))

    def score(knowledge: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        raw = random.normal(size=shape) + knowledge * right
        return np.where(random.random(shape) < UNSCORED, np.nan, 1 / (1 + np.exp(-raw)))

    return VoteTable(
        classes=classes.astype(np.int64),
        o=score(1.0),
        s=score(0.7),
        logprob=-random.gamma(2.0, 0.1, size=shape),
        include=np.ones(shape, dtype=np.bool_),
    )


def timed(work: Callable[[], object], repeat: int) -> float:
    """Median seconds of several runs."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def disagreements(table: VoteTable, sample: int) -> int:
    """How many votes of the first problems differ between the table and the votes taken one by one (0 is right)."""
    count = 0
    for (method, weights), found in vote_all(table).items():
        for row in range(min(sample, len(found.winner))):
            o, s, logprob = (
                [None if np.isnan(value) else float(value) for value in values[row]]
                for values in (table.o, table.s, table.logprob)
            )
            classes = [None if value < 0 else int(value) for value in table.classes[row]]
            one = vote(classes, o, s, method, weights, logprob=logprob)
            count += found.winner[row] != (-1 if one.winner is None else one.winner)
    return int(count)


def measure(table: VoteTable, repeat: int, pairs: int) -> dict[str, object]:
    """Seconds for each aggregation, all of them, all of them for many k, and a sweep of both thresholds."""
    problems, chains = table.classes.shape
    stats = batch_stats(None if np.isnan(value) else float(value) for value in table.combined.ravel())
    z_thresholds = np.linspace(-2, 2, pairs)
    confidence_thresholds = np.linspace(0, 1, pairs)

    def reroute() -> object:
        return condition_arrays(table.classes, table.o, table.s, stats).easy(z_thresholds, confidence_thresholds)

    sizes = sorted({2**power for power in range(chains.bit_length()) if 2**power <= chains} | {chains})
    return {
        "problems": problems,
        "chains": chains,
        "each_s": {
            f"{method}:{weights}" if weights else method: timed(partial(vote_table, table, method, weights), repeat)
            for method, weights in AGGREGATIONS
        },
        "all_aggregations_s": timed(lambda: vote_all(table), repeat),
        "sizes": sizes,
        "all_aggregations_at_all_sizes_s": timed(lambda: [vote_all(table.first(k)) for k in sizes], repeat),
        "threshold_pairs": pairs,
        "reroute_all_pairs_s": timed(reroute, repeat),
        "disagreements_with_single_votes": disagreements(table, sample=50),
        "machine": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()},
    }


def main() -> None:
    """Parse the options, measure, and show or save the figures."""
    parser = argparse.ArgumentParser(description="Time re-voting and re-routing a whole benchmark.")
    parser.add_argument("--problems", type=int, default=1319, help="how many problems (default: GSM8K's 1,319)")
    parser.add_argument("--chains", type=int, default=120, help="chains a problem (default 120)")
    parser.add_argument("--pairs", type=int, default=100, help="threshold pairs of the sweep (default 100)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of which the median is taken (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the synthetic table (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    options = parser.parse_args()
    for name in ("problems", "chains", "pairs", "repeat"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    figures = measure(synthetic_table(options.problems, options.chains, options.seed), options.repeat, options.pairs)
    text = json.dumps(figures, indent=2) + "\n"
    if options.json is not None:
        try:
            options.json.write_text(text, encoding="utf-8")
        except OSError as error:
            parser.error(f"cannot write {options.json}: {error.strerror}")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
