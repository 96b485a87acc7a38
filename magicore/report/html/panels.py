"""The report's panels as numbers: pure functions of graded problems. What cannot be said is a :class:`Missing`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from difficulty.metrics import confusion
from magicore.evaluate import Accuracy, accuracy, cost_of
from magicore.evaluate.axes import AXES, spent_on
from magicore.evaluate.compute import JUDGE_ROLES, REWARD_ROLES
from magicore.evaluate.coverage import pass_at_k
from magicore.evaluate.reward_report import Discrimination, discrimination
from magicore.report.html.graded import GradedProblem, vote_table_of
from magicore.report.run_files import RunFiles
from magicore.types import Result, Usage
from magicore.voting import vote_table

NAMED = 20
"""Problems that a line of the troubles names."""
SERIES: Sequence[tuple[str, str, str | None]] = (
    ("self-consistency", "self-consistency", None),
    ("weighted self-consistency", "weighted-self-consistency", "S"),
    ("best-of-k by o", "best-of-k", "o"),
    ("sc+prm", "sc+prm", None),
)
"""The votes over first chains that the frontier draws: shown name, method, weights."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A panel that has nothing to show, and why, in one sentence."""

    missing: str


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """One method at one setting. ``tokens`` are those generated for a problem, on average; ``None`` where unknown."""

    k: int
    tokens: float | None
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Accuracy against generated tokens.

    Attributes:
        series: Votes over the first k' of the run's first chains, k' = 1, 2, 4 ..., and ``coverage``: how often at
            least one of k' chains is right (pass@k), which no choosing can beat.
        run: The run itself.
        spent: What the run spent on a problem, on average, by axis (:data:`magicore.evaluate.axes.AXES`), prompts
            included; ``None`` where that is not known.
        note: What the numbers leave out, if anything.
    """

    series: Mapping[str, tuple[FrontierPoint, ...]]
    run: FrontierPoint
    spent: Mapping[str, float | None]
    note: str | None


@dataclass(frozen=True, kw_only=True)
class Routed:
    """One problem in the plane of the two conditions: mean z of the majority, and the smaller of both confidences."""

    at: int
    z: float
    confidence: float
    correct: bool | None
    easy: bool


@dataclass(frozen=True, kw_only=True)
class Routing:
    """How problems were routed. Hard is the positive class of ``precision`` and ``recall``, against the oracle: hard if
    and only if weighted self-consistency over the first chains is wrong; ``None`` where nothing is graded."""

    router: str
    points: tuple[Routed, ...]
    unplaced: int
    groups: Mapping[str, Accuracy]
    precision: float | None
    recall: float | None
    refined_without_need: int | None
    left_wrong: int | None


@dataclass(frozen=True, kw_only=True)
class FlowRound:
    """What one round did to the answers. ``active`` problems were in it; ``right`` counts all, after it."""

    round: int
    active: int
    fixed: int
    broken: int
    stayed_right: int
    stayed_wrong: int
    right: int


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What each round fixed and broke; ``graded`` problems whose answer is known after every round."""

    graded: int
    unknown: int
    first_right: int
    rounds: tuple[FlowRound, ...]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How well scores tell chains with a right final answer from others.

    ``steps`` takes each step's score against the final answer of its chain: whether the step itself was right is not
    known.
    """

    orm: Discrimination | Missing
    prm: Discrimination | Missing
    steps: Discrimination | Missing


@dataclass(frozen=True, kw_only=True)
class RoleTokens:
    """What one role spent on one model; ``unmetered`` calls came without token counts."""

    role: str
    model: str
    group: str
    prompt: int
    completion: int
    reasoning: int
    calls: int
    unmetered: int


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Something that went wrong or is missing: where, what, how often, and the first problems it concerns."""

    where: str
    what: str
    count: int
    of: int | None
    problems: tuple[str, ...]


