"""A finished run as the studies read it: from its files alone, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from difficulty import RewardStats, batch_stats, load_calibration
from magicore.config import RunConfig, load_config
from magicore.errors import InputError
from magicore.runtime.directory import CALIBRATION, CHAINS, CONFIG, RESULTS, STORE, SUMMARY
from magicore.store.chain_rows import ChainRecord
from magicore.store.files import read_chain_records, read_results, read_summary
from magicore.store.reread import problem_of, reread_problems
from magicore.types import Problem, Result, ScoredChain


@dataclass(frozen=True, kw_only=True, eq=False)
class FinishedRun:
    """What a run's directory holds.

    Attributes:
        path: The directory.
        config: Its configuration.
        problems: In problem order. Those that are not known again have an empty question and no options; ``unread``
            says why.
        results: One a problem, without rounds.
        rounds: Rounds of each result, the first sampling among them.
        chains: Problem id -> its chains in the order of the rounds, each with the rounds after which it was kept.
        stats: The statistics of S that it routed by; where none are on file, those of its initial chains.
        wall_s: Seconds that the run took when its files were written; ``None`` where the summary does not say.
    """

    path: Path
    config: RunConfig
    problems: tuple[Problem, ...]
    results: tuple[Result, ...]
    rounds: tuple[int, ...]
    chains: Mapping[str, tuple[ChainRecord, ...]]
    stats: RewardStats | None
    wall_s: float | None
    unread: str | None = None

    @property
    def graded(self) -> bool:
        """Whether any problem has a gold answer."""
        return any(result.gold is not None for result in self.results)

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        """The problems by id."""
        return {problem.id: problem for problem in self.problems}

    @cached_property
    def last_round(self) -> int:
        """The number of the last round that any problem has; 0 where nothing was refined."""
        return max((count - 1 for count in self.rounds), default=0)

    def initial(self, problem: str) -> tuple[ScoredChain, ...]:
        """The chains of round 0."""
        return tuple(record.scored for record in self.chains.get(problem, ()) if record.scored.chain.round == 0)

    def kept(self, problem: str, number: int) -> tuple[ScoredChain, ...]:
        """The chains carried on after a round, in their order of appearance."""
        return tuple(record.scored for record in self.chains.get(problem, ()) if number in record.kept)

    def narrowed(self, count: int | None) -> FinishedRun:
        """The same run as if it had had its first ``count`` problems only; all for ``None``. Statistics stay."""
        if count is None or count >= len(self.results):
            return self
        kept = self.problems[:count]
        return replace(
            self,
            problems=kept,
            results=self.results[:count],
            rounds=self.rounds[:count],
            chains={problem.id: self.chains.get(problem.id, ()) for problem in kept},
            wall_s=None,
        )


def read_run(directory: str | Path, problems: Sequence[Problem] | None = None) -> FinishedRun:
    """Read a run's directory.

    Args:
        directory: A run's directory with its files written.
        problems: The problems, where they are known already; else they are read again from its data or store.

    Raises:
        InputError: there is no finished run, or a file of it cannot be read.
    """
    path = Path(directory)
    lacking = [name for name in (CONFIG, RESULTS, CHAINS) if not (path / name).is_file()]
    if lacking:
        raise InputError(
            f"{path} holds no finished run: there is no {lacking[0]}; make one with `magicore run --out {path}`"
        )
    config = load_config(path / CONFIG, {})
    records = read_results(path / RESULTS)
    chains: dict[str, list[ChainRecord]] = {record.result.id: [] for record in records}
    for record in read_chain_records(path / CHAINS):
        chains.setdefault(record.scored.chain.problem, []).append(record)
    results = tuple(record.result for record in records)
    known, unread = _problems(path, config, results, problems)
    calibration = path / CALIBRATION
    summary = read_summary(path / SUMMARY) if (path / SUMMARY).is_file() else {}
    run = FinishedRun(
        path=path,
        config=config,
        problems=known,
        results=results,
        rounds=tuple(record.rounds for record in records),
        chains={name: tuple(found) for name, found in chains.items()},
        stats=load_calibration(calibration) if calibration.is_file() else None,
        wall_s=summary.get("wall_s"),
        unread=unread,
    )
    return run if run.stats is not None else _with_own_stats(run)


def require_gold(run: FinishedRun) -> None:
    """Refuse a run that cannot be compared with anything.

    Raises:
        InputError: not one of its problems has a gold answer.
    """
    if not run.graded:
        raise InputError(f"no problem of {run.path} has a gold answer, so nothing can be compared")


def _problems(
    path: Path, config: RunConfig, results: Sequence[Result], given: Sequence[Problem] | None
) -> tuple[tuple[Problem, ...], str | None]:
    """The problems of the results, and why some of them are known from the results only."""
    if given:
        found, why = {problem.id: problem for problem in given}, None
    else:
        found, why = reread_problems(path / STORE, config, results)
    return tuple(problem_of(result, found) for result in results), why


def _with_own_stats(run: FinishedRun) -> FinishedRun:
    combined = [scored.combined for result in run.results for scored in run.initial(result.id)]
    if all(value is None for value in combined):
        return run
    stats = batch_stats(combined)
    return replace(run, stats=stats)
