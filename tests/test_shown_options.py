"""Options in a field of their own reach the solver, the reviewers and the reward models."""

from __future__ import annotations

from collections.abc import Sequence

import magicore
from magicore.datasets.options import with_options
from magicore.llms.scripted import ScriptedModel
from reward_models import OutcomeScore, Solution

QUESTION = {"id": "q", "question": "Which of them is prime?", "options": ["4", "7", "9"], "answer": "B"}
SHOWN = "Which of them is prime?\n(A) 4\n(B) 7\n(C) 9"


class Seen:
    """Keeps the questions it is asked about."""

    name = "seen"

    def __init__(self) -> None:
        self.questions: set[str] = set()

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        self.questions |= {solution.question for solution in solutions}
        return [OutcomeScore(value=0.5) for _ in solutions]


def test_models_see_the_options() -> None:
    seen, asked = Seen(), ScriptedModel(lambda request, index: "The final answer is (B).")
    run = magicore.solve_batch([QUESTION], model=asked, orm=seen, method="best-of-k", k=2)
    assert run.results[0].correct is True
    assert seen.questions == {SHOWN}


def test_options_that_the_question_lists_are_not_listed_again() -> None:
    question = "Which of them is prime? Options: (A) 4 (B) 7 (C) 9"
    assert with_options(question, ["4", "7", "9"]) == question
    assert with_options("No options", None) == "No options"
    assert with_options("Is it 4 or 7?", ["4", "7"]) == "Is it 4 or 7?\n(A) 4\n(B) 7"
