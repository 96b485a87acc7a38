"""The lm-eval filter, alone and inside lm-eval's own filter pipeline."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("lm_eval")

from lm_eval.api.instance import Instance
from lm_eval.filters import build_filter_ensemble

from magicore.errors import InputError, UnknownNameError
from magicore.harness.lm_eval import Vote

pytestmark = pytest.mark.filterwarnings("default")

DOCS: list[dict[str, Any]] = [{"question": "How many legs have 3 cats?"}, {"question": "And a snake?"}]
RESPONSES = [
    ["Step 1: 3 * 4 = 12\nThe answer is $12.00", "The answer is 8", "Step 1: 3 * 4 = 12\nSo the answer is 12."],
    ["Hm.", "No idea.", "I cannot say."],
]


def test_answers_are_voted_by_value() -> None:
    assert Vote(kind="number").apply(RESPONSES, DOCS) == [["12"], ["[invalid]"]]
    assert Vote(kind="number", shows="text").apply(RESPONSES, DOCS)[0] == [RESPONSES[0][0]]
    assert Vote(kind="number", method="cot").apply([["The answer is 8", "The answer is 12"]], DOCS[:1]) == [["8"]]


def test_reward_models_weigh_votes() -> None:
    responses = [["Step 1: 3 * 4 = 11\nThe answer is 11", "Step 1: 3 * 4 = 11\nThe answer is 11.", RESPONSES[0][0]]]
    assert Vote(kind="number").apply(responses, DOCS[:1]) == [["11"]]
    assert Vote(kind="number", method="sc+prm", prm="arithmetic").apply(responses, DOCS[:1]) == [["12"]]
    with pytest.raises(InputError, match="document 0 has no field 'q'; it has question"):
        Vote(kind="number", method="sc+prm", prm="arithmetic", question="q").apply(responses, DOCS[:1])


def test_choices_are_read_with_the_document_s_options() -> None:
    docs = [{"question": "Legs of 3 cats?", "options": ["8", "12"]}]
    vote = Vote(kind="choice", choices="options")
    assert vote.apply([["The answer is (B)", "The answer is A", "It is B."]], docs) == [["B"]]


def test_lm_eval_finds_it_by_name_and_as_a_callable() -> None:
    for function in ("magicore_vote", Vote):
        instances = [
            Instance(request_type="generate_until", doc=doc, arguments=("", {}), idx=0, metadata=("t", 0, 3))
            for doc in DOCS
        ]
        for instance, texts in zip(instances, RESPONSES, strict=True):
            instance.resps = texts
        ensemble = build_filter_ensemble("vote", [[function, {"kind": "number"}], ["take_first", None]])
        ensemble.apply(instances)
        assert [instance.filtered_resps["vote"] for instance in instances] == ["12", "[invalid]"]


def test_wrong_options_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="kinds are"):
        Vote(kind="poem")
    with pytest.raises(InputError, match="answer or text"):
        Vote(kind="number", shows="both")
    with pytest.raises(InputError, match="count or once"):
        Vote(kind="number", duplicates="never")
    with pytest.raises(InputError, match="no aggregation is named"):
        Vote(kind="number", method="loudest").apply(RESPONSES, DOCS)
