"""The rounds of a run as arrays: answers, scores, and what the weighted vote over the kept chains makes of them.

Which chains are kept after a round depends on their scores alone, not on the router, whose only power is to stop. So
one run that refines everything holds what any router would have answered: the vote after the first round at which it
says easy. That makes every router, and every pair of thresholds, a matter of looking up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from difficulty import ConditionArrays, RewardStats, condition_arrays
from difficulty.ties import BoolArray, IntArray
from magicore.ablations.finished import FinishedRun
from magicore.chains import answer_classes
from magicore.methods.conclude import is_correct, mean_logprob, repeated
from magicore.types import Problem, ScoredChain
from magicore.vote_table import VoteTable
from magicore.voting import vote_table


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundArrays:
    """One round of P problems with up to K kept chains each.

    Attributes:
        table: Classes and scores of the chains kept after the round. A problem that has no such round shows its last.
        right: (P, K) whether the chain's answer is right; false for one that abstains and where there is no gold.
        reached: (P,) the problem has this round.
    """

    table: VoteTable
    right: BoolArray
    reached: BoolArray

    def right_by(self, method: str = "weighted-self-consistency", weights: str | None = None) -> BoolArray:
        """(P,) whether an aggregation's answer is right."""
        return chosen_right(self.right, vote_table(self.table, method, weights).chosen)

    def conditions(self, stats: RewardStats) -> ConditionArrays:
        """What routers measure of the kept chains."""
        return condition_arrays(self.table.classes, self.table.o, self.table.s, stats, include=self.table.include)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectories:
    """All rounds of a run.

    Attributes:
        ids: (P,) problem ids, in problem order.
        graded: (P,) the problem has a gold answer.
        rounds: Round 0 (the first sampling), 1, ...
        closed: (P,) the problem ended for another reason than its router's (rounds used up, all chains accepted, a
            failure), so that no router would have gone on.
    """

    ids: tuple[str, ...]
    graded: BoolArray
    rounds: tuple[RoundArrays, ...]
    closed: BoolArray

    @property
    def n(self) -> int:
        """How many problems there are."""
        return len(self.ids)


def chosen_right(right: BoolArray, chosen: IntArray) -> BoolArray:
    """(P,) whether the chosen chain of each problem is right; none chosen (-1) is not right."""
    if right.shape[1] == 0:
        return np.zeros(len(chosen), dtype=np.bool_)
    found: BoolArray = (chosen >= 0) & right[np.arange(len(chosen)), np.maximum(chosen, 0)]
    return found


def trajectories(run: FinishedRun) -> Trajectories:
    """The arrays of every round of a run."""
    problems = [run.by_id[result.id] for result in run.results]
    chains = [
        [run.kept(problem.id, number) for number in range(max(count, 1))]
        for problem, count in zip(problems, run.rounds, strict=True)
    ]
    rounds = [
        round_arrays(
            problems,
            [one[min(number, len(one) - 1)] for one in chains],
            reached=[number < count for count in run.rounds],
            duplicates=run.config.duplicates,
        )
        for number in range(run.last_round + 1)
    ]
    return Trajectories(
        ids=tuple(problem.id for problem in problems),
        graded=np.array([result.gold is not None for result in run.results], dtype=np.bool_),
        rounds=tuple(rounds),
        closed=np.array([result.stop != "done" for result in run.results], dtype=np.bool_),
    )


def initial_arrays(run: FinishedRun) -> RoundArrays:
    """Round 0 alone, over all initial chains: what every aggregation is taken from, whatever the run's method was."""
    problems = [run.by_id[result.id] for result in run.results]
    chains = [run.initial(problem.id) for problem in problems]
    return round_arrays(problems, chains, duplicates=run.config.duplicates)


def round_arrays(
    problems: Sequence[Problem],
    chains: Sequence[Sequence[ScoredChain]],
    *,
    reached: Sequence[bool] | None = None,
    duplicates: str = "count",
) -> RoundArrays:
    """Arrays of given chains, a list a problem; with ``duplicates="once"`` a repetition abstains."""
    classes = [_classes(problem, row, duplicates) for problem, row in zip(problems, chains, strict=True)]
    table = VoteTable.of(
        classes,
        [[scored.o for scored in row] for row in chains],
        [[scored.s for scored in row] for row in chains],
        [[mean_logprob(scored) for scored in row] for row in chains],
    )
    right = np.zeros(table.classes.shape, dtype=np.bool_)
    for index, (problem, row) in enumerate(zip(problems, chains, strict=True)):
        right[index, : len(row)] = _right(problem, row)
    all_reached = np.ones(len(problems), dtype=np.bool_) if reached is None else np.array(reached, dtype=np.bool_)
    return RoundArrays(table=table, right=right, reached=all_reached)


def _classes(problem: Problem, chains: Sequence[ScoredChain], duplicates: str) -> list[int | None]:
    classes = answer_classes(problem, [scored.chain for scored in chains])
    if duplicates != "once":
        return classes
    return [None if of is not None else c for c, of in zip(classes, repeated(chains), strict=True)]


def _right(problem: Problem, chains: Sequence[ScoredChain]) -> list[bool]:
    known: dict[str | None, bool] = {}
    for scored in chains:
        answer = scored.chain.answer
        if answer not in known:
            known[answer] = is_correct(problem, answer) is True
    return [known[scored.chain.answer] for scored in chains]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutedOutcomes:
    """What T routers would have come to on P problems.

    Attributes:
        hard: (T, P) routed hard at round 0.
        right: (T, P) the answer is right; only meaningful where ``known``.
        rounds: (T, P) rounds of refinement that were gone through.
        known: (T, P) the run holds every round that the router asks for. Where it does not, nothing is assumed.
    """

    hard: BoolArray
    right: BoolArray
    rounds: IntArray
    known: BoolArray


def routed(taken: Trajectories, easy: Sequence[BoolArray], *, iterations: int | None = None) -> RoutedOutcomes:
    """Follow routers through the rounds of a run.

    Args:
        taken: The run.
        easy: For each of its rounds (T, P) what each router says of the chains kept after it.
        iterations: Rounds of refinement at the most; those that the run has by default.
    """
    rounds = taken.rounds
    last = len(rounds) - 1 if iterations is None else iterations
    shape = easy[0].shape
    found, known = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    refined = np.zeros(shape, dtype=np.int64)
    for number, one in enumerate(rounds[: last + 1]):
        following = rounds[number + 1].reached if number + 1 < len(rounds) else np.zeros(taken.n, dtype=np.bool_)
        going = ~known & one.reached
        refined += going if number else 0
        stops = going & (easy[number] | (number == last) | (taken.closed & ~following))
        found = np.where(stops, one.right_by(), found)
        known = known | stops
    return RoutedOutcomes(hard=~easy[0], right=found, rounds=refined, known=known)
