"""What a run's directory holds, read once: a finished run, an interrupted one, or one yet to write its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any, Literal

from magicore.config import RunConfig, load_config
from magicore.errors import InputError, StoreError
from magicore.evaluate import accuracy
from magicore.runtime.directory import CHAINS, CONFIG, RESULTS, REVIEWS, STORE, SUMMARY, ended_state, prepared_state
from magicore.store.accounting import RoleAccount, role_accounts
from magicore.store.chain_rows import ChainRecord, read_chain_row
from magicore.store.files import read_results, read_summary
from magicore.store.json_lines import read_json_lines
from magicore.store.reread import problem_of, reread_problems
from magicore.store.result_rows import ResultRecord
from magicore.store.review_rows import read_review_row
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result, Review

State = Literal["finished", "interrupted", "prepared", "unfinished"]


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """One run as its files tell it.

    Attributes:
        label: A short name, unique in a report.
        directory: Where it is.
        config: Its settings.
        state: How far it came; all but ``finished`` and ``interrupted`` have no results.
        summary: summary.json as it is; ``None`` for a run that has written none.
        results: In the order of results.jsonl.
        chains: By problem, in the order of chains.jsonl, without log-probabilities; ``None`` where the file is missing.
        logprobs: Chain id -> mean log-probability of its tokens, where they are known.
        reviews: By problem.
        problems: By id, as far as their questions are known again.
        why_no_questions: Why any are not.
        accounts: What an unfinished run has paid for so far.
        remarks: Sentences that belong beside the run's name.
    """

    label: str
    directory: Path
    config: RunConfig
    state: State
    summary: Mapping[str, Any] | None = None
    results: tuple[ResultRecord, ...] = ()
    chains: Mapping[str, Sequence[ChainRecord]] | None = None
    logprobs: Mapping[str, float] = field(default_factory=dict)
    reviews: Mapping[str, Sequence[Review]] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    why_no_questions: str | None = None
    accounts: tuple[RoleAccount, ...] = ()
    remarks: tuple[str, ...] = ()

    def plain_results(self) -> list[Result]:
        """The results alone."""
        return [record.result for record in self.results]

    def problem(self, result: Result) -> Problem:
        """The problem of a result, without its question where that is not known."""
        return problem_of(result, self.problems)


def read_run(directory: Path, label: str | None = None, *, chains: bool = True) -> RunFiles:
    """Read a run's directory; without its ``chains``, reviews and questions where the answers are enough.

    Raises:
        InputError: It holds no run, or a file of it cannot be read.
        StoreError: Its store cannot be opened.
    """
    if not (directory / CONFIG).is_file():
        raise InputError(f"{directory} holds no run: there is no {CONFIG}; name the directory given to --out")
    config = load_config(directory / CONFIG, {})
    label = directory.resolve().name if label is None else label
    if not (directory / RESULTS).is_file():
        return _unfinished(directory, label, config)
    results = () if _empty(directory / RESULTS) else tuple(read_results(directory / RESULTS))
    summary = read_summary(directory / SUMMARY) if (directory / SUMMARY).is_file() else None
    found, logprobs = _chains(directory / CHAINS) if chains else (None, {})
    given = [record.result for record in results]
    problems, why = reread_problems(directory / STORE, config, given) if chains else ({}, None)
    interrupted, doubt = _interrupted(directory)
    said = _remarks(summary, given, interrupted=interrupted)
    return RunFiles(
        label=label,
        directory=directory,
        config=config,
        state="interrupted" if interrupted else "finished",
        summary=summary,
        results=results,
        chains=found,
        logprobs=logprobs,
        reviews=_reviews(directory / REVIEWS) if chains else {},
        problems=problems,
        why_no_questions=why,
        remarks=(*said, *doubt),
    )


def labels(directories: Sequence[Path]) -> list[str]:
    """A name for each directory: its last part, with as many parts before it as tell equal ones apart.

    >>> labels([Path("/runs/a/last"), Path("/runs/b/last"), Path("/runs/c")])
    ['a/last', 'b/last', 'c']
    """
    parts = [path.resolve().parts for path in directories]
    found = [name[-1] for name in parts]
    for depth in range(2, max(map(len, parts), default=1) + 1):
        doubled = [at for at, name in enumerate(found) if found.count(name) > 1]
        for at in doubled:
            found[at] = "/".join(parts[at][-depth:])
    return found


def _unfinished(directory: Path, label: str, config: RunConfig) -> RunFiles:
    """A run without results: what it has paid for is in its store."""
    accounts: tuple[RoleAccount, ...] = ()
    prepared = False
    if (directory / STORE).is_file():
        store = RunStore(directory / STORE)
        try:
            accounts = tuple(role_accounts(store.completion_rows(), store.failed_calls()))
            prepared = prepared_state(store) is not None
        finally:
            store.close()
    how = "has been prepared and not finished" if prepared else "has not finished"
    return RunFiles(
        label=label,
        directory=directory,
        config=config,
        state="prepared" if prepared else "unfinished",
        accounts=accounts,
        remarks=(f"This run {how}; `magicore run --resume {directory}` goes on with it.",),
    )


def _interrupted(directory: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether the run was ended early, as its store notes, and a remark where the store cannot be read."""
    if not (directory / STORE).is_file():
        return False, ()
    try:
        store = RunStore(directory / STORE)
    except StoreError as error:
        return False, (f"Whether the run was ended early is not known: {error}.",)
    try:
        end = ended_state(store)
    finally:
        store.close()
    return end is not None and end.interrupted, ()


def _remarks(summary: Mapping[str, Any] | None, results: Sequence[Result], *, interrupted: bool) -> Iterator[str]:
    if interrupted:
        yield "This run was ended early; its numbers are of what it had by then."
    if summary is None:
        yield "There is no summary.json, so the numbers of the whole run are not shown."
        return
    found = accuracy(results)
    said = tuple(summary.get(name) for name in ("n", "graded", "correct"))
    if said != (found.n, found.graded, found.correct):
        yield (
            f"summary.json speaks of {said[0]} problems, {said[1]} graded and {said[2]} right, results.jsonl of "
            f"{found.n}, {found.graded} and {found.correct}: one of them was changed."
        )
    yield from map(str, summary.get("warnings", ()))
    if lost := summary.get("unknown_calls"):
        yield f"{lost:,} replies never came and may have been charged for; they are in no number."


def _chains(path: Path) -> tuple[dict[str, list[ChainRecord]] | None, dict[str, float]]:
    """Chains by problem. Log-probabilities, the bulk of the file, become one mean a chain."""
    if not path.is_file():
        return None, {}
    chains: dict[str, list[ChainRecord]] = {}
    means: dict[str, float] = {}
    if _empty(path):
        return chains, means
    for where, row in read_json_lines(path):
        values = row.get("token_logprobs")
        light = read_chain_row({**row, "token_logprobs": None, "top_logprobs": None}, where)
        chain = light.scored.chain
        chains.setdefault(chain.problem, []).append(light)
        if isinstance(values, list) and values and all(isinstance(value, int | float) for value in values):
            means[chain.id] = fsum(values) / len(values)
    return chains, means


def _reviews(path: Path) -> dict[str, list[Review]]:
    found: dict[str, list[Review]] = {}
    if path.is_file() and not _empty(path):
        for where, row in read_json_lines(path):
            found.setdefault(str(row.get("problem")), []).append(read_review_row(row, where))
    return found


def _empty(path: Path) -> bool:
    return path.stat().st_size == 0