def frontier(
    problems: Sequence[GradedProblem],
    *,
    wall_s: float | None = None,
    prices: Mapping[str, Mapping[str, Any]] | None = None,
) -> Frontier | Missing:
    """Accuracy against tokens; see :class:`Frontier`. ``wall_s`` is the run's time, ``prices`` its configuration's."""
    graded = [one for one in problems if one.result.gold is not None]
    if not graded:
        return Missing(missing="No problem has a gold answer, so there is no accuracy to draw.")
    n = len(graded)
    results = [one.result for one in graded]
    width = max(len(one.first) for one in graded)
    generated = [s.usage for r in results for s in r.usage if s.role not in REWARD_ROLES | JUDGE_ROLES]
    unmetered = any(usage.unmetered for usage in generated)
    own = FrontierPoint(
        k=width,
        tokens=None if unmetered or not generated else sum(usage.completion for usage in generated) / n,
        accuracy=sum(result.correct is True for result in results) / n,
    )
    series: dict[str, tuple[FrontierPoint, ...]] = {}
    costs = [[one.chains[at].scored.chain.tokens for at in one.first] for one in graded]
    if width:
        sizes = _sizes(width)
        tokens = {k: _mean_tokens(costs, k) for k in sizes}
        series = {**_votes(graded, sizes, tokens), "coverage": _coverage(graded, sizes, tokens)}
    note = None
    if own.tokens is None or any(point.tokens is None for points in series.values() for point in points):
        note = "Some replies came without token counts; what cannot be placed on the axis is left out."
    return Frontier(series=series, run=own, spent=_spent(problems, wall_s, prices), note=note)


def routing(problems: Sequence[GradedProblem]) -> Routing | Missing:
    """The two conditions, and right or wrong; see :class:`Routing`."""
    routed = [(at, one) for at, one in enumerate(problems) if one.result.verdict is not None]
    if not routed:
        return Missing(missing="This method routes nothing: there is no easy and hard to show.")
    points: list[Routed] = []
    groups: dict[str, list[Result]] = {}
    names: set[str] = set()
    for at, one in routed:
        verdict = one.result.verdict
        assert verdict is not None
        names.add(verdict.router)
        groups.setdefault("easy" if verdict.easy else "hard", []).append(one.result)
        both = (verdict.confidence_orm, verdict.confidence_prm)
        known = [value for value in both if value is not None]
        if verdict.z is not None and len(known) == len(both):
            correct = None if one.result.gold is None else one.result.correct is True
            points.append(Routed(at=at, z=verdict.z, confidence=min(known), correct=correct, easy=verdict.easy))
        if verdict.condition_1 is not None and verdict.condition_2 is not None:
            groups.setdefault(_conditions(verdict.condition_1, verdict.condition_2), []).append(one.result)
    ordered = ("easy", "hard", "both conditions", "condition 1 only", "condition 2 only", "neither condition")
    judged = [one for _, one in routed if one.result.gold is not None and one.first]
    found = None
    if judged:
        votes = vote_table(vote_table_of(judged), "weighted-self-consistency")
        coarse = [_is_right(one, int(column)) for one, column in zip(judged, votes.chosen, strict=True)]
        found = confusion(
            (one.result.verdict is not None and one.result.verdict.hard for one in judged),
            (not right for right in coarse),
        )
    return Routing(
        router=", ".join(sorted(names)),
        points=tuple(points),
        unplaced=len(routed) - len(points),
        groups={name: accuracy(groups[name]) for name in ordered if name in groups},
        precision=None if found is None else found.precision,
        recall=None if found is None else found.recall,
        refined_without_need=None if found is None else found.easy_as_hard,
        left_wrong=None if found is None else found.hard_as_easy,
    )


def flow(problems: Sequence[GradedProblem]) -> Flow | Missing:
    """What each round fixed and broke; see :class:`Flow`."""
    graded = [one for one in problems if one.result.gold is not None]
    known = [one for one in graded if all(state is not None for state in one.after)]
    last = max((one.rounds for one in graded), default=0) - 1
    if not graded:
        return Missing(missing="No problem has a gold answer, so nothing can be fixed or broken.")
    if last < 1:
        return Missing(missing="No problem went through a second round: nothing was refined.")
    if not known:
        return Missing(missing="Which chains were kept after each round is not on file.")
    states = [tuple(bool(state) for state in one.after) for one in known]
    rounds = []
    for number in range(1, last + 1):
        moved = [(after[number - 1], after[number]) for after in states if len(after) > number]
        rounds.append(
            FlowRound(
                round=number,
                active=len(moved),
                fixed=moved.count((False, True)),
                broken=moved.count((True, False)),
                stayed_right=moved.count((True, True)),
                stayed_wrong=moved.count((False, False)),
                right=sum(after[min(number, len(after) - 1)] for after in states),
            )
        )
    return Flow(
        graded=len(known),
        unknown=len(graded) - len(known),
        first_right=sum(after[0] for after in states),
        rounds=tuple(rounds),
    )


