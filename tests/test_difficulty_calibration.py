"""Statistics of S: populations, shards, files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difficulty import (
    CalibrationError,
    CalibrationSample,
    RewardStats,
    RunningStats,
    batch_stats,
    first_chain_stats,
    load_calibration,
    save_calibration,
)

combined = st.lists(st.one_of(st.none(), st.floats(0, 2)), max_size=40)
scored = combined.filter(lambda values: any(value is not None for value in values))


def test_batch_statistics_by_hand() -> None:
    stats = batch_stats([0.5, None, 1.0, 1.5, None], orm="o", prm="p", aggregation="prod")
    assert stats == RewardStats(
        mu=1.0, sigma=math.sqrt(0.5 / 3), n=3, population="batch", orm="o", prm="p", aggregation="prod"
    )


def test_sigma_is_over_the_population_and_two_passes_are_exact() -> None:
    assert batch_stats([0.25, 0.75]).sigma == 0.25  # ddof 1 would give 0.3536
    assert batch_stats([0.1] * 10).mu == 0.1  # a running sum gives 0.09999999999999999
    assert batch_stats([2.0]).sigma == 0.0


@settings(deadline=None)
@given(values=scored, data=st.data())
def test_shards_merge_to_the_statistics_of_one_run_to_the_bit(values: list[float | None], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))
    cut = data.draw(st.integers(0, len(values)))
    shards = CalibrationSample.of(shuffled[cut:]), CalibrationSample.of(shuffled[:cut])
    merged = CalibrationSample.of([]).merge(*shards)
    assert merged.stats() == batch_stats(values)
    assert merged.missing == values.count(None)


@settings(deadline=None)
@given(values=scored, data=st.data())
def test_the_running_estimate_ends_near_the_batch_and_says_what_it_is(
    values: list[float | None], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(values)))
    running = RunningStats().add(values[:cut]).add(values[cut:])
    stats, batch = running.stats(prm="p"), batch_stats(values)
    assert stats is not None
    assert stats.mu == pytest.approx(batch.mu, abs=1e-9)
    assert stats.sigma == pytest.approx(batch.sigma, abs=1e-6)
    assert (stats.n, stats.population, stats.prm) == (batch.n, "running", "p")
    assert running.missing == values.count(None)


def test_a_running_estimate_starts_with_nothing_and_is_never_changed() -> None:
    empty = RunningStats()
    assert empty.stats() is None
    assert empty.add([None]).stats() is None
    empty.add([1.0])
    assert empty.n == 0


def test_the_published_population_is_the_first_chain_of_each_problem() -> None:
    stats = first_chain_stats([[0.5, 9.0], [1.5], [], [None, 9.0]])
    assert stats == RewardStats(mu=1.0, sigma=0.5, n=2, population="first")


def test_nothing_scored_is_an_error_that_says_so() -> None:
    with pytest.raises(CalibrationError, match="none of the 2 chains has both"):
        batch_stats([None, None])
    with pytest.raises(CalibrationError, match="pass None for a chain without one"):
        batch_stats([0.5, float("nan")])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"mu": float("nan")}, "finite"),
        ({"sigma": -0.1}, "cannot be negative"),
        ({"n": 0}, "at least one scored chain"),
        ({"population": "bacth"}, "unknown population 'bacth': it is one of batch, first, running, fixed"),
    ],
)
def test_impossible_statistics_are_refused(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        RewardStats(**{"mu": 1.0, "sigma": 0.4, "n": 5, "population": "batch", **broken})


@settings(deadline=None)
@given(mu=st.floats(0, 2), sigma=st.floats(0, 1))
def test_a_file_gives_back_the_same_bits(mu: float, sigma: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("calibration") / "calibration.json"
    stats = RewardStats(mu=mu, sigma=sigma, n=7, population="batch", orm="a", prm=None, aggregation="min")
    save_calibration(stats, path)
    assert load_calibration(path) == stats
    assert list(json.loads(path.read_text())) == [
        "mu",
        "sigma",
        "n",
        "population",
        "orm",
        "prm",
        "aggregation",
        "version",
    ]
    assert [entry.name for entry in path.parent.iterdir()] == ["calibration.json"]


def test_a_file_by_hand_needs_mu_and_sigma_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"mu": 1, "sigma": 0.4, "note": "from the paper"}')
    assert load_calibration(path) == RewardStats(mu=1.0, sigma=0.4, n=1, population="fixed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1, 2]", "one JSON object"),
        ('{"sigma": 0.4}', "mu is missing"),
        ('{"mu": "1", "sigma": 0.4}', "mu must be a number: got '1'"),
        ('{"mu": NaN, "sigma": 0.4}', "finite"),
        ('{"mu": 1, "sigma": true}', "sigma must be a number"),
        (f'{{"mu": 1{"0" * 400}, "sigma": 1}}', "mu must be a finite number"),
        ('{"mu": 1, "sigma": 1, "n": 2.5}', "n must be a whole number"),
        ('{"mu": 1, "sigma": 1, "population": "all"}', "unknown population 'all'"),
        ('{"mu": 1, "sigma": 1, "orm": 3}', "orm must be text or null"),
        ('{"mu": 1, "sigma": 1, "version": 2}', "has version 2; this release reads version 1"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_damaged_file_gives_one_sentence_with_its_name(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CalibrationError, match="damaged.json.*" + message):
        load_calibration(path)


def test_a_file_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"cannot read calibration file .*absent.json: No such file"):
        load_calibration(tmp_path / "absent.json")
    with pytest.raises(CalibrationError, match="cannot write calibration file"):
        save_calibration(batch_stats([1.0]), tmp_path / "no folder" / "calibration.json")
