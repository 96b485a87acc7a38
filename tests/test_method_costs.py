"""Calls and critical path of every method, on a model that gives every call the same latency."""

from __future__ import annotations

from typing import Any

import pytest

import magicore
from magicore.ablations.method_costs import CONFIGURATIONS, PROBLEM, cost_table, latency_server, measure


def counts(method: str, **options: Any) -> tuple[int, int]:
    cost = measure(method, options)
    return cost.calls, cost.path


@pytest.mark.parametrize(
    ("method", "options", "calls", "path"),
    [
        ("cot", {}, 1, 1),
        ("self-consistency", {"k": 40}, 1, 1),
        ("mars", {}, 5, 4),  # author, 2 reviewers, meta-reviewer, rebuttal
        ("mars", {"max_rounds": 2}, 9, 7),
        ("debate", {}, 6, 2),
        ("debate", {"agents": 4, "rounds": 3}, 12, 3),
        ("peer-review", {}, 12, 3),  # 3 solve, 6 review, 3 revise
        ("peer-review", {"agents": 4}, 20, 3),
        ("peer-review", {"rounds": 4}, 39, 9),
        ("self-reflection", {}, 2, 2),
        ("self-correction", {}, 3, 3),
        ("self-refine", {"iterations": 4}, 9, 9),
        ("self-refine+sc", {"k": 5, "iterations": 2}, 21, 5),
        ("magicore", {"k": 5, "router": "hard", "iterations": 2}, 21, 5),
        ("magicore", {"k": 5, "router": "hard", "iterations": 2, "review": "none"}, 11, 3),
        ("magicore", {"k": 5, "router": "hard", "iterations": 1, "review": "mars", "reviewers": 3}, 26, 4),
        ("magicore", {"k": 5, "router": "easy"}, 1, 1),
    ],
)
def test_calls_and_critical_path(method: str, options: dict[str, Any], calls: int, path: int) -> None:
    assert counts(method, **options) == (calls, path)


def test_mars_calls_grow_linearly_in_reviewers_and_its_path_not_at_all() -> None:
    measured = [counts("mars", reviewers=m) for m in (1, 2, 3, 5, 9, 16)]
    assert measured == [(m + 3, 4) for m in (1, 2, 3, 5, 9, 16)]


def test_the_table_has_every_configuration() -> None:
    table = cost_table()
    assert table.row_count == len(CONFIGURATIONS) and len(table.columns) == 6


def test_the_latency_server_is_an_endpoint_of_its_own() -> None:
    with latency_server(0.0) as url:
        run = magicore.solve_batch([PROBLEM], model=f"openai:costs@{url}", method="mars", progress=False)
    assert run.results[0].answer == "5" and sum(entry.usage.calls for entry in run.results[0].usage) == 5
