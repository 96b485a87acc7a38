"""A synthetic run of known truth: what is estimated from it agrees with closed forms and with direct simulation.

Bounds are four standard errors of the Monte-Carlo error that each comment states; seeds are fixed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, norm

from difficulty import Evidence, MagicoreRouter, OracleRouter, batch_stats, compare_verdicts
from magicore.ablations.finished import read_run
from magicore.ablations.subsets import expected_accuracy, expected_coverage
from magicore.ablations.thresholds import sweep
from magicore.ablations.trajectories import RoundArrays, Trajectories, initial_arrays, routed, trajectories
from magicore.errors import InputError
from magicore.evaluate import paired_bootstrap, wilson
from magicore.evaluate.ranking import auroc
from magicore.testing.synthetic import SyntheticTruth, draw, synthetic_run
from magicore.voting import AGGREGATIONS, vote

TRUTH = SyntheticTruth(problems=8_000, k=5, alpha=1.5, beta=1.2, wrong_answers=1)


def within(estimate: float, truth: float, standard_error: float) -> None:
    assert abs(estimate - truth) < 4 * standard_error, (estimate, truth, standard_error)


def best_of_k(truth: SyntheticTruth, k: int) -> float:
    """The probability that the chain with the largest of k scores is right, integrated over score and q."""
    d = truth.separation(truth.orm_auroc)
    x = np.linspace(-8, 8 + d, 2001)[None, :]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    q = ((nodes + 1) / 2)[:, None]
    below = q * norm.cdf(x, d) + (1 - q) * norm.cdf(x)
    given = np.trapezoid(k * q * norm.pdf(x, d) * below ** (k - 1), x[0], axis=1)
    return float((weights / 2 * given * beta_distribution(truth.alpha, truth.beta).pdf(q[:, 0])).sum())


@pytest.fixture(scope="module")
def arrays() -> RoundArrays:
    return draw(TRUTH)


def test_accuracies_and_coverage_agree_with_closed_forms(arrays: RoundArrays) -> None:
    """8,000 problems: the standard error of a share is at most 0.5 / sqrt(8,000) = 0.0056."""
    error = 0.5 / math.sqrt(TRUTH.problems)
    found = expected_accuracy(arrays, 5, aggregations=(*AGGREGATIONS[:2], ("best-of-k", "o")))
    within(found["cot", None].right.mean(), TRUTH.chain_accuracy, error)
    majority = float(betabinom(5, TRUTH.alpha, TRUTH.beta).sf(2))  # 3 or more of 5, one wrong answer only
    within(found["self-consistency", None].right.mean(), majority, error)
    within(found["best-of-k", "o"].right.mean(), best_of_k(TRUTH, 5), error)
    for k in (1, 3, 5):
        within(float(expected_coverage(arrays, k).mean()), TRUTH.coverage(k), error)
        best = expected_accuracy(arrays, k, aggregations=[("best-of-k", "o")])["best-of-k", "o"]
        assert best.how == "exact"
        within(best.right.mean(), best_of_k(TRUTH, k), error)


def test_scores_have_the_auroc_that_was_set(arrays: RoundArrays) -> None:
    """40,000 chains: the standard error of an AUROC is below 0.003 (Hanley and McNeil, 1982)."""
    right = arrays.right.ravel().tolist()
    for scores, wanted in ((arrays.table.o, TRUTH.orm_auroc), (arrays.table.s, TRUTH.prm_auroc)):
        found = auroc(scores.ravel().tolist(), right)
        assert found is not None
        within(found, wanted, 0.003)


def test_precision_and_recall_agree_with_a_direct_simulation() -> None:
    """Other problems, one by one through the routers' own classes, against the arrays' sweep."""
    truth = SyntheticTruth(problems=1500, k=6, alpha=0.8, beta=1.0)
    here, other = draw(truth), draw(truth, problems=2000, seed=7)
    stats = batch_stats(here.table.combined.ravel().tolist())

    def alone(arrays: RoundArrays) -> tuple[float, float, int, int]:
        verdicts, oracle = [], []
        for at in range(arrays.right.shape[0]):
            classes, o, s = (values[at].tolist() for values in (arrays.table.classes, arrays.table.o, arrays.table.s))
            chosen = vote(classes, o, s).chosen
            evidence = Evidence(classes=classes, o=o, s=s, stats=stats, coarse_correct=bool(arrays.right[at, chosen]))
            verdicts.append(MagicoreRouter()(evidence))
            oracle.append(OracleRouter()(evidence))
        found = compare_verdicts(verdicts, oracle)
        assert found.precision is not None and found.recall is not None
        hard = found.hard_as_hard + found.easy_as_hard
        return found.precision, found.recall, hard, found.hard_as_hard + found.hard_as_easy

    taken = Trajectories(
        ids=tuple(map(str, range(1500))), graded=np.ones(1500, bool), rounds=(here,), closed=np.zeros(1500, bool)
    )
    _, counted = sweep(taken, stats, "magicore", [0.0], [0.5])
    precision, recall, *_ = alone(here)
    assert (counted.precision[0], counted.recall[0]) == pytest.approx((precision, recall), abs=1e-12)
    precision, recall, routed_hard, hard = alone(other)
    # two samples: the variances of both shares add up
    within(counted.precision[0], precision, math.sqrt(0.25 / routed_hard + 0.25 / (routed_hard * 1500 / 2000)))
    within(counted.recall[0], recall, math.sqrt(0.25 / hard + 0.25 / (hard * 1500 / 2000)))


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """500 samples of 100 problems: the standard error of a coverage of 95 % is sqrt(.95 * .05 / 500) = 0.0097."""
    majority = float(betabinom(5, TRUTH.alpha, TRUTH.beta).sf(2))
    gain = best_of_k(TRUTH, 5) - majority
    big = draw(TRUTH, problems=50_000, seed=3)
    sc = big.right_by("self-consistency").reshape(500, 100)
    best = big.right_by("best-of-k").reshape(500, 100)
    covered = paired = 0
    for at in range(500):
        low, high = wilson(int(sc[at].sum()), 100)
        covered += low <= majority <= high
        low, high = paired_bootstrap(best[at].tolist(), sc[at].tolist(), resamples=400, seed=at)
        paired += low - 1e-12 <= gain <= high + 1e-12
    within(covered / 500, 0.95, 0.0097)
    # A percentile interval of 100 differences in {-1, 0, 1} is a little too narrow: about 94 %.
    within(paired / 500, 0.945, 0.0102)


def test_a_run_directory_of_the_truth_is_a_real_run(tmp_path: Path) -> None:
    truth = SyntheticTruth(problems=60, k=4, fix=0.5, spoil=0.0, seed=4)
    run = synthetic_run(tmp_path / "run", truth)
    found = read_run(tmp_path / "run")
    arrays = initial_arrays(found)
    assert arrays.right.shape == (60, 4) and found.graded and found.unread is None
    within(arrays.right.mean(), truth.chain_accuracy, math.sqrt(1 / 12 / 60 + 0.25 / 240))
    # s is the product of the steps; nothing was spoilt, and a wrong chain was mended every other time
    assert not np.isnan(arrays.table.combined).any()
    taken = trajectories(found)
    parents = {record.scored.chain.id: record for chains in found.chains.values() for record in chains}
    pairs = [(parents[r.scored.chain.parent], r) for r in parents.values() if r.scored.chain.parent]
    mended = [new.scored.chain.answer == "1" for old, new in pairs if old.scored.chain.answer != "1"]
    assert all(new.scored.chain.answer == "1" for old, new in pairs if old.scored.chain.answer == "1")
    within(float(np.mean(mended)), 0.5, 0.5 / math.sqrt(len(mended)))
    # the last round's vote is what the run answered
    hard = routed(taken, [np.zeros((1, 60), bool)] * 2)
    assert hard.right[0].tolist() == [result.correct for result in run.results]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["correct"] == int(hard.right.sum())


def test_an_impossible_truth_is_refused() -> None:
    wrong: tuple[dict[str, Any], ...] = ({"orm_auroc": 1.0}, {"alpha": 0.0}, {"fix": 1.5}, {"k": 0})
    for settings in wrong:
        with pytest.raises(InputError):
            SyntheticTruth(**settings)
