"""Any text ends in an answer or a reason: random texts, mutated responses, and texts made to hang."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magicore.answers import KINDS, extract
from magicore.answers.kinds import Kind
from magicore.answers.number import parse_number

FRAGMENTS = [
    r"\boxed{", "}", "{", "$", "$$", "(A)", "(X)", "Answer:", "the answer is", "####", "<think>", "</think>",
    "<answer>", "</answer>", r"\frac{", r"\text{", "−", "٣", "三", "½", "%", "1,234", "10^", "1e999999999", "**",
    "\x00", "\ud800", "\u202e", "\u200b", "Therefore", "not", "or", "yes", "no", "cannot be determined", "\n\n", '"',
    "'", "2:30", "1/0", "\\", "[", "]", "none of the above", "01/02/2020", "May 5, 2020", "=", "Let x be 3.",
    "So there are 5 left.",
]  # fmt: skip

RESPONSES = [
    "Thoughts: 1. Ann has 3 boxes of 4 pens, so 3 * 4 = 12.\n2. She gives 5 away: 12 - 5 = 7.\n\nAnswer: 7 pens",
    r"We find $x = \frac{-b}{2a}$, hence the answer is $\boxed{\frac{3}{4}}$.",
    "The table lists 4 animals. Therefore, the correct answer is (D) 4, not (C) 3.",
    "Yes, it could. However, it depends. In conclusion, the answer is: No.",
    "The first flight was on 17 December 1903.\nFinal answer: December 17, 1903",
]

HOSTILE = [
    r"\boxed{" * 20000, r"\boxed" + "{" * 5000 + "1" + "}" * 5000, r"\boxed{} " * 10000, "Answer: x\n" * 10000,
    "answer is " + " " * 100000 + "5", "answer:" + "\n" * 100000 + "5", "answer to the question of " * 4000,
    'answer to "' * 10000, "$" * 100001, "1," * 50000 + "x", "7" * 100000, "1." * 50000, "A) " * 30000, "(A) " * 25000,
    "not A or B " * 9000, "not " + "a " * 50000, "yes and no, " * 8000, "cannot be determined " * 5000, "(" * 100000,
    "<think>" * 20000 + "x" + "</think>" * 19999 + "5", "<answer>" * 12000, "<<" * 50000, "#### " * 20000, "= " * 50000,
    "The answer is 5" + "\u0301" * 20000, r"\frac{1}{" * 10000, "01/02/2020 " * 9000, "-" * 100000 + "5",
    "in a, " * 16000,
    r"\boxed{1" + " " * 100000 + "2}", "Question:\n" * 10000, ": " * 50000, "三" * 100000, "10^" * 33000,
]  # fmt: skip


def check(text: str, kind: Kind, **how: Any) -> None:
    found = extract(text, kind, **how)
    assert (found.value is None) != (found.reason is None)
    if found.value is None:
        assert (found.text, found.span, found.certainty) == (None, None, None)
        return
    assert found.value and found.span is not None and text[slice(*found.span)] == found.text
    if kind == "number":
        assert parse_number(found.value) is not None
    if kind == "yesno":
        assert found.value in {"yes", "no"}
    if kind == "choice":
        assert found.value.isalpha() and found.value.isupper()


@given(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=20)), max_size=30).map(" ".join),
    st.sampled_from(KINDS),
    st.sampled_from(["stop", "length"]),
    st.sampled_from([None, "boxed", "hash", "letter"]),
)
@settings(max_examples=500, deadline=None)
def test_any_text_ends_in_an_answer_or_a_reason(text: str, kind: Kind, stop: str, asked: str | None) -> None:
    check(text, kind, stop=stop, asked=asked)


def mutated(text: str, rng: random.Random) -> str:
    letters = list(text)
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(len(letters) + 1)
        match rng.randrange(4):
            case 0:
                letters[at:at] = rng.choice(FRAGMENTS) * rng.randrange(1, 20)
            case 1:
                del letters[at : at + rng.randrange(1, 40)]
            case 2:
                start = rng.randrange(len(letters) + 1)
                letters[at:at] = letters[start : start + rng.randrange(1, 80)]
            case _:
                letters[at : at + 1] = chr(rng.randrange(0x110000))
    return "".join(letters)


def recorded(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines()[:40]:
            row = json.loads(line)
            yield from (text for text in row.get("responses", [row.get("response"), row.get("author")]) if text)


def test_mutated_responses_end_in_an_answer_or_a_reason() -> None:
    rng = random.Random(0)
    for _ in range(400):
        text = mutated(rng.choice(RESPONSES), rng)
        for kind in KINDS:
            check(text, kind, stop=rng.choice(["stop", "length"]), options=rng.choice([None, ["4", "five", "x"]]))


def test_ten_thousand_mutated_recorded_responses(shared_data: Path) -> None:
    rng = random.Random(1)
    texts = list(recorded(shared_data / "replay"))
    for count in range(10_000):
        check(mutated(rng.choice(texts), rng), KINDS[count % len(KINDS)], stop=rng.choice(["stop", "length"]))
        if count == 2000:
            highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - highest
    assert grown < highest / 10, f"the most memory held grew by {grown} in the last 8,000 texts"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_texts_made_to_hang_are_read_in_time(text: str) -> None:
    for kind in KINDS:
        check(text, kind)


def test_a_long_response_is_read_to_its_end() -> None:
    assert extract("reasoning " * 50_000 + r"\boxed{42}", "number").value == "42"
    assert extract(" ".join([r"\boxed{9}"] * 400) + r" \boxed{42}", "number").value == "42"
    assert extract(r"\boxed{" * 3000 + "7" + "}" * 3000, "math").value == "7"
