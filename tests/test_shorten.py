"""Conversations that do not fit: shortened by rule, and that is said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import magicore
from fake_endpoint import completion, serving
from family import PROBLEM, Script, answer, refused, solve, verdict
from magicore.errors import ContextExceeded
from magicore.llms.base import Generation, Message, Request
from magicore.llms.scripted import ScriptedModel, count_tokens
from magicore.methods.debate import Debate
from magicore.methods.mars import Mars
from magicore.methods.self_consistency import SelfConsistency
from magicore.methods.self_refine import SelfRefine
from magicore.runtime.shorten import SHORTEST, shortened


def turns(*texts: str) -> tuple[Message, ...]:
    """A system message, then user and assistant in turn."""
    roles = ["system", *["user", "assistant"] * len(texts)]
    return tuple(Message(role=role, content=text) for role, text in zip(roles, texts, strict=False))


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message["content"] for message in messages]


def test_examples_go_first_then_the_oldest_turns_then_the_middle_of_the_last() -> None:
    last = "A" * 600 + "B" * 600
    forms = list(
        shortened(
            turns("sys", "ex q", "ex a", "question", "reply 1", "told 1", "reply 2", last),
            {("user", "ex q"), ("assistant", "ex a")},
        )
    )
    assert [texts(form) for form in forms[:3]] == [
        ["sys", "question", "reply 1", "told 1", "reply 2", last],
        ["sys", "question", "reply 2", last],
        ["sys", f"question\n\n{last}"],
    ]
    for form in forms[3:]:
        assert texts(form)[0] == "sys" and form[-1]["content"].startswith("question")
        assert form[-1]["content"].endswith("B" * 100) and "[... left out ...]" in form[-1]["content"]
    assert len(forms[-1][-1]["content"]) <= SHORTEST


def size(messages: tuple[Message, ...]) -> int:
    """Characters, and a few for each message, as every chat template has them."""
    return sum(len(text) + 3 for text in texts(messages))


@given(st.lists(st.text(max_size=900), min_size=1, max_size=9))
def test_every_form_is_shorter_and_keeps_roles_in_turn(given_texts: list[str]) -> None:
    messages = turns("sys", *given_texts)
    if messages[-1]["role"] != "user":
        messages = messages[:-1]
    length = size(messages)
    for form in shortened(messages, frozenset()):
        assert size(form) < length
        length = size(form)
        assert form[0] == messages[0] and form[-1]["role"] == "user"
        assert all(one["role"] != other["role"] for one, other in pairwise(form))


class SmallModel(ScriptedModel):
    """Reads at most ``context`` white-space tokens."""

    def __init__(self, script: Script, context: int) -> None:
        super().__init__(script, name="small")
        self.context = context

    async def generate(self, request: Request) -> Generation:
        if sum(count_tokens(turn["content"]) for turn in request.messages) > self.context:
            raise ContextExceeded("too long", model=self.name)
        return await super().generate(request)


def test_a_long_debate_is_shortened_and_says_so() -> None:
    long = answer(72, *["word " * 150] * 2)
    script = Script({"solver": long})
    result = solve(Debate(agents=2, rounds=3), script, models={"solver": SmallModel(script, 900)})
    assert result.answer == "72" and len(result.rounds) == 3
    assert "a solver conversation was shortened to fit the context of small" in result.warnings
    (message,) = [r.messages for r in script.of("solver", 2) if r.key.instance == 0]
    assert message[1]["content"] == PROBLEM.question  # the question stays
    assert "Agent 2's solution" in message[-1]["content"]


def test_worked_examples_go_before_anything_that_was_said() -> None:
    script = Script({"solver": answer(5), "reviewer": "Step 1 is wrong.", "refiner": answer(72)})
    result = solve(SelfRefine(iterations=1), script, models={"reviewer": SmallModel(script, 130)})
    (request,) = script.of("reviewer")
    assert [turn["role"] for turn in request.messages] == ["system", "user"]
    assert answer(5) in request.messages[-1]["content"] and result.answer == "72"


def test_a_question_alone_is_never_cut() -> None:
    script = Script({"solver": answer(72)})
    result = solve(SelfConsistency(k=2), script, models={"solver": SmallModel(script, 5)})
    assert result.stop == "failed" and result.error is not None and result.error.type == "ContextExceeded"


def test_what_cannot_fit_the_context_in_a_model_s_table_is_shortened_before_it_is_sent() -> None:
    long = f"{'word ' * 200}The final answer is 72."
    settings: dict[str, Any] = {"method": "self-refine", "iterations": 1, "prompts": "raw", "max_tokens": 60}
    sent, warned = [], []
    for context in (300, 9000):
        with serving([completion(long), completion(long), completion("The final answer is 72.")]) as endpoint:
            table = {"name": "openai:m", "urls": [endpoint.url], "context": context}
            run = magicore.solve_batch(["How many?"], model="m", models={"m": table}, progress=False, **settings)
        assert run.results[0].answer == "72" and len(endpoint.bodies) == 3
        prompts = [[message["content"] for message in body["messages"]] for body in endpoint.bodies]
        sent.append(max(len(" ".join(texts).split()) for texts in prompts))
        warned.append(any("was shortened to fit the context of openai:m" in text for text in run.results[0].warnings))
    assert sent[0] + 60 <= 300 < sent[1] + 60
    assert warned == [True, False]


def test_what_never_fits_fails_by_itself() -> None:
    script = Script({"author": answer(72), "reviewer": verdict("right"), "meta-reviewer": refused()})
    result = solve(Mars(), script, models={"reviewer": SmallModel(script, 3)})
    assert result.answer == "72" and any("2 of 2 reviews" in warning for warning in result.warnings)


@pytest.mark.parametrize("messages", [(), turns("sys")[:1], turns("sys", "short")])
def test_nothing_to_shorten(messages: tuple[Message, ...]) -> None:
    assert list(shortened(messages, frozenset())) == []
