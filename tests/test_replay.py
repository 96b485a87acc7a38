"""Recorded responses counted by the careful reading and by the published ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from magicore.answers import published
from magicore.errors import InputError
from magicore.replay import option_letters, replay

NUMBER = {"qid": 1, "question": "How many?", "gold": 1250, "type": "number"}
LETTER = {"qid": 1, "question": "Which: A) red, B) blue, C) none", "gold": "C", "type": "letter"}
YESNO = {"qid": 1, "question": "Is it?", "gold": "No", "type": "yesno"}


def written(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_chains_by_all_four_readings(tmp_path: Path) -> None:
    texts = ["Answer: $1,250", "Answer: Ann earns 1250 dollars in 7 days.", "Answer: none stated"]
    path = written(tmp_path, "mars_chains.jsonl", {**NUMBER, "responses": texts})
    assert replay(path) == {"each": [1, 1, 0], "vote": 1, "vote_first_k": [1, 1, 1]}
    # "$1,250" is read as 250, the sentence as 7, and the third text votes as None; the first seen wins the tie.
    assert replay(path, reading="published") == {"each": [0, 0, 0], "vote": 0, "vote_first_k": [0, 0, 0]}
    assert replay(path, rules="peer-review") == {"each": [1, 1, 0], "vote": 1}
    assert replay(path, reading="published", rules="peer-review") == {"each": [0, 0, 0], "vote": 0}


def test_votes_drop_none_and_compare_values(tmp_path: Path) -> None:
    texts = [
        r"\boxed{1250}",
        r"\boxed{7}",
        "It cannot be determined.",
        r"\boxed{1{,}250.0}",
        r"\boxed{7}",
        r"\boxed{\frac{2500}{2}}",
    ]
    path = written(tmp_path, "mapr_single.jsonl", {**NUMBER, "responses": texts})
    assert replay(path) == {"each": [1, 0, 0, 1, 0, 1], "vote": 1}


def test_a_percentage_matches_its_fraction_and_its_number(tmp_path: Path) -> None:
    rows = [{**NUMBER, "gold": gold, "responses": ["Answer: 33%"]} for gold in (33, 0.33, 0.3)]
    assert [replay(written(tmp_path, "mars_x.jsonl", row))["vote"] for row in rows] == [1, 1, 0]


def test_debate_self_correction_and_peer_review_phases(tmp_path: Path) -> None:
    debate = {**LETTER, "agents": [["(A)", "(C)"], ["(C)", "So it is (C) none, not (A)."], ["(X) red", "(B)"]]}
    path = written(tmp_path, "mapr_debate.jsonl", debate)
    assert replay(path) == {"round0": {"each": [0, 1, 0], "vote": 0}, "round1": {"each": [1, 1, 0], "vote": 1}}
    assert replay(path, reading="published")["round1"] == {"each": [1, 0, 0], "vote": 1}

    correction = {**YESNO, "agents": [["No.", "Perhaps yes.", "I cannot say Yes or No."]]}
    path = written(tmp_path, "mapr_correction.jsonl", correction)
    assert replay(path) == {"first": {"each": [1], "vote": 1}, "final": {"each": [0], "vote": 0}}
    assert replay(path, reading="published") == {
        "first": {"each": [1], "vote": 1},
        "critique": {"each": [0], "vote": 0},
        "final": {"each": [1], "vote": 1},
    }

    review = {**LETTER, "agents": [{"answer": "(B)", "reviews_given": [], "revision": "Answer: C"}]}
    path = written(tmp_path, "mapr_review.jsonl", review)
    assert replay(path) == {"first": {"each": [0], "vote": 0}, "revised": {"each": [1], "vote": 1}}


def test_reflection_and_review_count_what_was_mended_and_broken(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "mars_reflection.jsonl",
        {**NUMBER, "response": "Answer: 1250", "reflection": "Answer: 7"},
        {**NUMBER, "response": "Answer: 7", "reflection": "Answer: 1250"},
    )
    assert replay(path) == {"first": 1, "final": 1, "rectified": 1, "broken": 1}

    path = written(
        tmp_path,
        "mars_review.jsonl",
        {
            **LETTER,
            "author": "Answer: (A)",
            "reviews": ["Decision: incorrect\nConfidence: 5\nAnswer: C", "I will not help."],
            "meta": "**Decision**: wrong",
            "rebuttal": "Answer: C",
        },
        {**LETTER, "author": "Answer: C", "reviews": [], "meta": "No comment.", "rebuttal": None},
    )
    assert replay(path) == {
        "author": 1,
        "final": 2,
        "rectified": 1,
        "broken": 0,
        "meta_wrong": 1,
        "meta_unstated": 1,
        "review_decisions": {"wrong": 1, "unstated": 1},
        "review_confidence": {"5": 1, "unstated": 1},
    }
    counts = replay(path, reading="published")
    # C from the rebuttal and one review; "I will not help." gives nothing; "Decision:" needs its colon unstarred.
    assert counts == {"author": 1, "final": 2, "rectified": 1, "broken": 0, "vote": 2, "meta_wrong": 1}


def test_published_readings_keep_their_faults() -> None:
    assert published.mars_answer("Answer: 180,000", "number") == 0.0
    assert published.mars_answer("**Answer**: $62", "number") is None
    assert published.mars_answer("Answer: 9/0 then 33%", "number") == pytest.approx(0.33)
    assert published.mars_answer("Answer: Cannot be determined", "letter") == "C"
    assert published.mars_decision("**Decision:** none. It is right") == "right"
    assert published.mars_vote([None, "A", None]) is None
    assert published.mars_correct(1.0, 1.009) and not published.mars_correct(1.0, 1.02)
    assert published.peer_review_answer(r"\boxed{\frac{1}{3}}", "number") == "3"
    assert published.peer_review_answer("(X) or (b)", "letter") == "B"
    assert published.peer_review_answer("Is there no way? yes", "yesno") == "Yes"
    assert published.peer_review_vote(["", None, "1", "2", "2"]) == "2"
    assert published.peer_review_correct("18.0", 18) and not published.peer_review_correct("1.2.3", 1)
    with pytest.raises(ValueError, match="MARS"):
        published.mars_answer("yes", "yesno")


def test_options_listed_in_a_question() -> None:
    assert option_letters("Pick: (A) one (B) two (C) M) three") == {"A": "", "B": "", "C": ""}
    assert option_letters("Why f(A)?") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", "needs `gold`"),
        ("not json\n", "line 1: not JSON"),
        ("\n", "holds no line"),
        (json.dumps(NUMBER) + "\n", "holds no recorded answers"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "mars_bad.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        replay(path)


def test_rules_come_from_the_name_or_must_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, "other.jsonl", {**NUMBER, "responses": ["Answer: 1250"]})
    with pytest.raises(InputError, match="--rules"):
        replay(path)
    assert replay(path, rules="mars")["vote"] == 1
    with pytest.raises(InputError, match="cannot read"):
        replay(tmp_path / "mars_absent.jsonl")


def recorded(folder: Path) -> list[dict[str, Any]]:
    index: list[dict[str, Any]] = json.loads((folder / "replay" / "index.json").read_text(encoding="utf-8"))
    return index


def test_published_figures_are_exact(shared_data: Path) -> None:
    for entry in recorded(shared_data):
        counts = replay(shared_data / "replay" / entry["file"], reading="published")
        assert counts == entry["expected"]["published"], entry["file"]


# Figures further off than one in a hundred, each read by hand. MARS on GSM8K: "Judy makes $7425.00 in 1 week." and
# "Answer: 33 ... is 33%" are read as 7425 and 33. StrategyQA: the index samples these critiques only (its README), and
# takes about one in three of "cannot be answered with a simple Yes or No" for a no.
READ_OTHERWISE = {
    ("mars_chains_gsm_gpt35.jsonl", "each.3"),
    ("mars_debate_gsm_gpt35.jsonl", "round0.each.2"),
    ("mars_debate_gsm_gpt35.jsonl", "round1.each.0"),
    *(("mapr_self_correction_StrategyQA.jsonl", f"final.{name}") for name in ("vote", "each.0", "each.1", "each.2")),
}
KINDS = {"chains", "debate", "reflection", "self_correction", "peer_review"}


def figures(counts: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(counts, dict):
        for key, value in counts.items():
            yield from figures(value, f"{name}.{key}" if name else key)
    elif isinstance(counts, list):
        for place, value in enumerate(counts):
            yield from figures(value, f"{name}.{place}")
    else:
        yield name, counts


def test_careful_figures_are_within_one_in_a_hundred(shared_data: Path) -> None:
    exact = total = 0
    far = set()
    for entry in recorded(shared_data):
        if entry["kind"] not in KINDS:
            continue
        counts = dict(figures(replay(shared_data / "replay" / entry["file"])))
        expected = dict(figures(entry["expected"]["careful"]))
        assert counts.keys() == expected.keys()
        for name, figure in expected.items():
            total += 1
            exact += counts[name] == figure
            if Fraction(abs(counts[name] - figure), entry["n"]) > Fraction(1, 100):
                far.add((entry["file"], name))
    assert far <= READ_OTHERWISE
    assert exact >= Fraction(8, 10) * total, f"{exact} of {total} exact"