def calibration(run: RunFiles, problems: Sequence[GradedProblem]) -> Calibration | Missing:
    """AUROC and reliability of outcome, process and step scores; see :class:`Calibration`."""
    pairs = [
        (record.scored, right)
        for one in problems
        for record, right in zip(one.chains, one.right, strict=True)
        if right is not None
    ]
    if run.config.orm is None and run.config.prm is None and not any(s.orm or s.prm for s, _ in pairs):
        return Missing(missing="The run used no reward model.")
    if not pairs:
        return Missing(missing="No chain can be graded: there are no chains on file, or no gold answers.")
    outcome = [(scored.o, right) for scored, right in pairs if scored.orm is not None]
    process = [(scored.s, right) for scored, right in pairs if scored.prm is not None]
    steps = [(score.value, right) for scored, right in pairs if scored.prm for score in scored.prm.scores]
    return Calibration(
        orm=_discriminated(outcome, "The run used no outcome reward model."),
        prm=_discriminated(process, "The run used no process reward model."),
        steps=_discriminated(steps, "The run used no process reward model."),
    )


def tokens(run: RunFiles) -> tuple[RoleTokens, ...] | Missing:
    """What each role spent: as the results say, or for an unfinished run as its store says."""
    spent: dict[tuple[str, str], Usage] = {}
    listed = [(one.role, one.model, one.usage) for result in run.plain_results() for one in result.usage]
    for role, model, usage in listed or [(one.role, one.model, one.usage) for one in run.accounts]:
        spent[role, model] = spent.get((role, model), Usage()) + usage
    if not spent:
        return Missing(missing="No call is on file.")
    rows = [
        RoleTokens(
            role=role,
            model=model,
            group=_group(role),
            prompt=usage.prompt,
            completion=usage.completion,
            reasoning=usage.reasoning,
            calls=usage.calls,
            unmetered=usage.unmetered,
        )
        for (role, model), usage in spent.items()
    ]
    order = ("generation", "reward models", "judges")
    return tuple(sorted(rows, key=lambda row: (order.index(row.group), -(row.prompt + row.completion), row.role)))


def troubles(problems: Sequence[GradedProblem]) -> tuple[Trouble, ...]:
    """Failures, abstentions, cut chains, missing scores and warnings, by kind."""
    n = len(problems)
    chains = [(one.result.id, record.scored) for one in problems for record in one.chains]
    found = [
        *_counted("Problems that failed", _failures(problems), n),
        *_counted("Problems that ended early", _endings(problems), n),
        *_counted("Problems without an answer", _unanswered(problems), n),
        *_counted(
            "Chains that abstained from the vote",
            ((one.result.id, _reason(a.reason)) for one in problems for a in one.result.abstained),
            len(chains),
        ),
        *_counted(
            "Chains that ended otherwise than by themselves",
            ((name, f"ended by {scored.chain.stop}") for name, scored in chains if scored.chain.stop != "stop"),
            len(chains),
        ),
        *_counted(
            "Chains without an outcome score",
            ((name, s.orm.unscored.code) for name, s in chains if s.orm is not None and s.orm.unscored is not None),
            sum(scored.orm is not None for _, scored in chains),
        ),
        *_counted(
            "Steps without a score",
            (
                (name, score.unscored.code)
                for name, s in chains
                if s.prm is not None
                for score in s.prm.scores
                if score.unscored is not None
            ),
            sum(len(scored.prm.scores) for _, scored in chains if scored.prm is not None),
        ),
        *_counted("Warnings", ((one.result.id, text) for one in problems for text in one.result.warnings), n),
    ]
    return tuple(found)


def _failures(problems: Sequence[GradedProblem]) -> Iterable[tuple[str, str]]:
    for one in problems:
        error = one.result.error
        if error is not None:
            yield one.result.id, f"{error.type}: {error.message}"
        elif one.result.stop == "failed":
            yield one.result.id, "failed"


def _endings(problems: Sequence[GradedProblem]) -> Iterable[tuple[str, str]]:
    for one in problems:
        if one.result.stop == "budget":
            yield one.result.id, "the budget was used up, or the run was ended early"


