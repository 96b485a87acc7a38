"""A run's chains with what is known of each answer: its class, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from magicore.answers.canonical import Key, canonical_keys
from magicore.answers.classes import partition
from magicore.answers.equivalence import same
from magicore.methods.conclude import repeated, vote_on
from magicore.report.run_files import RunFiles
from magicore.store.chain_rows import ChainRecord
from magicore.types import Problem, Result
from magicore.vote_table import VoteTable

ROUND_VOTES: Mapping[str, str] = {
    "magicore": "weighted-self-consistency",
    "magicore-published": "weighted-self-consistency",
    "refine": "weighted-self-consistency",
    "mars": "cot",
    "self-reflection": "cot",
    "self-refine": "cot",
}
"""How a method that works in rounds takes an answer from the chains it has kept; the others take a majority."""


@dataclass(frozen=True, kw_only=True)
class GradedProblem:
    """One problem of a run.

    Attributes:
        result: What the run answered.
        problem: Its question, as far as known.
        chains: All of its chains.
        classes: The answer class of each, numbered within the problem; ``None`` abstains, as a repetition does where
            duplicates count once.
        right: Whether each chain's answer equals gold; ``None`` where there is no gold. No answer is not right.
        after: For each round whether the answer taken after it is right, the last being the run's own answer; ``None``
            where that is not known. A problem that failed before its first round has its one state, not right.
        rounds: How many rounds there were, the first sampling among them.
    """

    result: Result
    problem: Problem
    chains: tuple[ChainRecord, ...]
    classes: tuple[int | None, ...]
    right: tuple[bool | None, ...]
    after: tuple[bool | None, ...]
    rounds: int

    @cached_property
    def first(self) -> list[int]:
        """The places of the first chains, in order of their index."""
        places = [at for at, record in enumerate(self.chains) if record.scored.chain.round == 0]
        return sorted(places, key=lambda at: self.chains[at].scored.chain.index)

    @property
    def change(self) -> str | None:
        """``fixed`` or ``broken`` by the rounds after the first; ``same``; ``None`` where that is not known."""
        if len(self.after) < 2:
            return "same" if self.result.gold is not None else None
        before, now = self.after[0], self.after[-1]
        if before is None or now is None:
            return None
        return "same" if before == now else "fixed" if now else "broken"


def graded_problems(run: RunFiles) -> list[GradedProblem]:
    """Every problem of a finished run, graded.

    Raises:
        WorkerError: Mathematical answers need a worker process, and none can be started.
    """
    keys = _Keys(run)
    return [_graded(run, record.result, record.rounds, keys) for record in run.results]


def vote_table_of(problems: Sequence[GradedProblem]) -> VoteTable:
    """The table of all votes over first chains."""
    places = [problem.first for problem in problems]
    scored = [[p.chains[at].scored for at in row] for p, row in zip(problems, places, strict=True)]
    return VoteTable.of(
        [[p.classes[at] for at in row] for p, row in zip(problems, places, strict=True)],
        [[one.o for one in row] for row in scored],
        [[one.s for one in row] for row in scored],
    )


class _Keys:
    """Canonical keys of every answer, read many at a time."""

    def __init__(self, run: RunFiles) -> None:
        self._known: dict[tuple[str, str], Key | None] = {}
        texts: dict[str, set[str]] = {}
        kinds = {}
        for record in run.results:
            kinds[record.result.id] = record.result.kind
            if record.result.gold is not None and record.result.kind != "choice":
                texts.setdefault(record.result.kind, set()).add(record.result.gold)
        for name, chains in (run.chains or {}).items():
            kind = kinds.get(name)
            if kind is not None and kind != "choice":
                texts.setdefault(kind, set()).update(
                    record.scored.chain.answer for record in chains if record.scored.chain.answer is not None
                )
        for record in run.results:
            kind = record.result.kind
            if kind in texts:
                listed = sorted(texts.pop(kind))
                keys = canonical_keys(listed, kind)
                self._known.update({(kind, text): key for text, key in zip(listed, keys, strict=True)})

    def of(self, problem: Problem, answers: Sequence[str | None]) -> list[Key | None]:
        """The keys of one problem's answers."""
        if problem.kind == "choice":
            return canonical_keys(answers, problem.kind, problem.options)
        return [None if answer is None else self._known.get((problem.kind, answer)) for answer in answers]


def _graded(run: RunFiles, result: Result, rounds: int, keys: _Keys) -> GradedProblem:
    problem = run.problem(result)
    chains = tuple((run.chains or {}).get(result.id, ()))
    *found, gold = keys.of(problem, [*(record.scored.chain.answer for record in chains), result.gold])
    classes = partition(found)
    if run.config.duplicates == "once":
        copies = repeated([record.scored for record in chains])
        classes = [None if of is not None else one for one, of in zip(classes, copies, strict=True)]
    right = tuple(None if result.gold is None else _equal(key, gold) for key in found)
    return GradedProblem(
        result=result,
        problem=problem,
        chains=chains,
        classes=tuple(classes),
        right=right,
        after=_after(run, result, problem, chains, right, rounds),
        rounds=rounds,
    )


def _equal(key: Key | None, gold: Key | None) -> bool:
    return key is not None and gold is not None and same(key, gold)


def _after(
    run: RunFiles,
    result: Result,
    problem: Problem,
    chains: Sequence[ChainRecord],
    right: Sequence[bool | None],
    rounds: int,
) -> tuple[bool | None, ...]:
    if result.gold is None:
        return (None,) * max(rounds, 1)
    found: list[bool | None] = []
    for number in range(rounds - 1):
        places = [at for at, record in enumerate(chains) if number in record.kept]
        if not places:
            found.append(None)
            continue
        kept = [chains[at].scored for at in places]
        how = ROUND_VOTES.get(result.method, "self-consistency")
        vote, _ = vote_on(problem, kept, how, duplicates="once" if run.config.duplicates == "once" else "count")
        found.append(vote.chosen is not None and right[places[vote.chosen]])
    return (*found, result.correct is True)
