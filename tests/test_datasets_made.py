"""Problems that are made (generators, reasoning-gym) or come from the Hub's library."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from magicore.datasets import generate, load_problems
from magicore.datasets.hub import parse_hub_name
from magicore.datasets.tasks import parse_task_name
from magicore.errors import InputError, MissingExtraError, UnknownNameError
from magicore.types import Problem


def solved(question: str) -> int:
    """The answer, worked out from the words alone."""
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    if question.startswith("What is "):
        assert re.fullmatch(r"What is \d+( \+ \d+){1,2}\?", question)
        return sum(numbers)
    first, second = numbers
    if "more. How many" in question:
        return first + second
    if "have left?" in question:
        return first - second
    if "boxes altogether?" in question:
        return first * second
    assert "in one bag?" in question
    assert first % second == 0
    return first // second


@pytest.mark.parametrize("name", ["sums", "word-problems", "mixed"])
def test_generated_golds_are_right(name: str) -> None:
    problems = generate(name, 200, 3)
    assert len({problem.question for problem in problems}) == len({problem.id for problem in problems}) == 200
    for problem in problems:
        assert problem.kind == "number"
        assert problem.answer == str(solved(problem.question))


def test_generation_follows_the_seed() -> None:
    assert generate("mixed", 30, 1) == generate("mixed", 30, 1)
    assert generate("mixed", 30, 1) != generate("mixed", 30, 2)
    assert generate("sums", 30, 1)[:10] == generate("sums", 10, 1)


def test_gen_source() -> None:
    assert load_problems("gen:sums:5:7") == generate("sums", 5, 7)
    assert load_problems("gen:sums:5") == generate("sums", 5, 0)


@pytest.mark.parametrize("source", ["gen:sums", "gen::3", "gen:sums:x", "gen:sums:0", "gen:sums:3:4:5", "gen:sums:-3"])
def test_malformed_task_names(source: str) -> None:
    with pytest.raises(InputError, match="gen:"):
        parse_task_name(source)


def test_generators_refuse() -> None:
    with pytest.raises(UnknownNameError, match="sums"):
        generate("sum", 3)
    with pytest.raises(InputError, match="at least 1"):
        generate("sums", 0)
    with pytest.raises(InputError, match="different problems"):
        generate("sums", 200_000)


def test_reasoning_gym() -> None:
    pytest.importorskip("reasoning_gym")
    problems = load_problems("gen:gsm_symbolic:4:7")
    assert problems == load_problems("gen:gsm_symbolic:4:7")
    assert [problem.id for problem in problems] == [f"gsm_symbolic-{index}" for index in range(4)]
    for problem in problems:
        assert problem.kind == "number"
        assert problem.answer == str(problem.extra["metadata"]["answer_value"])
    with pytest.raises(UnknownNameError, match="gsm_symbolic"):
        load_problems("gen:gsm_symbolik:4:7")


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("hf:openai/gsm8k:main:test", ("openai/gsm8k", "main", "test", None)),
        ("hf:openai/gsm8k#abc:test[:10]", ("openai/gsm8k", None, "test[:10]", "abc")),
        ("hf:me/set:test", ("me/set", None, "test", None)),
        ("hf:me/set:all:test[:10]", ("me/set", "all", "test[:10]", None)),
    ],
)
def test_hub_names(source: str, parts: tuple[str | None, ...]) -> None:
    assert tuple(parse_hub_name(source)) == parts


@pytest.mark.parametrize("source", ["hf:", "hf:openai/gsm8k", "hf:a:b:c:d", "hf:openai/gsm8k::test"])
def test_malformed_hub_names(source: str) -> None:
    with pytest.raises(InputError, match="hf:openai/gsm8k:main:test"):
        load_problems(source)


def test_a_data_set_by_the_hub_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    labels = datasets.ClassLabel(names=["A", "B", "C", "D"])
    features = datasets.Features(
        {"question": datasets.Value("string"), "answer": labels, "choices": datasets.List(datasets.Value("string"))}
    )
    rows = {"question": ["Which?", "What?"], "answer": [1, 0], "choices": [["0", "1", "2", "3"], ["p", "q", "r", "s"]]}
    (tmp_path / "set").mkdir()
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "set" / "test.parquet")
    found = load_problems(f"hf:{tmp_path / 'set'}:test", fields={"options": "choices"})
    assert found == [
        Problem(id="0", question="Which?", kind="choice", answer="B", options=("0", "1", "2", "3")),
        Problem(id="1", question="What?", kind="choice", answer="A", options=("p", "q", "r", "s")),
    ]
    with pytest.raises(InputError, match="cannot be read from the Hub"):
        load_problems(f"hf:{tmp_path / 'set'}:nosuchsplit")


@pytest.mark.parametrize(
    ("module", "source", "extra"),
    [
        ("datasets", "hf:a/b:test", "data"),
        ("reasoning_gym", "gen:chain_sum:3:1", "tasks"),
        ("pyarrow", "p.parquet", "data"),
    ],
)
def test_a_missing_package_is_named_with_its_install_command(
    module: str, source: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'magicore\[{extra}\]'"):
        load_problems(source)