def _unanswered(problems: Sequence[GradedProblem]) -> Iterable[tuple[str, str]]:
    for one in problems:
        if one.result.answer is None and one.result.error is None and one.result.stop != "failed":
            yield one.result.id, "every chain abstained"


def _spent(
    problems: Sequence[GradedProblem], wall_s: float | None, prices: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, float | None]:
    """By axis, for a problem. Where calls stated no tokens these are not known: a lower bound is no cost."""
    results = [one.result for one in problems]
    spent = spent_on(results, wall_s=wall_s, prices=prices)
    unmetered = cost_of(results).unmetered > 0
    found: dict[str, float | None] = {}
    for axis in AXES:
        value = spent.on(axis)
        lower_bound = unmetered and axis.endswith("tokens")
        found[axis] = None if value is None or lower_bound else value / len(results)
    return found


def _reason(text: str) -> str:
    """Reasons that name a chain are counted together."""
    return "repeats another chain" if text.startswith("repeats ") else text


def _counted(where: str, items: Iterable[tuple[str, str]], of: int) -> Iterable[Trouble]:
    counts: Counter[str] = Counter()
    names: dict[str, dict[str, None]] = {}
    for name, what in items:
        counts[what] += 1
        named = names.setdefault(what, {})
        if len(named) < NAMED:
            named[name] = None
    for what, count in counts.most_common():
        yield Trouble(where=where, what=what, count=count, of=of or None, problems=tuple(names[what]))


def _conditions(first: bool, second: bool) -> str:
    if first and second:
        return "both conditions"
    return "condition 1 only" if first else "condition 2 only" if second else "neither condition"


def _discriminated(pairs: Sequence[tuple[float | None, bool]], otherwise: str) -> Discrimination | Missing:
    if not pairs:
        return Missing(missing=otherwise)
    found = discrimination([score for score, _ in pairs], [right for _, right in pairs])
    return found if found.n else Missing(missing=f"None of {len(pairs):,} has a score.")


def _group(role: str) -> str:
    return "reward models" if role in REWARD_ROLES else "judges" if role in JUDGE_ROLES else "generation"


def _sizes(width: int) -> list[int]:
    """1, 2, 4 ... and the whole."""
    return [*(1 << power for power in range(width.bit_length()) if 1 << power < width), width]


def _mean_tokens(costs: Sequence[Sequence[int | None]], k: int) -> float | None:
    taken = [cost for row in costs for cost in row[:k]]
    known = [cost for cost in taken if cost is not None]
    return fsum(known) / len(costs) if len(known) == len(taken) else None


def _votes(
    graded: Sequence[GradedProblem], sizes: Sequence[int], tokens: Mapping[int, float | None]
) -> dict[str, tuple[FrontierPoint, ...]]:
    table = vote_table_of(graded)
    scored = [scored for one in graded for record in one.chains if (scored := record.scored).chain.round == 0]
    needs: Mapping[str | None, Callable[[], bool]] = {
        None: lambda: True,
        "S": lambda: any(one.combined is not None for one in scored),
        "o": lambda: any(one.o is not None for one in scored),
        "s": lambda: any(one.s is not None for one in scored),
    }
    found = {}
    for name, method, weights in SERIES:
        if not needs["s" if method == "sc+prm" else weights]():
            continue
        points = []
        for k in sizes:
            votes = vote_table(table.first(k), method, weights)
            right = [_is_right(one, int(column)) for one, column in zip(graded, votes.chosen, strict=True)]
            points.append(FrontierPoint(k=k, tokens=tokens[k], accuracy=sum(right) / len(right)))
        found[name] = tuple(points)
    return found


def _coverage(
    graded: Sequence[GradedProblem], sizes: Sequence[int], tokens: Mapping[int, float | None]
) -> tuple[FrontierPoint, ...]:
    counts = [(len(one.first), sum(one.right[at] is True for at in one.first)) for one in graded]
    return tuple(
        FrontierPoint(
            k=k,
            tokens=tokens[k],
            accuracy=fsum(pass_at_k(n, right, min(k, n)) if n else 0.0 for n, right in counts) / len(counts),
        )
        for k in sizes
    )


def _is_right(problem: GradedProblem, column: int) -> bool:
    """Whether the chosen one of a problem's first chains is right; no chain chosen is not."""
    return column >= 0 and problem.right[problem.first[column]] is True
