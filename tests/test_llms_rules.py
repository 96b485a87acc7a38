"""The rule behind ``--model scripted``: sums with slips, in the formats that the default prompts ask for."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from magicore.llms.base import Request, messages
from magicore.llms.rules import answer_by_rule
from magicore.types import CallKey


def request(text: str, role: str = "solver", system: str = "Solve it.") -> Request:
    return Request(messages=messages(("system", system), ("user", text)), key=CallKey(problem="p", role=role))


def answers(text: str) -> list[str]:
    """The final answers of sixty samples."""
    return [
        found[1]
        for index in range(60)
        if (found := re.search(r"The final answer is (.+)\.$", answer_by_rule(request(text), index)))
    ]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("What is 47 + 30 + 5?", "82"),
        ("Kofi has 34 books and gives away 27 of them. How many are left?", "7"),
        ("How many apples are in 7 boxes of 6 each?", "42"),
        ("Question: What is 2 + 3?\n\nSolution with step scores:\nStep 1 (score 2/10): 2 + 3 = 6\n\nFeedback:\n9", "5"),
    ],
)
def test_most_samples_are_right_and_some_are_not(question: str, right: str) -> None:
    found = answers(question)
    assert len(found) == 60
    assert max(set(found), key=found.count) == right
    assert found.count(right) < 60


def test_the_same_sample_is_the_same_and_others_are_not() -> None:
    asked = request("What is 47 + 30 + 5?")
    assert answer_by_rule(asked, 3) == answer_by_rule(asked, 3)
    assert len({answer_by_rule(replace(asked, seed=seed), 0) for seed in range(20)}) > 1


WRONG = "Question: What is 2 + 3?\n\nStep 1 (score 2/10): 2 + 3 = 6\nStep 2 (score 9/10): 6 - 1 = 5"
RIGHT = WRONG.replace("2 + 3 = 6", "2 + 3 = 5")


def test_each_role_answers_in_its_own_form() -> None:
    assert answer_by_rule(request(WRONG, "reviewer"), 0) == "Step 1 is wrong: compute it again."
    assert answer_by_rule(request(RIGHT, "reviewer"), 0) == "Every equation holds."
    assert answer_by_rule(request(WRONG, "verifier"), 0) == "no"
    assert answer_by_rule(request(RIGHT, "verifier"), 0) == "yes"
    assert answer_by_rule(request(WRONG, "confidence"), 0) == "20"
    joint = answer_by_rule(request(WRONG, "joint"), 0)
    assert re.match(r"Step 1 is wrong: .*\n\nImproved solution:\nStep 1: 2 \+ 3 = \d+\n", joint)


def test_the_format_that_is_asked_for_and_questions_without_numbers() -> None:
    boxed = request("What is 2 + 3?", system="End with \\boxed{X}.")
    assert re.search(r"\\boxed\{\d+\}", answer_by_rule(boxed, 0))
    assert "no number" in answer_by_rule(request("Why is the sky blue?"), 0)
