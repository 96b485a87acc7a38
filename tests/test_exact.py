"""The exact truth of generated steps as a process reward model."""

from __future__ import annotations

import pytest

from magicore.datasets.families import draw_family
from magicore.errors import InputError
from magicore.evaluate.exact import exact
from reward_models import Solution, load_process_model, parse_model_name
from reward_models.arithmetic import RIGHT, WRONG

NAME = "exact:gen:stories:3:5:train"


def test_worked_solutions_are_right_and_a_wrong_sum_is_not() -> None:
    model = load_process_model(NAME)
    drawn = draw_family("stories", 3, 5, "train")[2]
    wrong = "\n".join(drawn.steps).replace(drawn.steps[0], "Step 1: 1 + 1 = 3.")
    [right, broken] = model.score(
        [Solution(question=drawn.question, text=text) for text in ("\n".join(drawn.steps), wrong)]
    )
    assert [one.value for one in right.scores] == [RIGHT] * len(drawn.steps)
    assert broken.scores[0].value == WRONG


def test_what_is_not_known_is_unscored() -> None:
    model = exact(parse_model_name(NAME))
    known = draw_family("stories", 1, 5, "train")[0].question
    [talk, other] = model.score(
        [
            Solution(question=known, text="Step 1: Let us see.\nStep 2: 1 + 1 = 3."),
            Solution(question="What is 1 + 1?", text="Step 1: 1 + 1 = 2.\nStep 2: The final answer is 2."),
        ]
    )
    assert [one.value for one in talk.scores] == [None, WRONG]
    assert [one.value for one in other.scores] == [None, None]
    assert other.scores[0].unscored is not None
    assert other.scores[0].unscored.code == "no_truth"


@pytest.mark.parametrize("name", ["exact:gen:sums:3", "exact:stories", "exact"])
def test_names_of_no_family(name: str) -> None:
    with pytest.raises(InputError, match=r"only the steps of stories|write gen:NAME:N:SEED"):
        exact(parse_model_name(name))
