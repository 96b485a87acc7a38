"""Problems from files: what is read, what is inferred, and the sentence for what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.datasets import infer_kind, iter_problems, kinds_shown, load_problems, problem_row
from magicore.datasets.gold import gold_of
from magicore.datasets.options import options_from_field, options_in_question
from magicore.errors import InputError, UnknownNameError
from magicore.types import Problem

BENCHMARKS = Path(__file__).parents[2] / "shared" / "data" / "benchmarks"


def written(tmp_path: Path, *rows: Mapping[str, Any] | str, name: str = "p.jsonl") -> str:
    path = tmp_path / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def refused(source: str, **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_problems(source, **more)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_a_file_without_ids_is_numbered_by_row(tmp_path: Path) -> None:
    source = written(tmp_path, {"question": "a"}, "", {"question": "b", "id": None}, {"question": "c"})
    assert [(p.id, p.question) for p in load_problems(source)] == [("0", "a"), ("1", "b"), ("2", "c")]
    assert [p.id for p in load_problems(source, offset=1, limit=1)] == ["1"]


def test_fields_are_read_and_unknown_ones_kept(tmp_path: Path) -> None:
    row = {"id": 7, "question": "How many?", "answer": 18, "kind": "number", "level": 3, "tags": ["x"]}
    (problem,) = load_problems(written(tmp_path, row))
    assert problem == Problem(
        id="7", question="How many?", kind="number", answer="18", extra={"level": 3, "tags": ["x"]}
    )
    assert list(problem_row(problem)) == ["id", "question", "answer", "kind", "options", "level", "tags"]


def test_fields_are_renamed(tmp_path: Path) -> None:
    source = written(tmp_path, {"problem": "1+1?", "solution": "so \\boxed{2}.", "answer": "shadowed", "n": 1})
    (problem,) = load_problems(source, fields={"question": "problem", "answer": "solution"})
    assert (problem.question, problem.answer) == ("1+1?", "2")
    assert problem.extra == {"n": 1, "solution": "so \\boxed{2}."}


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("18", "18"),
        ("She has 9 * 2 = <<9*2=18>>18.\n#### 18", "18"),
        ("#### 1,000 \nthanks", "1,000"),
        ("first \\boxed{1}, then \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("\\fbox{3} and \\boxed 4", "4"),
        ("\\boxed{5} and \\boxed{6", "5"),
        ("####", None),
        ("\\boxed{ }", None),
    ],
)
def test_gold_of_a_worked_solution(answer: str, gold: str | None) -> None:
    assert gold_of(answer) == gold


def test_a_worked_solution_is_kept(tmp_path: Path) -> None:
    (problem,) = load_problems(written(tmp_path, {"question": "q", "answer": "1 + 1 = 2\n#### 2"}))
    assert (problem.kind, problem.answer, problem.extra) == ("number", "2", {"solution": "1 + 1 = 2\n#### 2"})


@pytest.mark.parametrize(
    ("question", "gold", "options", "kind"),
    [
        ("Which?", "B", ("2", "4"), "choice"),
        ("How far?", "$18.00", None, "number"),
        ("How far?", "-3/4", None, "number"),
        ("What is it?", "\\frac{14}{3}", None, "math"),
        ("Find $x^2$ in terms of $p$.", "p - q", None, "math"),
        ("Is it prime?", "No.", None, "yesno"),
        ("Who was it?", "Evelyn", None, "text"),
        ("It costs $5 and then $7 more. Who paid?", "Ann", None, "text"),
        ("How many apples are left?", None, None, "number"),
        ("What is 17 + 25?", None, None, "number"),
        ("Is this so? Answer yes or no.", None, None, "yesno"),
        ("Solve \\(x + 1 = 2\\).", None, None, "math"),
        ("Who was it?", None, None, "text"),
    ],
)
def test_kind_is_inferred(question: str, gold: str | None, options: tuple[str, ...] | None, kind: str) -> None:
    assert infer_kind(question, gold, options) == kind


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "x?\nThe options are: (A)2 (B)4 (C)9 (D)10\nYour final answer should be chosen from A, B, C or D.",
            "2 4 9 10",
        ),
        ("x?\nThe options are: A)5 B)7 C)8 D)9\nYour final answer ...", "5 7 8 9"),
        ("x? Answer Choices: (a) p (b) q", "p q"),
        ("x?\nA. one\nB. two\nC. three", "one two three"),
        ("x? A)(1,2] B)[2,3) C)(3,4)", "(1,2] [2,3) (3,4)"),
        ("Key:\nA: p\nB: q\nC: r\nThe options are: A)s B)t", "s t"),
        ("x? (A)1, (B)2, (C)3", "1 2 3"),
        ("x? (A) p (B) q (C) r (D) (A)&(B)", "p q r (A)&(B)"),
    ],
)
def test_options_listed_in_a_question(question: str, texts: str) -> None:
    found = options_in_question(question)
    assert found is not None
    assert found.texts == tuple(texts.split(" "))


@pytest.mark.parametrize(
    "question",
    [
        "Points (A) and (B) are 3 apart.",
        "(a) Find x. (b) Find y. (c) Find z.",
        "Choose from A, B, C or D.",
        "The options are: (A), (B), (C) or (D).",
        "The options are: A)p B)q (r C) D)s",
    ],
)
def test_no_options_listed(question: str) -> None:
    assert options_in_question(question) is None


@given(st.lists(st.text("abcxyz019 $+-", min_size=1).filter(str.strip), min_size=3, max_size=6))
def test_listed_options_come_back(texts: list[str]) -> None:
    question = "Which?\nThe options are: " + " ".join(f"({'ABCDEF'[i]}){text}" for i, text in enumerate(texts))
    found = options_in_question(question)
    assert found is not None
    assert found.texts == tuple(text.strip() for text in texts)


@given(st.text("()[]AB.: \n", max_size=60))
def test_any_text_may_be_searched_for_options(text: str) -> None:
    found = options_in_question(text)
    assert found is None or len(found.texts) >= 2


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["2", "4"], ("2", "4")),
        ([2, 4.5], ("2", "4.5")),
        (["A)21", "B) 22"], ("21", "22")),
        ({"A": "x", "B": "y"}, ("x", "y")),
        ({"text": ["x", "y"], "label": ["1", "2"]}, ("x", "y")),
        ('["x", "y"]', ("x", "y")),
        ("(A) x (B) y", ("x", "y")),
    ],
)
def test_options_field(value: object, texts: tuple[str, ...]) -> None:
    found = options_from_field(value)
    assert not isinstance(found, str)
    assert found.texts == texts


@pytest.mark.parametrize(
    ("answer", "options", "letter"),
    [
        ("(C)", ["p", "q", "r"], "C"),
        ("b", ["p", "q", "r"], "B"),
        (" Q ", ["p", "q", "r"], "B"),
        (2, ["p", "q", "r"], "C"),
        (4, [2, 4, 6], "B"),
        ("2", {"text": ["p", "q"], "label": ["1", "2"]}, "B"),
        (1, ["0", "1"], "B"),
        (7, ["5", "7"], "B"),
    ],
)
def test_gold_of_a_choice_is_its_letter(tmp_path: Path, answer: object, options: object, letter: str) -> None:
    (problem,) = load_problems(written(tmp_path, {"question": "Which?", "answer": answer, "options": options}))
    assert (problem.kind, problem.answer) == ("choice", letter)


def test_listed_numbers_that_are_no_options_of_the_gold(tmp_path: Path) -> None:
    row = {"question": "Rows (A)2 (B)4 (C)9: what is the sum of all?", "answer": "15"}
    (problem,) = load_problems(written(tmp_path, row))
    assert (problem.kind, problem.answer, problem.options) == ("number", "15", None)


def test_true_and_false_are_yes_and_no(tmp_path: Path) -> None:
    source = written(tmp_path, {"question": "q", "answer": True}, {"question": "r", "answer": "False", "kind": "yesno"})
    assert [(p.kind, p.answer) for p in load_problems(source)] == [("yesno", "yes"), ("yesno", "no")]


def test_missing_answers_are_none(tmp_path: Path) -> None:
    source = written(tmp_path, {"question": "q", "answer": ""}, {"question": "r", "answer": None}, {"question": "s"})
    assert [p.answer for p in load_problems(source)] == [None] * 3


def test_same_problems_from_every_format(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": 'say "x, y"\nplease', "answer": "3", "options": None},
        {"id": "b", "question": "Which?", "answer": "B", "options": ["é", "y"]},
    ]
    (tmp_path / "p.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    lines = 'id,question,answer,options\na,"say ""x, y""\nplease",3,\nb,Which?,B,"[""é"", ""y""]"\n'
    (tmp_path / "p.csv").write_text("\ufeff" + lines, encoding="utf-8")
    tabs = 'id\tquestion\tanswer\toptions\na\t"say ""x, y""\nplease"\t3\t\nb\tWhich?\tB\t"[""é"", ""y""]"\n'
    (tmp_path / "p.tsv").write_text(tabs, encoding="utf-8")
    expected = load_problems(written(tmp_path, *rows))
    assert written(tmp_path, *rows, name="lines.json")
    for name in ("p.json", "p.csv", "p.tsv", "lines.json"):
        assert load_problems(str(tmp_path / name)) == expected, name


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    import datetime

    table = pyarrow.table(
        {
            "question": ["q", "Which?"],
            "answer": [18.5, None],
            "options": [None, ["x", "y"]],
            "day": [datetime.date(2024, 2, 29)] * 2,
        }
    )
    parquet.write_table(table, tmp_path / "p.parquet")
    first, second = load_problems(str(tmp_path / "p.parquet"))
    assert (first.answer, first.kind, first.extra) == ("18.5", "number", {"day": "2024-02-29"})
    assert (second.answer, second.kind, second.options) == (None, "choice", ("x", "y"))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table")
    assert "not a readable Parquet file" in refused(str(tmp_path / "bad.parquet"))
    assert "no such file" in refused(str(tmp_path / "none.parquet"))


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([], ["is empty"]),
        (["", "  "], ["is empty"]),
        ([{"question": "q"}, '{"question": "r"'], ["line 2", "not JSON"]),
        ([{"question": "q"}, "[1]"], ["line 2", "a JSON object is expected", "a list"]),
        (['{"question": "q", "x": NaN}'], ["line 1", "NaN"]),
        (["[" * 100_000], ["line 1", "nested too deeply"]),
        ([{"id": 1, "question": "q"}, {"question": "r"}], ["line 2", "`id` is missing", "or none"]),
        ([{"question": "q"}, {"id": 1, "question": "r"}], ["line 2", "`id` is given", "or none"]),
        ([{"id": 1, "question": "q"}, {"id": "1", "question": "r"}], ["line 2", "'1'", "line 1"]),
        ([{"id": 1.5, "question": "q"}], ["`id`", "a number"]),
        ([{"question": "q", "kind": "nmber"}], ["line 1", "'nmber'", "did you mean number?"]),
        (
            [{"problem": "q", "solution": "s"}],
            ["--field question=problem --field answer=solution", "problem, solution"],
        ),
        ([{"Question": "q", "Answer": "s"}], ["--field question=Question --field answer=Answer"]),
        ([{"xyz": "q"}], ["--field question=NAME", "xyz"]),
        ([{"question": 5}], ["`question` is a text", "a number"]),
        ([{"question": " "}], ["`question` is empty"]),
        ([{"question": "q", "answer": ["1"]}], ["`answer` is a text or a number", "a list"]),
        ([{"question": "q", "answer": {"x": 1}}], ["`answer`", "an object"]),
        ([{"question": "q", "answer": "so ####"}], ["nothing after its last ####"]),
        ([{"question": "q", "answer": "abc", "kind": "number"}], ["number", "'abc'"]),
        ([{"question": "q", "answer": "maybe", "kind": "yesno"}], ["yesno", "'maybe'"]),
        ([{"question": "q", "answer": "E", "options": ["1", "2"]}], ["'E'", "A to B"]),
        ([{"question": "q", "answer": 1, "options": ["1", "2", "3"]}], ["`answer` 1", "write the letter"]),
        ([{"question": "q", "answer": 9, "options": ["p", "r"]}], ["no position", "write the letter"]),
        ([{"question": "q", "options": ["1"]}], ["`options` holds 1"]),
        ([{"question": "q", "options": "some"}], ["lists no options"]),
        ([{"question": "q", "options": [["1"], "2"]}], ["something else"]),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, rows: list[Any], parts: list[str]) -> None:
    sentence = refused(written(tmp_path, *rows))
    assert "p.jsonl" in sentence
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("p.jsonl", '{"question": "é"}'.encode("latin-1"), ["line 1", "UTF-8", "0xe9", "iconv"]),
        ("p.jsonl", '{"question": "q"}'.encode("utf-16"), ["UTF-16"]),
        ("p.csv", b"question,answer\nq\n", ["line 2", "1 cells", "2 columns"]),
        ("p.csv", b"question,question\nq,r\n", ["column name twice"]),
        ("p.csv", b'question\n"q\n', ["not CSV"]),
        ("p.csv", b"question\n", ["no line after"]),
        ("p.csv", b"\n", ["empty"]),
        ("p.json", b"", ["empty"]),
        ("p.json", b"[]", ["the list is empty"]),
        ("p.json", b"[1]", ["item 1", "a number"]),
        ("p.json", b'"q"', ["a list of objects"]),
        ("p.json", b"{", ["not JSON"]),
        ("p.txt", b"x", ["cannot tell the format", ".jsonl"]),
    ],
)
def test_a_bad_format_is_one_sentence(tmp_path: Path, name: str, content: bytes, parts: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    sentence = refused(str(tmp_path / name))
    for part in parts:
        assert part in sentence


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "dir.jsonl").mkdir()
    assert "is a folder" in refused(str(tmp_path / "dir.jsonl"))
    assert "no such file" in refused(str(tmp_path / "none.jsonl"))
    assert "no such file" in refused(str(tmp_path / "none"))


def test_bad_arguments(tmp_path: Path) -> None:
    source = written(tmp_path, {"question": "q"})
    assert "limit" in refused(source, limit=0)
    assert "offset" in refused(source, offset=-1)
    assert "no problem is left" in refused(source, offset=1)
    assert "no field 'p'" in refused(source, fields={"question": "p"})
    assert "problems have the fields" in refused(source, fields={"qestion": "question"})
    with pytest.raises(UnknownNameError, match="did you mean number"):
        load_problems(source, kind="numbr")


def test_a_kind_that_is_asked_for_wins(tmp_path: Path) -> None:
    (problem,) = load_problems(written(tmp_path, {"question": "q", "answer": "9", "kind": "number"}), kind="math")
    assert problem.kind == "math"


def test_reading_is_lazy(tmp_path: Path) -> None:
    source = written(tmp_path, {"question": "q"}, "not JSON")
    assert load_problems(source, limit=1)[0].question == "q"
    stream = iter_problems(source)
    assert next(stream).id == "0"
    with pytest.raises(InputError, match="line 2"):
        next(stream)


def test_lone_surrogates_come_in_as_they_are(tmp_path: Path) -> None:
    (problem,) = load_problems(written(tmp_path, '{"question": "a \\ud800 b"}'))
    assert problem.question == "a \ud800 b"


def test_kinds_are_shown(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": answer} for answer in ("1", "2", "yes")]
    assert kinds_shown(load_problems(written(tmp_path, *rows))) == "3 problems: 2 number, 1 yesno"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmark files are not here")
@pytest.mark.parametrize(
    ("name", "count", "kind", "options"),
    [
        ("gsm8k", 1319, "number", {0: 1319}),
        ("math", 500, "math", {0: 500}),
        # One question lists its options with a bracket missing: they cannot be told apart, and are not guessed.
        ("mmlu", 974, "choice", {4: 973, 0: 1}),
        ("sat", 220, "choice", {4: 220}),
        ("svamp", 1000, "number", {0: 1000}),
    ],
)
def test_benchmarks_load(name: str, count: int, kind: str, options: dict[int, int]) -> None:
    path = BENCHMARKS / f"{name}.jsonl"
    problems = load_problems(str(path))
    golds = [str(json.loads(line)["answer"]) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(problems) == count
    assert {problem.kind for problem in problems} == {kind}
    assert [problem.answer for problem in problems] == golds
    assert Counter(len(problem.options or ()) for problem in problems) == options
