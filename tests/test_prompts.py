"""Prompt sets: loading, checking, filling."""

from __future__ import annotations

from pathlib import Path

import pytest

from magicore.answers.kinds import KINDS, Kind
from magicore.errors import InputError, UnknownNameError
from magicore.prompts import load_prompts, prompt_set_names
from magicore.prompts.loader import fill, parse_prompts


def test_filling_is_one_pass_and_leaves_latex_alone() -> None:
    template = "Q: {{question}} in \\boxed{x} and {{ solution }}"
    assert fill(template, {"question": "{{solution}}?", "solution": "S"}) == "Q: {{solution}}? in \\boxed{x} and S"


def test_raw_sends_the_question_unchanged() -> None:
    question = "  What?\n\n1 + 1  "
    (message,) = load_prompts("raw").messages("solver", "number", question=question)
    assert message == {"role": "user", "content": question}


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_set_asks_for_a_format_and_shows_exemplars_of_the_kind(kind: Kind) -> None:
    prompts = load_prompts("default")
    solver = prompts.messages("solver", kind, question="Q?")
    assert prompts.formats[kind] in solver[0]["content"] and solver[-1]["content"] == "Q?"
    for role in ("reviewer", "refiner"):
        values = {"question": "Q?", "solution": "S", "feedback": "F"}
        turns = prompts.messages(role, kind, **values)
        assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
        assert not any("{{" in turn["content"] for turn in turns)


def test_the_shared_part_of_a_prompt_is_byte_identical_across_questions() -> None:
    prompts = load_prompts("default")
    first = prompts.messages("reviewer", "number", question="A?", solution="a")
    second = prompts.messages("reviewer", "number", question="B?", solution="b")
    assert first[:-1] == second[:-1] and first[-1] != second[-1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[solver\nuser = 1", "is not TOML"),
        ("[reviewer]\nuser = '{{question}} {{solution}}'", r"no \[solver\]"),
        ("[solver]\nuser = '{{quesion}}'", "uses {{quesion}}"),
        ("[solver]\nuser = 'hello'", "never shows the {{question}}"),
        ("[solver]\nuser = '{{question}} {{feedback}}'", "it may use format, persona, question"),
        ("[solver]\nsystem = 'x'", "needs a `user` template"),
        ("[poet]\nuser = '{{question}}'", "unknown template .poet."),
        ("[solver]\nuser = '{{question}}'\n[[exemplars.solver]]\nuser = 'q'", "exemplar 1"),
        ("[solver]\nuser = '{{question}}'\n[formats]\nnumbr = 'x'", "unknown answer kind 'numbr'"),
    ],
)
def test_a_wrong_set_is_refused_when_loaded(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_prompts(text, "mine")


def test_a_file_is_a_prompt_set(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[solver]\nuser = 'Solve: {{question}}'\n")
    assert load_prompts(str(path)).messages("solver", "text", question="x")[0]["content"] == "Solve: x"


def test_an_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'default'"):
        load_prompts("defalt")
    assert {"default", "raw"} <= set(prompt_set_names())


def test_a_role_the_set_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"no \[refiner\] table"):
        parse_prompts("[solver]\nuser = '{{question}}'", "mine").messages("refiner", "text", question="x")
