"""The exchanged files: what is written, byte for byte, and that it comes back without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difficulty import Verdict
from magicore.errors import InputError, StoreError
from magicore.store.chain_rows import read_chain_row
from magicore.store.files import (
    CHAIN_KEYS,
    RESULT_KEYS,
    SUMMARY_KEYS,
    ChainRecord,
    chain_row,
    read_chain_records,
    read_chains,
    read_problems,
    read_results,
    read_summary,
    read_timings,
    result_row,
    write_chain_records,
    write_chains,
    write_problems,
    write_results,
    write_summary,
    write_timings,
)
from magicore.store.json_lines import json_line, read_json_lines, write_json_lines
from magicore.types import (
    Abstention,
    Chain,
    ClassVotes,
    Failure,
    Problem,
    Result,
    RoleUsage,
    Round,
    ScoredChain,
    Usage,
)
from reward_models.types import OutcomeScore, Step, StepScore, StepScores, Unscored

STEPS = (Step(text="2 + 2 = 4\n", start=0, end=10), Step(text="so 4", start=10, end=14))


def chain(index: int = 0, **more: Any) -> Chain:
    values: dict[str, Any] = {
        "id": f"p/solver/0/0/{index}",
        "problem": "p",
        "role": "solver",
        "round": 0,
        "index": index,
        "text": "2 + 2 = 4\nso 4",
        "stop": "stop",
        "steps": STEPS,
        "answer": "4",
        "answer_text": "4",
        "tokens": 9,
    }
    return Chain(**values | more)


FULL = ScoredChain(
    chain=chain(token_logprobs=(-0.5, -1e-17), thinking="hm", parent="p/solver/0/0/9"),
    orm=OutcomeScore(value=0.1, raw=-2.1972245773362196, activation="sigmoid", tokens=30),
    prm=StepScores(
        steps=STEPS,
        scores=(
            StepScore(value=0.9, raw=0.9),
            StepScore(value=None, unscored=Unscored(code="no_equation", reason="no equation: none at all")),
        ),
        activation="softmax",
        aggregation="min",
        tokens=31,
    ),
    o=0.1,
    s=0.9,
    aggregation="product",
)
UNSCORED = ScoredChain(
    chain=chain(1, stop="length", answer=None, answer_text=None, no_answer="cut off", tokens=None, steps=()),
    orm=OutcomeScore(value=None, unscored=Unscored(code="no_logprobs", reason="the server gave none")),
)
BARE = ScoredChain(chain=chain(2, top_logprobs=((-0.1, -2.0), (-0.3,))))


def test_a_chain_row_as_the_format_says() -> None:
    row = chain_row(FULL, kept=[0, 2])
    assert tuple(row) == CHAIN_KEYS
    assert row == {
        "id": "p/solver/0/0/0",
        "problem": "p",
        "round": 0,
        "index": 0,
        "parent": "p/solver/0/0/9",
        "role": "solver",
        "text": "2 + 2 = 4\nso 4",
        "thinking": "hm",
        "steps": [
            {"text": "2 + 2 = 4\n", "part": "text", "start": 0, "end": 10, "score": 0.9, "raw": 0.9, "unscored": None},
            {
                "text": "so 4",
                "part": "text",
                "start": 10,
                "end": 14,
                "score": None,
                "raw": None,
                "unscored": "no_equation: no equation: none at all",
            },
        ],
        "orm": 0.1,
        "prm": 0.9,
        "combined": 1.0,
        "scores": {
            "orm": {"raw": -2.1972245773362196, "activation": "sigmoid", "unscored": None, "tokens": 30},
            "prm": {
                "aggregation": "product",
                "scored": 1,
                "unscored": 1,
                "activation": "softmax",
                "recommended": "min",
                "tokens": 31,
            },
        },
        "token_logprobs": [-0.5, -1e-17],
        "answer": "4",
        "answer_text": "4",
        "stop": "stop",
        "kept": [0, 2],
        "tokens": 9,
    }


def test_missing_scores_are_null() -> None:
    row = chain_row(BARE)
    assert (row["orm"], row["prm"], row["combined"], row["scores"]) == (None, None, None, {"orm": None, "prm": None})
    assert [step["score"] for step in row["steps"]] == [None, None]


def test_chains_come_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "chains.jsonl"
    records = [ChainRecord(scored=FULL, kept=(0, 1)), ChainRecord(scored=UNSCORED), ChainRecord(scored=BARE, kept=(0,))]
    assert write_chain_records(path, records) == 3
    assert read_chain_records(path) == records
    assert read_chains(path) == [FULL, UNSCORED, BARE]
    before = path.read_bytes()
    write_chain_records(path, read_chain_records(path))
    assert path.read_bytes() == before


def test_unknown_keys_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "chains.jsonl"
    path.write_bytes(json_line(chain_row(FULL) | {"note": {"x": [1]}}))
    (record,) = read_chain_records(path)
    assert record.extra == {"note": {"x": [1]}}
    assert list(record.row)[-1] == "note"


def test_scores_that_do_not_belong_together_are_not_written() -> None:
    with pytest.raises(ValueError, match="outcome score"):
        chain_row(ScoredChain(chain=chain(), orm=OutcomeScore(value=0.5), o=0.4))
    prm = StepScores(steps=(Step(text="x", start=0, end=1),), scores=(StepScore(value=0.5),))
    with pytest.raises(ValueError, match="other steps"):
        chain_row(ScoredChain(chain=chain(), prm=prm, s=0.5))


TEXTS = st.text('ab: é\n\r\t"\\\x00\u2028\ud800\U0001f600', max_size=9)


def unscored() -> st.SearchStrategy[Unscored]:
    return st.builds(Unscored, code=st.sampled_from(["no_equation", "failed", "past_context"]), reason=TEXTS)


@st.composite
def scored_chains(draw: st.DrawFn) -> ScoredChain:
    unit = st.floats(0, 1)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    texts = draw(st.lists(TEXTS, max_size=4))
    ends = [sum(map(len, texts[: count + 1])) for count in range(len(texts))]
    steps = tuple(Step(text=t, start=e - len(t), end=e) for t, e in zip(texts, ends, strict=True))
    scores = [
        StepScore(value=v, raw=draw(st.none() | finite), unscored=draw(unscored()) if v is None else None)
        for v in draw(st.lists(st.none() | unit, min_size=len(steps), max_size=len(steps)))
    ]
    o = draw(st.none() | unit)
    activation = draw(st.sampled_from(["identity", "sigmoid", "softmax"]))
    made = chain(
        text="".join(texts),
        steps=steps,
        thinking=draw(st.none() | TEXTS),
        answer=draw(st.none() | TEXTS),
        no_answer=draw(st.none() | TEXTS),
        tokens=draw(st.none() | st.integers(0, 10**6)),
        token_logprobs=draw(st.none() | st.lists(finite, max_size=3).map(tuple)),
        stop=draw(st.sampled_from(["stop", "length", "filter", "error"])),
    )
    has_orm, has_prm = draw(st.booleans()), draw(st.booleans())
    return ScoredChain(
        chain=made,
        orm=OutcomeScore(value=o, activation=activation, unscored=draw(unscored()) if o is None else None)
        if has_orm
        else None,
        prm=StepScores(steps=steps, scores=tuple(scores), activation=activation, aggregation="last")
        if has_prm
        else None,
        o=o,
        s=draw(st.none() | unit),
        aggregation=draw(st.sampled_from(["product", "last"])) if has_prm else None,
    )


@given(scored_chains())
def test_any_chain_comes_back_equal(scored: ScoredChain) -> None:
    row = json.loads(json_line(chain_row(scored, [1])).decode("utf-8"))
    assert read_chain_row(row, "here") == ChainRecord(scored=scored, kept=(1,))


RESULT = Result(
    id="p",
    kind="number",
    method="magicore",
    answer="4",
    answer_text="$4",
    gold="4",
    correct=True,
    chain="p/solver/0/0/0",
    verdict=Verdict(router="magicore", easy=False, condition_1=False, condition_2=None, z=-0.25, confidence_orm=0.4),
    votes=(ClassVotes(answer="4", count=2, weight=1.5), ClassVotes(answer="5", count=1, weight=None)),
    abstained=(Abstention(chain="p/solver/0/0/1", reason="cut off"),),
    stop="iterations",
    usage=(
        RoleUsage(role="solver", model="m", usage=Usage(prompt=10, completion=20, reasoning=5, calls=2)),
        RoleUsage(role="orm", model="o", usage=Usage(prompt=30, calls=3, unmetered=1)),
    ),
    warnings=("one",),
)
ROUNDS = (
    Round(number=0, chains=(FULL, UNSCORED), kept=("p/solver/0/0/0", "p/solver/0/0/1")),
    Round(number=1, chains=(BARE,), kept=("p/solver/0/0/0", "p/solver/0/0/2")),
)
FAILED = Result(
    id="r",
    kind="text",
    method="cot",
    gold="x",
    correct=False,
    stop="failed",
    error=Failure(type="BadReply", message="no"),
)


def test_a_result_row_as_the_format_says() -> None:
    row = result_row(RESULT)
    assert tuple(row) == RESULT_KEYS
    assert row["verdict"] == {
        "router": "magicore",
        "easy": False,
        "condition_1": False,
        "condition_2": None,
        "z": -0.25,
        "confidence_orm": 0.4,
        "confidence_prm": None,
    }
    assert row["votes"] == [{"answer": "4", "count": 2, "weight": 1.5}, {"answer": "5", "count": 1, "weight": None}]
    assert row["usage"] == [
        {"role": "solver", "model": "m", "prompt": 10, "completion": 20, "reasoning": 5, "calls": 2},
        {"role": "orm", "model": "o", "prompt": 30, "completion": 0, "reasoning": 0, "calls": 3, "unmetered": 1},
    ]
    failed = result_row(FAILED)
    assert (failed["error"], failed["verdict"], failed["answer"]) == ({"type": "BadReply", "message": "no"}, None, None)


def test_results_come_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert write_results(path, [replace(RESULT, rounds=ROUNDS), FAILED]) == 2
    first, second = read_results(path)
    assert (first.result, first.rounds, second.result, second.rounds) == (RESULT, 2, FAILED, 0)


def test_chains_of_results_say_in_which_rounds_they_were_kept(tmp_path: Path) -> None:
    path = tmp_path / "chains.jsonl"
    assert write_chains(path, [replace(RESULT, rounds=ROUNDS), FAILED]) == 3
    assert [(record.scored, record.kept) for record in read_chain_records(path)] == [
        (FULL, (0, 1)),
        (UNSCORED, (0,)),
        (BARE, (1,)),
    ]


def test_problems_come_back_equal(tmp_path: Path) -> None:
    problems = [
        Problem(id="a", question="q \ud800 é", kind="choice", answer="A", options=("x", "y"), extra={"level": 1}),
        Problem(id="b", question="r", kind="date"),
    ]
    write_problems(tmp_path / "p.jsonl", problems)
    assert read_problems(tmp_path / "p.jsonl") == problems


def test_bytes_are_plain_and_stable() -> None:
    assert json_line({"b": 0.1, "a": "é\u2028\ud800", "c": None}) == (
        '{"b": 0.1, "a": "é\u2028'.encode() + b'\\ud800", "c": null}\n'
    )
    with pytest.raises(ValueError, match="JSON"):
        json_line({"x": math.nan})


@given(st.dictionaries(TEXTS, TEXTS | st.floats(allow_nan=False, allow_infinity=False)))
def test_any_line_is_one_line_and_comes_back(row: dict[str, Any]) -> None:
    line = json_line(row)
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8")) == row


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    write_json_lines(path, [{"a": 1}])

    def rows() -> Iterator[dict[str, int]]:
        yield {"a": 2}
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_json_lines(path, rows())
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.jsonl"]
    assert path.read_bytes() == b'{"a": 1}\n'
    with pytest.raises(StoreError, match="cannot be written"):
        write_json_lines(tmp_path / "none" / "x.jsonl", [])


def test_summary_keys_are_ordered(tmp_path: Path) -> None:
    summary = {"extra": 1} | {key: None for key in reversed(SUMMARY_KEYS)}
    write_summary(tmp_path / "summary.json", summary)
    read = read_summary(tmp_path / "summary.json")
    assert tuple(read) == (*SUMMARY_KEYS, "extra")
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(InputError, match="a JSON object is expected"):
        read_summary(tmp_path / "bad.json")


def test_timings(tmp_path: Path) -> None:
    rows = [{"id": "p", "seconds": {"solver": 0.25}}]
    write_timings(tmp_path / "timings.jsonl", rows)
    assert read_timings(tmp_path / "timings.jsonl") == rows


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"id": None}, ["`id` is a text", "null"]),
        ({"round": -1}, ["`round`", "-1"]),
        ({"round": True}, ["`round`", "true or false"]),
        ({"stop": "eos"}, ["`stop` is one of stop, length, filter, error", "'eos'"]),
        ({"orm": 1.5}, ["`orm` lies in [0, 1]", "1.5"]),
        ({"orm": None}, ["either a score or an `unscored` reason"]),
        ({"steps": ["x"]}, ["`steps` is a list of objects", "a list"]),
        ({"steps": [{"text": "x", "part": "text", "start": 0, "end": 1}]}, ["`steps`[0]", "either a score"]),
        ({"token_logprobs": ["a"]}, ["`token_logprobs`"]),
        ({"token_logprobs": [10**400]}, ["`token_logprobs`"]),
        ({"kept": [0.5]}, ["`kept` is a list of whole numbers"]),
        ({"scores": {"orm": {"activation": "tanh"}, "prm": None}}, ["`activation` is one of", "'tanh'"]),
        ({"scores": 1}, ["`scores` is an object"]),
        ({"top_logprobs": [1]}, ["`top_logprobs`"]),
    ],
)
def test_a_bad_chain_is_one_sentence(tmp_path: Path, change: dict[str, Any], parts: list[str]) -> None:
    path = tmp_path / "chains.jsonl"
    path.write_bytes(json_line(chain_row(BARE)) + json_line(chain_row(FULL) | change))
    with pytest.raises(InputError) as caught:
        read_chains(path)
    for part in ["line 2", *parts]:
        assert part in str(caught.value)


def test_the_same_chain_or_result_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(json_line(chain_row(BARE)) * 2)
    with pytest.raises(InputError, match="line 2: the chain 'p/solver/0/0/2' is there twice"):
        read_chains(path)
    path.write_bytes(json_line(result_row(RESULT)) * 2)
    with pytest.raises(InputError, match="line 2: the result of 'p' is there twice"):
        read_results(path)


def test_lines_are_split_at_newlines_only(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes('\ufeff{"a": "x\u2028y\x85z"}\r\n\n{"a": 2}'.encode())
    assert [(record.where[-6:], record.row) for record in read_json_lines(path)] == [
        ("line 1", {"a": "x\u2028y\x85z"}),
        ("line 3", {"a": 2}),
    ]
