"""GenPRM and ThinkPRM over scripted replies: prompts as published, decisions read, nothing invented."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_models.base import Reply
from reward_models.errors import CapabilityError, RewardModelError, UnknownRewardModelError
from reward_models.families.generative import Decision, decide, language_model_name, rows_at
from reward_models.families.genprm import GenPRM
from reward_models.families.thinkprm import ThinkORM, ThinkPRM
from reward_models.names import parse_model_name
from reward_models.registry import load_outcome_model, load_process_model, process_models
from reward_models.steps import join_steps
from reward_models.types import ScoringUsage, Solution, Unscored

LOG = math.log


def solution(*texts: str, question: str = "What is 2 + 3?", **more: Any) -> Solution:
    text, steps = join_steps(texts)
    return Solution(question=question, text=text, steps=steps, **more)


@dataclass
class Script:
    """A language model that answers from a list, one entry a call: replies, or a function of the call."""

    replies: list[Any]
    calls: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, messages: Sequence[dict[str, str]], **options: Any) -> list[Reply]:
        self.calls.append({"messages": [dict(message) for message in messages], **options})
        reply = self.replies.pop(0)
        found = reply(self.calls[-1]) if callable(reply) else reply
        return found if isinstance(found, list) else [found]


def said(text: str, *, stop: str = "stop", rows: Sequence[dict[str, float]] | None = None, tokens: int = 10) -> Reply:
    return Reply(
        text=text,
        stop=stop,
        logprobs=None if rows is None else tuple(rows),
        usage=ScoringUsage(prompt_tokens=tokens, completion_tokens=1, calls=1),
    )


def judged(yes: float | None, no: float | None, word: str = "Yes") -> Reply:
    """``{Yes}$`` with these probabilities at the word."""
    row = {name: LOG(p) for name, p in (("Yes", yes), ("No", no), ("Maybe", 0.001)) if p is not None}
    return said(f"{{{word}}}$\n", rows=[{"{": -0.1, "{{": -3.0}, row, {"}$\n": -0.1, "}": -2.0}])


ANALYSIS = said("it adds up.\n")


def test_genprm_asks_as_published_and_scores_yes_against_no() -> None:
    script = Script([ANALYSIS, judged(0.6, 0.2), said("no.\n</analyze>\n"), judged(0.1, 0.3, "No")])
    model = GenPRM(script)
    scores = model.score([solution("2 + 3 = 5.", "So 6.", question=" What is 2 + 3? ")])[0]
    assert [entry.value for entry in scores.scores] == pytest.approx([0.75, 0.25])
    assert [entry.raw for entry in scores.scores] == pytest.approx([LOG(3), -LOG(3)])
    assert (scores.activation, scores.aggregation, scores.tokens) == ("softmax", "min", 44)
    assert model.usage == ScoringUsage(prompt_tokens=40, completion_tokens=4, calls=4)

    first, decision, second, last = script.calls
    system = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."
    assert first["messages"] == [
        {"role": "system", "content": system},
        {"role": "user", "content": "What is 2 + 3?\n2 + 3 = 5."},
    ]
    assert first["prefill"] == "<analyze>\nLet's analyze the Paragraph 1 step by step: "
    assert (first["stop"], first["n"], first["temperature"]) == (["</analyze>"], 1, 0.6)
    begun = f"{first['prefill']}it adds up.\n</analyze>\n<output>\n**Judgement**: $\\boxed"
    assert decision["prefill"] == begun.replace("up.\n<", "up.<")
    assert (decision["top_logprobs"], decision["temperature"], decision["stop"]) == (20, 0.0, ["</output>"])
    assert second["messages"][2:] == [
        {"role": "assistant", "content": decision["prefill"] + "{Yes}$\n</output>\n"},
        {"role": "user", "content": "So 6."},
    ]
    assert second["prefill"].startswith("<analyze>\nLet's analyze the Paragraph 2")
    assert last["prefill"].count("</analyze>") == 1


def test_genprm_averages_critiques_and_leaves_out_what_cannot_be_read() -> None:
    analyses = [said("one"), said("two"), said("three"), said("four", stop="length")]
    unreadable = said("{maybe}$", rows=[{"{": 0.0}])
    script = Script([analyses, judged(0.9, 0.1), unreadable, judged(0.5, 0.5)])
    (scores,) = GenPRM(script, majority=4).score([solution("2 + 3 = 5.")])
    assert scores.scores[0].value == pytest.approx((0.9 + 0.5) / 2)
    assert scores.scores[0].raw == pytest.approx(LOG(0.7 / 0.3))


@pytest.mark.parametrize(
    ("judgement", "code", "words"),
    [
        (said("{Perhaps}$", rows=[{"{": 0.0}]), "unreadable", "neither Yes nor No"),
        (said("Yes, it is", rows=[{"Yes": 0.0}]), "unreadable", "neither Yes nor No"),
        (said("{Yesterday}$", rows=[{"{": 0.0}]), "unreadable", "neither Yes nor No"),
        (said("{Yes}$"), "no_logprobs", "gives no log-probabilities"),
        (said("{Yes}$", rows=[{"{Yes": -0.1, "{": -2.0}, {"}$": -0.1}]), "unreadable", "no token begins"),
        ([], "failed", "no judgement came"),
    ],
)
def test_genprm_without_a_judgement_is_unscored_and_so_is_what_follows(judgement: Any, code: str, words: str) -> None:
    script = Script([ANALYSIS, judgement])
    (scores,) = GenPRM(script).score([solution("2 + 3 = 5.", "So 5.", "Done.")])
    assert [entry.value for entry in scores.scores] == [None] * 3
    first, *rest = [entry.unscored for entry in scores.scores]
    assert isinstance(first, Unscored)
    assert (first.code, words in first.reason) == (code, True)
    assert {one.code for one in rest if one} == {"unreadable"}
    assert all(one and "critique of step 1 could not be read" in one.reason for one in rest)
    assert len(script.calls) == 2


def test_genprm_analysis_cut_off_says_so() -> None:
    (scores,) = GenPRM(Script([said("on and on", stop="length")]), max_tokens=50).score([solution("a", "b")])
    assert scores.scores[0].unscored is not None
    assert "cut off at 50 tokens" in scores.scores[0].unscored.reason


def test_genprm_code_is_written_and_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os\nos.system('touch /tmp/never')\n```\n[Code Output]\n\n```\n5\n```\n</verify>"
    script = Script([ANALYSIS, said(code), judged(0.8, 0.2)])
    for runner in ("exec", "eval", "compile"):
        monkeypatch.setattr(f"builtins.{runner}", lambda *_: pytest.fail("model text was run"))
    (scores,) = GenPRM(script, code=True).score([solution("2 + 3 = 5.")])
    monkeypatch.undo()
    assert scores.scores[0].value == pytest.approx(0.8)
    assert script.calls[1]["prefill"].endswith(
        "<verify>\nLet's use python code to find any potential error:\n```python\n"
    )
    assert script.calls[2]["prefill"].endswith("```\n5\n```\n</verify>\n<output>\n**Judgement**: $\\boxed")
    cut = Script([ANALYSIS, said("while True:", stop="length"), judged(0.8, 0.2)])
    GenPRM(cut, code=True).score([solution("2 + 3 = 5.")])
    assert "<verify>" not in cut.calls[2]["prefill"]


def test_genprm_skips_thinking_and_empty_steps() -> None:
    text, steps = join_steps(["2 + 3 = 5.", "  ", "So 5."])
    _, thought = join_steps(["hm"], part="thinking")
    given = Solution(question="q", text=text, steps=(*thought, *steps), thinking="hm")
    script = Script([ANALYSIS, judged(0.6, 0.2), ANALYSIS, judged(0.6, 0.2)])
    (scores,) = GenPRM(script).score([given])
    codes = [entry.unscored.code if entry.unscored else None for entry in scores.scores]
    assert codes == ["thinking_skipped", None, "empty_step", None]
    assert script.calls[2]["prefill"].startswith("<analyze>\nLet's analyze the Paragraph 2")


PROMPT = """You are given a math problem and a proposed step-by-step solution:

