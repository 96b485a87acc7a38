"""One problem's whole story, out of the files of a run."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from magicore.config import RunConfig, load_config
from magicore.errors import InputError, UnknownNameError
from magicore.store.chain_rows import ChainRecord, read_chain_row
from magicore.store.json_lines import read_json_lines
from magicore.store.reread import reread_problems
from magicore.store.result_rows import ResultRecord, read_result_row
from magicore.store.review_rows import read_review_row
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
    record = _result(directory / "results.jsonl", problem)
    known, why = reread_problems(directory / "store.sqlite", config, [record.result])
    reviews = directory / "reviews.jsonl"
    return Story(
        config=config,
        result=record,
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
        question=known[problem].question if problem in known else None,
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
