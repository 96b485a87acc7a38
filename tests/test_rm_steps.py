"""Step splitting: nothing lost, nothing torn, the structure a text really has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.steps import join_steps, split_steps, split_thinking, with_steps
from reward_models.types import Solution


def texts(text: str) -> list[str]:
    steps = split_steps(text)
    assert "".join(step.text for step in steps) == text
    assert all(text[step.start : step.end] == step.text for step in steps)
    return [step.text for step in steps]


def stripped(text: str) -> list[str]:
    return [step.strip() for step in texts(text)]


# Headings


def test_headings_of_any_number_of_digits() -> None:
    text = "".join(f"Step {number}: work {number}\n" for number in range(1, 121))
    assert texts(text) == [f"Step {number}: work {number}\n" for number in range(1, 121)]


@pytest.mark.parametrize(
    "heading",
    [
        "Step {}: ",
        "step {}: ",
        "STEP {} - ",
        "**Step {}:** ",
        "**Step {}**: ",
        "**Step {}: Title**\n",
        "### Step {}: Title\n",
        "## Step {}\n",
        "Step {}. ",
        "Step {}) ",
        "[Step {}] ",
        "Step {} (first things): ",
        "Step #{}: ",
        "- Step {}: ",
        "> Step {}: ",
        "\\textbf{{Step {}:}} ",
        "  Step {}: ",
        "Step {}/4: ",
        "第{}步",
        "Schritt {}: ",
        "Step {}\uff1a",
    ],
)
def test_headings_in_every_dress(heading: str) -> None:
    parts = [heading.format(number) + f"do {number}.\n\nand more.\n\n" for number in (9, 10, 11)]
    assert texts("".join(parts)) == parts


def test_headings_in_words_and_with_parts() -> None:
    assert texts("Step one: a\nStep two: b\n") == ["Step one: a\n", "Step two: b\n"]
    assert texts("Step 1.1: a\nStep 1.2: b\nStep 2: c") == ["Step 1.1: a\n", "Step 1.2: b\n", "Step 2: c"]


def test_headings_within_a_line_carry_on_the_count() -> None:
    text = "Step 1: 3+4 = 7. Step 2: as in Step 1: double, 7*2 = 14 Step 3: see Step 4: no. **Step 4:** done"
    assert stripped(text) == [
        "Step 1: 3+4 = 7.",
        "Step 2: as in Step 1: double, 7*2 = 14",
        "Step 3: see Step 4: no.",
        "**Step 4:** done",
    ]
    assert stripped("First. Step 1: a. And b. Step 2: c.") == ["First. Step 1: a. And b.", "Step 2: c."]


@pytest.mark.parametrize(
    "line", ["Step 2 gives us 5, so we go on", "Step 3.5 is no heading", "Steps 1-3: all", "Step 1-2"]
)
def test_sentences_about_steps_are_no_headings(line: str) -> None:
    assert stripped(f"We have 3.\n{line}\nDone now.") == ["We have 3.", line, "Done now."]


def test_what_follows_the_last_heading_stays_in_its_step() -> None:
    text = "Step 1: 3+4=7\n\nStep 2: 7*2=14\n\nTherefore, the answer is 14."
    assert stripped(text) == ["Step 1: 3+4=7", "Step 2: 7*2=14\n\nTherefore, the answer is 14."]
    assert len(texts("Step 1: 3+4=7\n\nTherefore, the answer is 7.")) == 1


def test_a_preamble_is_a_step_only_if_it_holds_something() -> None:
    assert stripped("Sure! Let's think.\n\nStep 1: a\nStep 2: b") == ["Sure! Let's think.\n\nStep 1: a", "Step 2: b"]
    assert stripped("We know that x = 3.\n\nStep 1: a\nStep 2: b") == ["We know that x = 3.", "Step 1: a", "Step 2: b"]
    words = "word " * 31
    assert stripped(f"{words}\nStep 1: a\nStep 2: b") == [words.strip(), "Step 1: a", "Step 2: b"]


def test_one_late_heading_is_not_the_structure() -> None:
    text = "We have 3.\n\nWe add 4.\n\nStep 2: that is 7.\n\nSo 7 it is."
    assert len(texts(text)) == 4


# What is not torn


def test_lists_stay_in_their_step() -> None:
    step = "Step 1: There are cases:\n1. red\n2. blue\n\n3. green\n\n"
    assert texts(step + "Step 2: done") == [step, "Step 2: done"]
    loose = "The parts are:\n\n1. one red ball\n\n2. two blue balls\n\n"
    assert texts("We count 3.\n\n" + loose + "That is 3.") == ["We count 3.\n\n", loose, "That is 3."]
    tight = "There are three kinds:\n- red: 3\n- blue: 4\n- green: 5\n"
    assert texts(tight + "So there are 12.\nThat is all.") == [tight, "So there are 12.\n", "That is all."]


def test_a_solution_that_is_a_list_has_its_items_as_steps() -> None:
    text = "Here is the solution:\n1. First, 3+4=7.\n   - because of 3\n   - and 4\n2. Then 7*2=14.\nThe answer is 14."
    assert stripped(text) == [
        "Here is the solution:\n1. First, 3+4=7.\n   - because of 3\n   - and 4",
        "2. Then 7*2=14.",
        "The answer is 14.",
    ]
    titled = "Let's solve it:\n\n1. **Add**:\n\n   3+4=7\n\n2. **Double**:\n\n7*2=14\n\nSo 14."
    assert stripped(titled) == ["Let's solve it:\n\n1. **Add**:\n\n   3+4=7", "2. **Double**:\n\n7*2=14", "So 14."]


@pytest.mark.parametrize(
    "block",
    [
        "\\[\nStep 2: x\n\n= 3\n\\]",
        "$$\na\n\nb\n$$",
        "\\begin{align*}\na &= b \\\\[2pt]\n\n&= c\n\\end{align*}",
        "\\begin{cases}\\begin{array}{c}a\n\nb\\end{array}\n\nc\\end{cases}",
        "```python\nx = 1\n\n# Step 2: y\nStep 2: z\n```",
        "~~~\na\n\n```\n\n~~~",
        "````\n```\n\n````",
    ],
)
def test_blocks_are_not_torn(block: str) -> None:
    first = f"We write:\n{block}\n\n"
    assert texts(f"{first}Then 3.\n\nThe end is near.") == [first, "Then 3.\n\n", "The end is near."]
    headed = f"Step 1: go\n{block}\n"
    assert texts(f"{headed}Step 2: stay") == [headed, "Step 2: stay"]
    lines = f"So\n{block}\n"
    assert texts(f"{lines}We are done.\nReally done.") == [lines, "We are done.\n", "Really done."]


@pytest.mark.parametrize("mark", ["$$", "\\[", "\\begin{align}", "```", "\\]", "\\end{align}"])
def test_a_stray_mark_swallows_nothing(mark: str) -> None:
    parts = [f"Step 1: {mark} oops\n", "Step 2: fine\n", f"Step 3: {mark} again\n", "Step 4: fine"]
    assert texts("".join(parts)) == parts


def test_a_wrapped_solution_environment_has_steps_inside() -> None:
    assert len(texts("\\begin{proof}\nLet x = 3.\n\nThen 2x = 6.\n\\end{proof}")) == 2


def test_displays_belong_to_the_sentence_they_complete() -> None:
    text = "We get\n\n\\[ x = 3 \\]\n\nThus the sum is 7.\n\n$$ y = 4 $$\n\nDone."
    assert stripped(text) == ["We get\n\n\\[ x = 3 \\]", "Thus the sum is 7.", "$$ y = 4 $$", "Done."]


def test_continued_equations_and_tables_stay_together() -> None:
    assert stripped("x + 3\n= 7 + 3\n= 10\nso x is 7\nand y is 4") == [
        "x + 3\n= 7 + 3\n= 10",
        "so x is 7",
        "and y is 4",
    ]
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert texts(f"Look here.\n{table}So it is 3.") == ["Look here.\n", table, "So it is 3."]


def test_titles_and_rules_join_what_they_belong_to() -> None:
    text = "## Setup\n\nx = 3.\n\n---\n\n**Result**\n\ny = 4."
    assert stripped(text) == ["## Setup\n\nx = 3.\n\n---", "**Result**\n\ny = 4."]


# Coarse to fine


def test_paragraphs_then_lines_then_sentences() -> None:
    assert stripped("A is 1.\nB is 2.\n\nC is 3. D is 4.\n\nE.") == ["A is 1.\nB is 2.", "C is 3. D is 4.", "E."]
    assert stripped("A is 1. B is 2.\nC is 3.") == ["A is 1. B is 2.", "C is 3."]
    assert stripped("A is 1. B is 2. C is 3.") == ["A is 1.", "B is 2.", "C is 3."]


def test_setting_only_the_answer_apart_is_no_structure() -> None:
    assert stripped("A is 1.\nB is 2.\n\nThe answer is 3.") == ["A is 1.", "B is 2.", "The answer is 3."]
    assert stripped("A is 1. B is 2.\n#### 3") == ["A is 1.", "B is 2.", "#### 3"]
    assert stripped("A is 1. B is 2.\n\nFinal answer: $\\boxed{3}$") == [
        "A is 1.",
        "B is 2.",
        "Final answer: $\\boxed{3}$",
    ]


def test_wrapped_lines_are_one_sentence() -> None:
    text = (
        "This is a long line that the model has wrapped at some\nwidth, in the middle of a sentence. Next.\nLast one."
    )
    assert len(texts(text)) == 2


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("He has 3.5 apples. She has 4.", 2),
        ("He eats fruit, e.g. apples. She does not.", 2),
        ("Dr. Smith has 3. He is glad.", 2),
        ("We count 1, 2, 3, ... Then 10. Stop.", 2),
        ("We wait… Then it comes. Stop.", 2),
        ("It is No. 5. The rest is 3.", 2),
        ("Is it? Yes! It is.", 3),
        ("Samuel L. Jackson has 3. He is glad.", 2),
        ("AB meets BC at D. Then it ends.", 2),
        ("So x = 3. y = 4. Then 7.", 3),
        ("It costs $5. The rest is $x = 3. Y$ here.", 2),
        ("Then \\(a. B\\) and `c. D` hold. So 3.", 2),
        ('He said "3." Then he left.', 2),
        ("3 apples are left at 5 p.m. on Monday. So 3.", 2),
        ("一共三个。还剩两个。", 2),
        ("1. Take 3. Add 4.", 2),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert len(texts(text)) == count


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85"])
def test_every_newline(newline: str) -> None:
    assert len(texts(f"Step 1: a{newline}Step 2: b")) == 2
    assert len(texts(f"a{newline * 2}b{newline * 2}c")) == 3
    assert len(texts(f"a{newline}b{newline}c")) == 3


def test_white_space_joins_the_step_before_and_at_the_start_the_first() -> None:
    assert texts("\n\n  Step 1: a  \n\n\n  Step 2: b\n\n ") == ["\n\n  Step 1: a  \n\n\n", "  Step 2: b\n\n "]
    assert texts("Step 1: a\n\nStep 2:\n\n") == ["Step 1: a\n\n", "Step 2:\n\n"]


def test_blank_texts_have_no_steps() -> None:
    assert split_steps("") == split_steps(" \n\t\u3000\n") == ()


PIECES = st.sampled_from(
    [
        "Step 1: ",
        "Step 2:",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "a",
        "3.5",
        ". ",
        "B",
        "\\[",
        "\\]",
        "$$",
        "$",
        "```",
        "```\n",
        "- ",
        "1. ",
        "\\begin{a}",
        "\\end{a}",
        ":",
        "=",
        "|",
        "**",
        "#",
        "\u2028",
        "\t",
        "e.g. ",
        "...",
        "The answer is 3",
        "\ud800",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_nothing_is_lost(text: str) -> None:
    steps = split_steps(text, part="thinking")
    assert "".join(step.text for step in steps) == (text if text.strip() else "")
    position = 0
    for step in steps:
        assert (step.start, step.end) == (position, position + len(step.text))
        assert step.text.strip()
        assert step.part == "thinking"
        position = step.end


HOSTILE = {
    "spaces": " " * 100_000 + "x",
    "headings": "Step 1: " * 12_500,
    "long number": "Step " + "1" * 100_000 + ":",
    "open displays": "\\[" * 50_000,
    "dollars": "$" * 100_000,
    "open fences": "```a\n" * 20_000,
    "growing fences": "".join("`" * (at % 400 + 3) + "a\n" for at in range(500)),
    "newlines": "\n" * 100_000 + "x",
    "environments": "".join(f"\\begin{{e{at}}}" for at in range(7_000)),
    "stops": "A. " * 33_000,
    "quotes": ">" * 100_000,
    "open parentheses": "\\(" * 50_000,
    "lists": "x:\n\n- a\n\n" * 10_000,
    "dollars and headings": "$$\nStep 1:\n" * 9_000,
    "thinking": "<think>" * 14_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_come_back(name: str) -> None:
    text = HOSTILE[name]
    texts(text)
    thinking, rest = split_thinking(text)
    assert len(thinking or "") + len(rest) <= len(text)


# Thinking


@pytest.mark.parametrize(
    ("text", "thinking", "rest"),
    [
        ("no tags", None, "no tags"),
        ("<think>a</think>\n\nb", "a", "\n\nb"),
        ("a</think>b", "a", "b"),
        ("<think>a", "a", ""),
        ("x <think>a", "a", "x "),
        ("<think>\n\n</think>b", None, "b"),
        ("<THINKING>a</Thinking>b", "a", "b"),
        ("<think>a</think>b<think>c</think>d", "a\n\nc", "bd"),
        ("<think>a</think>b</think>c", "a", "b</think>c"),
        ("<think>a<think>b</think>c", "a\n\nb", "c"),
        ("", None, ""),
    ],
)
def test_thinking_is_set_apart(text: str, thinking: str | None, rest: str) -> None:
    assert split_thinking(text) == (thinking, rest)


def test_steps_of_both_parts_with_offsets_in_their_own() -> None:
    filled = with_steps(Solution(question="q", text="<think>First 1. Then 2.</think>So 3. And 4."))
    assert (filled.thinking, filled.text) == ("First 1. Then 2.", "So 3. And 4.")
    assert [(step.part, step.text, step.start) for step in filled.steps] == [
        ("thinking", "First 1. ", 0),
        ("thinking", "Then 2.", 9),
        ("text", "So 3. ", 0),
        ("text", "And 4.", 6),
    ]
    assert with_steps(filled) is filled


def test_given_thinking_leaves_the_text_alone() -> None:
    filled = with_steps(Solution(question="q", text="The tag </think> ends it.", thinking="hm"))
    assert filled.text == "The tag </think> ends it."
    assert [step.part for step in filled.steps] == ["thinking", "text"]


def test_given_steps_are_joined_and_kept() -> None:
    text, steps = join_steps(["a", "", "b\n", "c"])
    assert text == "a\n\nb\nc"
    assert [step.text for step in steps] == ["a\n", "\n", "b\n", "c"]
    assert all(text[step.start : step.end] == step.text for step in steps)
    assert join_steps([]) == ("", ())