[Math Problem]

What is {2} + 3?

[Solution]

Step 1: 2 + 3 = 5.
Step 2: So 5.

Review and critique each step in the proposed solution to determine whether each step is correct. If the solution is \
incomplete, only verify the provided steps."""


def decided(yes: float, no: float) -> Reply:
    return said("yes", rows=[{"yes": LOG(yes), "no": LOG(no), "Yes": -9.0}], stop="length")


def test_thinkprm_verifies_the_whole_as_an_outcome_model() -> None:
    script = Script([said(" Step 1 is right.\n"), decided(0.3, 0.1)])
    model = ThinkORM(script)
    (score,) = model.score([solution("Step 1: 2 + 3 = 5.", "## Step 7: So 5.", question="What is {2} + 3?")])
    assert score.value == pytest.approx(0.75)
    assert (score.activation, score.tokens) == ("softmax", 22)
    first, second = script.calls
    assert first["messages"] == second["messages"] == [{"role": "user", "content": PROMPT}]
    assert first["prefill"] == "\nLet's verify step by step:"
    assert first["stop"] == ["Is the solution correct?", "</think>", "Step 3:"]
    assert second["prefill"] == "\nLet's verify step by step: Step 1 is right.\nIs the solution correct? "
    assert (second["max_tokens"], second["top_logprobs"]) == (1, 20)


def test_thinkprm_scores_every_prefix() -> None:
    def verify(call: dict[str, Any]) -> Reply:
        steps = call["messages"][0]["content"].count("Step ")
        return decided(steps / 10, 1 - steps / 10) if call["max_tokens"] == 1 else said(f" {steps} steps.")

    script = Script([verify] * 6)
    model = ThinkPRM(script)
    (scores,) = model.score([solution("a", "b", "c")])
    assert [entry.value for entry in scores.scores] == pytest.approx([0.1, 0.2, 0.3])
    assert scores.aggregation == "last"


def test_thinkprm_mean_over_samples_without_those_cut_off() -> None:
    script = Script([[said("x"), said("y"), said("z", stop="length")], decided(0.9, 0.1), decided(0.2, 0.8)])
    (score,) = ThinkORM(script, samples=3).score([solution("a")])
    assert score.value == pytest.approx(0.55)


def verdicts(*words: str, good: float = 0.8) -> Reply:
    rows: list[dict[str, float]] = []
    text = ""
    for at, word in enumerate(words):
        chance = {"correct": good, "in": 1 - good} if word == "correct" else {"correct": 1 - good, "in": good}
        pieces = (
            [f"Step {at + 1} is \\boxed{{", "correct", "}. "]
            if word == "correct"
            else [f"Step {at + 1} is \\boxed{{", "in", "correct", "}. "]
        )
        for piece in pieces:
            likely = (
                {name: LOG(p) for name, p in chance.items()} if piece in ("in",) or piece == word else {piece: -0.01}
            )
            rows.append(likely)
            text += piece
    return said(text, rows=rows)


def test_thinkprm_reads_verdicts_of_one_verification() -> None:
    script = Script([verdicts("correct", "incorrect", good=0.8)])
    (scores,) = ThinkPRM(script, reading="verdicts").score([solution("a", "b")])
    assert [entry.value for entry in scores.scores] == pytest.approx([0.8, 0.2])
    assert scores.aggregation == "min"
    assert script.calls[0]["top_logprobs"] == 20


@pytest.mark.parametrize("words", [(), ("correct",), ("correct", "correct", "correct")])
def test_thinkprm_other_counts_of_verdicts_are_unreadable(words: tuple[str, ...]) -> None:
    (scores,) = ThinkPRM(Script([verdicts(*words)]), reading="verdicts").score([solution("a", "b")])
    for entry in scores.scores:
        assert entry.unscored is not None
        assert entry.unscored.reason == f"the verification gives {len(words)} verdicts for 2 steps"


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        ([said("x"), said("maybe", rows=[{"maybe": -0.1, "perhaps": -2.0}])], "unreadable"),
        ([said("x"), said("yes")], "no_logprobs"),
        ([said("x"), []], "failed"),
        ([said("x", stop="length")], "unreadable"),
        ([[]], "failed"),
    ],
)
def test_thinkprm_without_a_decision_is_unscored(replies: list[Any], code: str) -> None:
    (score,) = ThinkORM(Script(replies)).score([solution("a")])
    assert score.unscored is not None
    assert score.unscored.code == code


def test_an_empty_solution_asks_nothing() -> None:
    assert ThinkORM(Script([])).score([solution("  ")])[0].unscored is not None
    assert ThinkPRM(Script([]), reading="verdicts").score([Solution(question="q", text="")])[0].scores == ()
    assert GenPRM(Script([])).score([]) == []


def test_solutions_keep_their_order_whatever_ends_first() -> None:
    async def slow(messages: Sequence[dict[str, str]], **options: Any) -> list[Reply]:
        number = int(messages[0]["content"].split("Step 1: ")[1].split()[0])
        await asyncio.sleep((5 - number) / 500)
        return [decided(number / 10, 1 - number / 10) if options["max_tokens"] == 1 else said("x")]

    scores = ThinkORM(slow).score([solution(str(number)) for number in range(1, 6)])
    assert [score.value for score in scores] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_decisions() -> None:
    assert decide({"yes": LOG(0.3), "no": LOG(0.1)}, "yes", "no") == Decision(
        value=pytest.approx(0.75), raw=pytest.approx(LOG(3))
    )
    both = decide({"Y": LOG(0.1), "Yes": LOG(0.2), "N": LOG(0.1), "": 0.0}, "Yes", "No")
    assert isinstance(both, Decision)
    assert both.value == pytest.approx(0.75)
    absent = decide({"Yes": LOG(0.98), "yes": LOG(0.01), "Y3": LOG(0.002)}, "Yes", "No")
    assert isinstance(absent, Decision)
    assert absent.value == pytest.approx(0.98 / 0.982)
    assert isinstance(decide({"Sure": -0.1}, "Yes", "No"), Unscored)


def test_rows_are_found_without_the_tokens() -> None:
    rows = ({"{": -0.1, "{Y": -3.0}, {"No": -0.2, "Yes": -2.0, "Y": -5.0}, {"}": -0.1, "es": -9.0}, {"$</": -0.1})
    assert rows_at(Reply(text="{Yes}$", logprobs=rows), [1]) == [rows[1]]
    assert rows_at(Reply(text="{Yes}$", logprobs=rows), [2]) is None
    assert rows_at(Reply(text="{Maybe}$", logprobs=rows), [1]) is None
    assert rows_at(Reply(text="{Yes}$"), [1]) is None
    assert rows_at(Reply(text="{Yes}$", logprobs=rows, tokens=("{", "Yes", "}", "$")), [4]) == [rows[2]]


@given(st.data())
def test_every_token_is_found_where_it_begins(data: st.DataObject) -> None:
    """Tokens end with their number and a full stop, so that only one way leads along the text."""
    letters = data.draw(st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=12))
    pieces = [f"{letter}{at}." for at, letter in enumerate(letters)]
    others = st.lists(st.sampled_from(["x", "y1", ".", ""]), max_size=3)
    rows = [dict.fromkeys([*data.draw(others), piece], -1.0) for piece in pieces]
    offsets = [sum(map(len, pieces[:at])) for at in range(len(pieces))]
    for tokens in (None, tuple(pieces)):
        assert rows_at(Reply(text="".join(pieces), logprobs=tuple(rows), tokens=tokens), offsets) == rows


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("genprm", "hf:GenPRM/GenPRM-7B"),
        ("genprm:GenPRM/GenPRM-1.5B#v2", "hf:GenPRM/GenPRM-1.5B#v2"),
        ("genprm:./here", "hf:./here"),
        ("genprm@vllm+http://a:1,vllm+http://b:2", "openai:GenPRM/GenPRM-7B@http://a:1/v1,http://b:2/v1"),
        ("thinkprm:launch/ThinkPRM-1.5B@sglang+http://a:1", "openai:launch/ThinkPRM-1.5B@http://a:1/v1"),
        ("thinkprm:openai:my-model@http://a:1/v1", "openai:my-model@http://a:1/v1"),
        ("genprm:scripted", "scripted"),
        ("judge", None),
        ("judge:embedded", "embedded"),
        ("judge:openai:gpt#x@http://a:1/v1,http://b:1/v1", "openai:gpt#x@http://a:1/v1,http://b:1/v1"),
    ],
)
def test_the_language_model_behind_a_name(name: str, model: str | None) -> None:
    assert language_model_name(parse_model_name(name)) == model


def test_loaded_by_name() -> None:
    script = Script([])
    assert load_process_model("genprm:openai:m@http://h/v1", generate=script, majority=2).name.startswith(
        "genprm:openai"
    )
    assert load_outcome_model("thinkprm", generate=script, samples=3).name == "thinkprm"
    assert {"generate", "reading"} <= (process_models.options("thinkprm") or frozenset())
    with pytest.raises(CapabilityError, match="none was given"):
        load_process_model("genprm")
    with pytest.raises(RewardModelError, match="reading is prefixes or verdicts, not 'tea leaves'"):
        load_process_model("thinkprm", generate=script, reading="tea leaves")
    with pytest.raises(RewardModelError, match="majority and max_tokens are at least 1"):
        load_process_model("genprm", generate=script, majority=0)
    with pytest.raises(UnknownRewardModelError, match="genprm"):
        load_outcome_model("genprm", generate=script)


def test_fingerprints_tell_settings_and_models_apart() -> None:
    class Named(Script):
        fingerprint = "other"

    models = [
        GenPRM(Script([])), GenPRM(Script([]), majority=2), GenPRM(Script([]), code=True), GenPRM(Named([])),
        ThinkPRM(Script([])), ThinkPRM(Script([]), reading="verdicts"), ThinkPRM(Script([]), samples=2),
    ]  # fmt: skip
    assert len({model.fingerprint for model in models}) == len(models)
