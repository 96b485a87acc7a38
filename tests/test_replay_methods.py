"""Recorded responses of real models played through the methods' own code path."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from magicore.cli.app import app
from magicore.errors import InputError
from magicore.recordings import RecordedRun, replay_run, run_recorded
from magicore.replay import count, read_rows, rules_of

ROWS: dict[str, dict[str, Any]] = {
    "self-consistency": {"responses": ["The final answer is 4.", "The final answer is 5.", "The final answer is 5."]},
    "mars": {
        "author": "The final answer is 4.",
        "reviews": ["Decision: right\nConfidence: 5", "Decision: wrong\nConfidence: 4\nAnswer: 5"],
        "meta": "Decision: wrong\nAnswer: 5",
        "rebuttal": "The final answer is 5.",
    },
    "debate": {"agents": [["The answer is 4.", "The answer is 5."], ["The answer is 5.", "The answer is 5."]]},
    "self-correction": {"agents": [["The answer is 4.", "Off by one.", "The answer is 5."]]},
    "self-reflection": {"response": "The answer is 4.", "reflection": "The answer is 5."},
    "peer-review": {
        "agents": [
            {"answer": "It is 4.", "reviews_given": [{"of": 1, "text": "Good. Confidence: 9"}], "revision": "It is 5."},
            {"answer": "It is 5.", "reviews_given": [{"of": 0, "text": "Bad. Confidence: 8"}], "revision": "It is 5."},
        ]
    },
}


def row(method: str, qid: int = 1, **changes: Any) -> dict[str, Any]:
    return {"qid": qid, "question": "What is 2 + 3?", "gold": 5, "type": "number", **ROWS[method], **changes}


def run(*rows: dict[str, Any], **options: Any) -> RecordedRun:
    return asyncio.run(run_recorded(list(rows), **options))


@pytest.mark.parametrize("method", ROWS)
def test_every_kind_runs_through_its_method_and_comes_back_as_it_was(method: str) -> None:
    # equal questions of two numbers: neither takes the other's responses
    lines = [row(method, 1), row(method, 2, gold=4)]
    finished = run(*lines)
    assert finished.method.name == method and list(finished.rows) == lines
    assert [(result.answer, result.correct) for result in finished.results] == [("5", True), ("5", False)]


def test_the_methods_own_decision_sends_the_author_back() -> None:
    accepted = row("mars", meta="Decision: right", rebuttal=None)
    finished = run(accepted, row("mars", 2))
    assert [(result.answer, result.stop) for result in finished.results] == [("4", "accepted"), ("5", "iterations")]
    assert finished.rows[0]["rebuttal"] is None
    counts = count(finished.rows, reading="careful", rules="mars")
    assert (counts["author"], counts["final"], counts["rectified"], counts["meta_wrong"]) == (0, 1, 1, 1)


def test_a_rejection_whose_rebuttal_is_not_on_record_leaves_the_answer() -> None:
    finished = run(row("mars", rebuttal=None))
    assert finished.results[0].answer == "4" and finished.rows[0]["rebuttal"] is None
    assert any("rebuttal failed" in warning for warning in finished.results[0].warnings)


def test_the_vote_of_a_recorded_review() -> None:
    finished = run(row("mars", meta="Decision: right\nAnswer: 5", rebuttal=None), answer="vote")
    # author twice 4; review 2 and meta 5; review 1 recommends nothing: a tie, the first seen wins
    assert {vote.answer: vote.count for vote in finished.results[0].votes} == {"4": 2, "5": 2}
    assert finished.results[0].answer == "4"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row("debate"), row("mars", 2)], "different kinds"),
        ([row("debate", agents=[["a"]])], "two texts"),
        ([row("mars", reviews=None)], "does not fit the schema"),
        ([row("peer-review", agents=[{"answer": "It is 5."}] * 2)], "does not fit the schema"),
        ([row("debate"), row("debate")], "a second response"),
    ],
)
def test_lines_that_do_not_fit_are_named(rows: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(*rows)


def test_the_command_counts_and_names_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "mars_review.jsonl"
    file.write_text(json.dumps(row("mars")) + "\n")
    result = CliRunner().invoke(app, ["replay", str(file), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["method"], told["n"], told["counts"]["final"]) == ("mars", 1, 1)
    shown = CliRunner().invoke(app, ["replay", str(file), "--reading", "published"])
    assert "mars on 1 questions, published reading" in shown.stdout and "meta wrong: 1" in shown.stdout
    with pytest.raises(InputError, match="careful or published"):
        replay_run(file, reading=cast(Any, "other"))


# Files: figures of the index.


def entries(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return found


FILES = [
    "mars_review_gsm_gpt35",
    "mars_review_gsm_gpt4omini",
    "mars_review_gsm_hard_qwen",
    "mars_review_mmlu_gpt35",
    "mars_review_mmlu_llama3",
    "mars_review_mmlu_qwen",
    "mars_review_ciar_gpt35",
    "mars_review_ciar_mixtral8x7b",
    "mars_review_stg_qwen",
    "mars_debate_gsm_gpt35",
    "mars_debate_mmlu_gpt35",
    "mars_reflection_gsm_gpt35",
    "mars_reflection_mmlu_gpt35",
    "mars_chains_gsm_gpt4omini",
    "mapr_single_agent_Penguins",
    "mapr_debate_Penguins",
    "mapr_self_correction_Penguins",
    "mapr_peer_review_Penguins",
    "mapr_feedback_Penguins",
]
_TALLIES = ("review_decisions", "review_confidence")


@pytest.mark.parametrize("name", FILES)
def test_recorded_files_give_their_figures(name: str, shared_data: Path) -> None:
    path = shared_data / "replay" / f"{name}.jsonl"
    entry = next(entry for entry in entries(path.parent) if entry["file"] == path.name)
    finished = asyncio.run(run_recorded(read_rows(path), name=path.name))
    n = len(finished.results)
    exact = count(finished.rows, reading="published", rules=rules_of(path))
    assert {key: exact[key] for key in entry["expected"]["published"]} == entry["expected"]["published"]
    careful, wanted = count(finished.rows, reading="careful", rules=rules_of(path)), entry["expected"]["careful"]
    for key in ("meta_wrong", "meta_unstated", "review_decisions"):
        assert careful.get(key) == wanted.get(key)
    got = flat({key: value for key, value in careful.items() if key not in _TALLIES})
    expected = flat({key: value for key, value in wanted.items() if key not in _TALLIES})
    for key, value in expected.items():
        # the figures are good to about one per hundred, those of a single agent a little less
        allowed = 2 if "/each/" in key else 1
        assert abs(got[key] - value) * 100 <= allowed * max(n, 100), key


def flat(value: Any, name: str = "") -> dict[str, int]:
    """Nested counts by a path of their keys."""
    if isinstance(value, dict):
        return {key: one for part, inner in value.items() for key, one in flat(inner, f"{name}/{part}").items()}
    if isinstance(value, list):
        return {key: one for at, inner in enumerate(value) for key, one in flat(inner, f"{name}/{at}").items()}
    return {name: value}
