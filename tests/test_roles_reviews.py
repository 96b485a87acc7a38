"""Reading reviews as models write them: decision, confidence, justification, suggestions, answer."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.answers.review_fields import find_decision
from magicore.errors import InputError, UnknownNameError
from magicore.roles import ReviewFields, parse_review
from magicore.roles.names import check_role
from magicore.roles.reviewer import decision_probability, token_spans
from magicore.types import Completion

PLAIN = "Decision: wrong\nConfidence: 4\nJustification: Step 2 adds twice.\nAnswer: 18"


def test_the_form_that_is_asked_for() -> None:
    assert parse_review(PLAIN) == ReviewFields(
        decision="wrong", confidence=4.0, justification="Step 2 adds twice.", answer="18"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Answer: 18\nJustification: Step 2 adds twice.\nConfidence: 4\nDecision: wrong",
        "**Decision:** [wrong]\n**Confidence:** [4]\n**Justification:** Step 2 adds twice.\n**Answer:** [18]",
        "### Decision: Incorrect\n### Confidence: 4/5\n### Justification:\nStep 2 adds twice.\n### Answer: 18",
        "## Decision\nwrong\n\n## Confidence\n4\n\n## Justification\nStep 2 adds twice.\n\n## Answer\n18",
        "1. Decision: wrong\n2. Confidence: 4 out of 5\n3. Justification: Step 2 adds twice.\n4. Answer: 18",
        "Decision: wrong. Confidence: 80 %. Justification: Step 2 adds twice.\nRecommended answer: 18",
        "Decision: [right | wrong] wrong\nConfidence: [1-5] 4\nReasons: Step 2 adds twice.\nMy answer: 18",
        '{"decision": "wrong", "confidence": 4, "justification": "Step 2 adds twice.", "answer": "18"}',
        "- Decision: the answer is not correct\n- Confidence: High\n- Explanation: Step 2 adds twice.\n- Answer: 18",
        "Let me check.\n\nVerdict: wrong\nConfidence level: 4\nRationale: Step 2 adds twice.\nFinal answer: 18\n",
    ],
)
def test_the_same_review_as_models_write_it(text: str) -> None:
    assert parse_review(text) == parse_review(PLAIN)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Decision: right.", "right"),
        ("Decision: Correct", "right"),
        ("DECISION - WRONG", "wrong"),
        ("decision: not right", "wrong"),
        ("My decision is that the answer is wrong.", "wrong"),
        ("Decision: right\n...\nDecision: wrong", "wrong"),
        ("Decision: Inconclusive", None),
        ("Decision: [right | wrong]", None),
        ("Decision: right/wrong", None),
        ("Decision: right or wrong", None),
        ("Decision: partially right", None),
        ("The decision of the court was right.", None),
        ("The answer is wrong.", None),
        ("Decision:", None),
        ("", None),
    ],
)
def test_decisions_are_read_and_never_guessed(text: str, decision: str | None) -> None:
    assert parse_review(text).decision == decision


@pytest.mark.parametrize(
    ("text", "scale", "confidence"),
    [
        ("Confidence: 4", (1, 5), 4),
        ("Confidence: [4]", (1, 5), 4),
        ("Confidence: 4/5", (1, 5), 4),
        ("Confidence: 80 %", (1, 5), 4),
        ("Confidence: High", (1, 5), 4),
        ("Confidence: very low", (1, 5), 1),
        ("Confidence: 100%", (1, 10), 10),
        ("I am 9.5 out of 10 confident. Confidence in feedback: 9.5/10", (1, 10), 9.5),
        ("Confidence: 7", (1, 5), None),
        ("Confidence: some", (1, 5), None),
        ("I have no idea.", (1, 5), None),
    ],
)
def test_confidences(text: str, scale: tuple[int, int], confidence: float | None) -> None:
    assert parse_review(text, scale=scale).confidence == confidence


def test_fields_of_a_meta_review() -> None:
    fields = parse_review(
        "Decision: wrong\nJustification: a\nb\nSuggestions: count again,\nthen add.\n\nAnswer: **12** apples\nreally"
    )
    assert fields.justification == "a\nb" and fields.suggestions == "count again,\nthen add."
    assert fields.answer == "12 apples"
    assert parse_review("Decision: right\nSuggestions: None.\nAnswer: N/A") == ReviewFields(decision="right")


@given(st.text(max_size=300), st.sampled_from(["", "Decision: ", "Confidence: ", "\nAnswer: ", "Justification:"]))
def test_any_text_can_be_read(text: str, label: str) -> None:
    fields = parse_review(label + text)
    assert fields.decision in ("right", "wrong", None)
    assert fields.confidence is None or 1 <= fields.confidence <= 5
    found = find_decision(label + text)
    assert (None if found is None else found[0]) == fields.decision


def test_hard_cases_from_real_responses(shared_data: Path) -> None:
    checked = 0
    for line in (shared_data / "cases" / "answers.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["type"] == "decision":
            assert parse_review(case["text"]).decision == case["human_value"], case["case"]
        elif case["type"] == "confidence":
            scale = (1, 10) if "1 to 10" in case.get("note", "") else (1, 5)
            assert parse_review(case["text"], scale=scale).confidence == case["human_value"], case["case"]
        else:
            continue
        checked += 1
    assert checked > 10


def completion(text: str, *tokens: tuple[str, float]) -> Completion:
    return Completion(
        index=0,
        text=text,
        stop="stop",
        token_logprobs=tuple(value for _, value in tokens),
        top_logprobs=tuple(((token, value), ("other", value - 1)) for token, value in tokens),
    )


def test_the_probability_of_a_decision_is_the_mean_over_its_tokens() -> None:
    tokens = [("Decision", -1), (":", -1), (" in", math.log(0.9)), ("correct", math.log(0.7)), (".", -3)]
    assert decision_probability(completion("Decision: incorrect.", *tokens)) == pytest.approx(0.8)


def test_thinking_before_and_end_tokens_after_have_no_place() -> None:
    tokens = ["<think>", "wrong", "</think>", "Decision", ":", " wrong", "<|im_end|>"]
    assert token_spans("Decision: wrong", tokens) == [None, None, None, (0, 8), (8, 9), (10, 15), None]


@pytest.mark.parametrize(
    "one",
    [
        Completion(index=0, text="Decision: wrong", stop="stop"),
        Completion(index=0, text="no decision", stop="stop", token_logprobs=(-1.0,), top_logprobs=((("no", -1.0),),)),
        Completion(
            index=0, text="Decision: wrong", stop="stop", token_logprobs=(-1.0,), top_logprobs=((("x", -2.0),),)
        ),
    ],
)
def test_a_decision_whose_tokens_cannot_be_told_has_no_probability(one: Completion) -> None:
    assert decision_probability(one) is None


def test_role_names() -> None:
    for name in ("reviewer", "reviewer/1", "agent/0", "meta-reviewer", "planner-of-my-own"):
        check_role(name)
    with pytest.raises(UnknownNameError, match="did you mean 'reviewer'"):
        check_role("reviwer/1")
    with pytest.raises(InputError, match="with its number"):
        check_role("reviewer/first")
    with pytest.raises(InputError, match="agent/1"):
        check_role("agent")
