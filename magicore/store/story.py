"""One problem's whole story, out of the files of a run."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from magicore.config import RunConfig, load_config
from magicore.datasets import iter_problems
from magicore.errors import InputError, MagicoreError, UnknownNameError
from magicore.store.chain_rows import ChainRecord, read_chain_row
from magicore.store.json_lines import read_json_lines
from magicore.store.origin import Origin, noted_origin
from magicore.store.result_rows import ResultRecord, read_result_row
from magicore.store.review_rows import read_review_row
from magicore.store.run_store import RunStore
from magicore.types import Review


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that is on file about one problem.

    Attributes:
        question: ``None`` where the run's problems cannot be read again; ``why_no_question`` says why.
        chains: In the order of the rounds, each with the rounds after which it was kept.
    """

    config: RunConfig
    result: ResultRecord
    chains: tuple[ChainRecord, ...]
    reviews: tuple[Review, ...]
    question: str | None
    why_no_question: str | None = None


def read_story(directory: Path, problem: str) -> Story:
    """Read one problem's story from a run's directory.

    Raises:
        InputError: the directory holds no finished run, or a line of it cannot be read.
        UnknownNameError: the run has no such problem; near ids are suggested.
    """
    if not (directory / "results.jsonl").is_file():
        raise InputError(f"{directory} holds no results.jsonl: name the directory of a finished run")
    config = load_config(directory / "config.toml", {})
    question, why = _question(config, directory / "store.sqlite", problem)
    reviews = directory / "reviews.jsonl"
    return Story(
        config=config,
        result=_result(directory / "results.jsonl", problem),
        chains=tuple(
            read_chain_row(row, where)
            for where, row in read_json_lines(directory / "chains.jsonl")
            if row.get("problem") == problem
        ),
        reviews=tuple(
            read_review_row(row, where)
            for where, row in (read_json_lines(reviews) if reviews.is_file() else ())
            if row.get("problem") == problem
        ),
        question=question,
        why_no_question=why,
    )


def _result(path: Path, problem: str) -> ResultRecord:
    known: list[str] = []
    for where, row in read_json_lines(path):
        if row.get("id") == problem:
            return read_result_row(row, where)
        known.append(str(row.get("id")))
    near = difflib.get_close_matches(problem, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known[:5])}{' ...' if len(known) > 5 else ''}"
    raise UnknownNameError(f"the run has no problem {problem!r}; {hint}")


def _question(config: RunConfig, store: Path, problem: str) -> tuple[str | None, str | None]:
    """The question, as the run's store has it or read again from the run's data, or why it cannot be."""
    origin = Origin(data=config.data) if config.data is not None else _origin(store)
    if origin.data is None:
        missing = "the run was given its problems from Python, and its store has no such question"
        return origin.questions.get(problem), missing
    try:
        found = iter_problems(origin.data, kind=config.kind, fields=config.fields, offset=config.offset)
        return next((item.question for item in found if item.id == problem), None), "the run's data no longer has it"
    except MagicoreError as error:
        return None, str(error)


def _origin(path: Path) -> Origin:
    if not path.is_file():
        return Origin()
    store = RunStore(path)
    try:
        return noted_origin(store)
    finally:
        store.close()
