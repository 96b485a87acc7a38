"""scripts/step_judges.py: agreement of automatic labels with the truth."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from magicore.datasets.families import draw_family, family_id

JUDGES = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "step_judges.py"))


def test_agreement_by_n_is_the_mean_over_all_choices_of_n() -> None:
    drawn = draw_family("stories", 1, 5, "train")[0]
    steps = [*drawn.steps]
    wrong = steps[0].rsplit("=", 1)[0] + "= 9999."
    right_row: dict[str, Any] = {
        "id": family_id("stories", "train", 5, 0),
        "steps": steps,
        "trials": [{"reached": 1, "finished": 2}, *[None] * (len(steps) - 1)],
    }
    wrong_row = {**right_row, "steps": [wrong, *steps[1:]]}
    rows = JUDGES["agreement_rows"]([right_row, wrong_row], 2)
    # 1 of 2 completions reached the answer. With one of them: called right half of the time; with both: always.
    assert [row["right_called_right"] for row in rows] == pytest.approx([0.5, 1.0])
    assert [row["wrong_called_right"] for row in rows] == pytest.approx([0.5, 1.0])
    assert [row["agree"] for row in rows] == pytest.approx([0.5, 0.5])
    assert [row["steps"] for row in rows] == [2, 2]


def test_a_step_after_a_wrong_one_counts_as_wrong() -> None:
    drawn = draw_family("stories", 1, 5, "train")[0]
    steps = [drawn.steps[0].rsplit("=", 1)[0] + "= 9999.", *drawn.steps[1:]]
    row = {
        "id": family_id("stories", "train", 5, 0),
        "steps": steps,
        "trials": [{"reached": 0, "finished": 1} for _ in steps],
    }
    [found] = JUDGES["agreement_rows"]([row], 1)
    assert found["agree"] == 1.0
    assert found["right_called_right"] is None
