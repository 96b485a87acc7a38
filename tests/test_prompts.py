"""Prompt sets: loading, checking, filling."""

from __future__ import annotations

from pathlib import Path

import pytest

from magicore.answers.kinds import KINDS, Kind
from magicore.errors import InputError, UnknownNameError
from magicore.prompts import load_prompts, prompt_set_names
from magicore.prompts.loader import fill, parse_prompts
from magicore.prompts.templates import EXAMPLE_TEMPLATES, TEMPLATES


def test_filling_is_one_pass_and_leaves_latex_alone() -> None:
    template = "Q: {{question}} in \\boxed{x} and {{ solution }}"
    assert fill(template, {"question": "{{solution}}?", "solution": "S"}) == "Q: {{solution}}? in \\boxed{x} and S"


def test_raw_sends_the_question_unchanged() -> None:
    question = "  What?\n\n1 + 1  "
    (message,) = load_prompts("raw").messages("solver", "number", question=question)
    assert message == {"role": "user", "content": question}


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_set_asks_for_a_format_and_shows_worked_examples_of_the_kind(kind: Kind) -> None:
    prompts = load_prompts("default")
    solver = prompts.messages("solver", kind, question="Q?")
    assert prompts.formats[kind] in solver[0]["content"] and solver[-1]["content"] == "Q?"
    values = {"question": "Q?", "solution": "S", "feedback": "F"}
    for role in EXAMPLE_TEMPLATES:
        turns = prompts.messages(role, kind, **values)
        assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
        assert not any("{{" in turn["content"] for turn in turns)
        scored = not role.endswith("-unscored")
        assert ("(score 2/10)" in turns[1]["content"]) is scored
        assert ("score" in "".join(turn["content"] for turn in turns)) is scored
    joint = prompts.messages("joint", kind, **values)[2]["content"]
    assert joint == (
        prompts.messages("reviewer", kind, **values)[2]["content"]
        + "\n\nImproved solution:\n"
        + prompts.messages("refiner", kind, **values)[2]["content"]
    )


@pytest.mark.parametrize("name", ["default", "raw"])
def test_a_shipped_set_has_every_template(name: str) -> None:
    prompts = load_prompts(name)
    for template, known in TEMPLATES.items():
        values = dict.fromkeys(known.placeholders, "X")
        if known.turn:
            text = prompts.turn(template, "number", **values)["content"]
        else:
            text = prompts.messages(template, "number", **values)[-1]["content"]
        assert "X" in text or not known.shows
        assert "{{" not in text


def test_a_worked_example_is_shown_in_a_sets_own_words() -> None:
    prompts = parse_prompts(
        """
        [solver]
        user = "{{question}}"
        [reviewer]
        user = "Look at {{question}}\\n{{solution}}"
        [refiner-unscored]
        user = "{{question}} {{solution}} {{feedback}}"
        [[examples]]
        kind = "number"
        question = "1 + 1?"
        steps = [["One and one.", 9], ["It is 3.", 1]]
        feedback = "Step 2 is wrong."
        improved = ["One and one.", "It is 2."]
        """,
        "mine",
    )
    _, reply, _ = prompts.messages("reviewer", "number", question="q", solution="s")
    shown = prompts.roles["reviewer"].exemplars[0].user
    assert shown == "Look at 1 + 1?\nStep 1 (score 9/10): One and one.\nStep 2 (score 1/10): It is 3."
    assert reply["content"] == "Step 2 is wrong."
    refiner = prompts.roles["refiner-unscored"].exemplars[0]
    assert refiner.user == "1 + 1? Step 1: One and one.\nStep 2: It is 3. Step 2 is wrong."
    assert refiner.assistant == "Step 1: One and one.\nStep 2: It is 2."
    assert len(prompts.messages("reviewer", "text", question="q", solution="s")) == 1


def test_a_set_may_extend_another() -> None:
    prompts = parse_prompts('extends = "default"\n[mars-reviewer]\nuser = "{{question}} {{solution}}"', "mine")
    default = load_prompts("default")
    assert prompts.roles["mars-reviewer"].system is None
    assert prompts.roles["solver"] == default.roles["solver"] and prompts.formats == default.formats


def test_a_line_with_nothing_but_an_empty_placeholder_is_left_out() -> None:
    template = "a\n{{persona}}\nb {{persona}}.\n{{persona}}"
    assert fill(template, {"persona": ""}) == "a\nb ."
    assert fill(template, {"persona": "p"}) == "a\np\nb p.\np"
    assert fill("{{question}}", {"question": " x\n"}) == " x\n"


def test_a_persona_stands_where_the_template_has_it_or_ends_the_system_message() -> None:
    prompts = load_prompts("default")
    said = prompts.persona("conservative")
    plain = prompts.messages("mars-reviewer", "number", question="Q", solution="S", scores="")
    posed = prompts.messages("mars-reviewer", "number", persona=said, question="Q", solution="S", scores="")
    assert plain[:-1] == posed[:-1] and said in posed[-1]["content"]
    shared = posed[-1]["content"].partition(said)[0]
    assert shared.endswith("S\n\n") and plain[-1]["content"].startswith(shared)  # question and solution come first
    solver = prompts.messages("solver", "number", persona=said, question="Q")
    assert solver[0]["content"].endswith(f"\n\n{said}")
    raw = load_prompts("raw").messages("solver", "number", persona=said, question="Q")
    assert [turn["role"] for turn in raw] == ["system", "user"] and raw[1]["content"] == "Q"
    with pytest.raises(UnknownNameError, match="did you mean 'aggressive'"):
        prompts.persona("aggresive")


def test_the_author_is_asked_as_the_solver_is_unless_the_set_says_otherwise() -> None:
    default = load_prompts("default")
    assert default.messages("author", "number", question="Q") == default.messages("solver", "number", question="Q")
    own = parse_prompts("[solver]\nuser = '{{question}}'\n[author]\nuser = 'Author: {{question}}'", "mine")
    assert own.messages("author", "number", question="Q")[0]["content"] == "Author: Q"


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
        ("[solver]\nuser = '{{question}}'\n[reviewr]\nuser = 'x'", "did you mean 'reviewer'"),
        ("[solver]\nuser = '{{question}}'\n[rebuttal]\nuser = 'Again.'", "never shows the {{review}}"),
        ("[solver]\nuser = '{{question}}'\n[debate]\nsystem = 's'\nuser = '{{solutions}}'", "takes `user` alone"),
        ("[solver]\nuser = '{{question}}'\n[phrases]\nscore = 'x'", "unknown phrase 'score'"),
        ("[solver]\nuser = '{{question}}'\n[personas]\nbold = 1", "personas.bold is a text"),
        ("[solver]\nuser = '{{question}}'\n[[examples]]\nkind = 'number'", "example 1 needs"),
        ("[solver]\nuser = '{{question}}'\n[asked]\nnumber = 'box'", "asked.number is one of"),
        ("extends = 'mine'\n[solver]\nuser = '{{question}}'", "it may extend default, few-shot, raw"),
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
