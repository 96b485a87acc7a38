"""The headline: MAgICoRe beside more samples, beside refining everything and beside debate, on generated problems that
no model of the run was trained on.

For every family one run of ``magicore`` and, on the same chains, one of each rival. The rivals that only sample are
read off one run of three times as many chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import numpy as np

from difficulty.ties import BoolArray, FloatArray
from magicore.ablations.arms import Arm, arm_runs, run_spent
from magicore.ablations.drawing import frontier_scatter
from magicore.ablations.finished import FinishedRun, read_run
from magicore.ablations.initial_cost import FIRST_ROLES, FirstCosts
from magicore.ablations.iterations import answers_by_round, scored_by_round
from magicore.ablations.options import Options, agree
from magicore.ablations.statistics import SHOWN, Luck, Scored, arm_points, arm_rows
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.subsets import Aggregation
from magicore.ablations.trajectories import RoundArrays, chosen_right, initial_arrays, round_arrays, trajectories
from magicore.api import make_config, solve_batch
from magicore.config import load_config
from magicore.datasets.families import FAMILIES
from magicore.errors import InputError, MagicoreError, UnknownNameError
from magicore.evaluate import Comparison, compare, correctness
from magicore.evaluate.axes import AXIS_LABELS, Axis, Spent, frontier_rows
from magicore.evaluate.exact import EXACT
from magicore.evaluate.ranking import auroc
from magicore.runtime.directory import CONFIG
from magicore.voting import vote_table

NAME: Final = "headline"
LEVEL: Final = 0.01
"""Of the paired tests that the aim is judged by."""
SAMPLED: Final[tuple[tuple[str, Aggregation], ...]] = (
    ("self-consistency", ("self-consistency", None)),
    ("best-of-k", ("best-of-k", "o")),
    ("sc+prm", ("sc+prm", None)),
)
EMBEDDED: Final[Mapping[str, Any]] = {
    "model": "embedded",
    "orm": "embedded",
    "prm": "embedded",
    "prompts": "trained",
    "max_tokens": 220,
}


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What is compared.

    Attributes:
        families: Generated families.
        n: Problems of each, from the test split.
        seed: Of the problems; the recipe's own checks have another.
        k: Chains of every method; the wide rivals have three times as many.
        iterations: Rounds of MAgICoRe, at the most.
        everything: Rounds of refining everything.
        settings: Models, prompts and sampling of all runs.

    Raises:
        UnknownNameError: There is no such family; suggests a near one.
        InputError: There is no family, or one twice, or a number is below 1.
    """

    families: tuple[str, ...] = ("stories", "clock", "units")
    n: int = 100
    seed: int = 9
    k: int = 16
    iterations: int = 3
    everything: int = 1
    settings: Mapping[str, Any] = field(default_factory=lambda: dict(EMBEDDED))

    def __post_init__(self) -> None:
        for name in self.families:
            if name not in FAMILIES:
                near = get_close_matches(name, FAMILIES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(FAMILIES)}"
                raise UnknownNameError(f"no generated family {name!r}; {hint}")
        if not self.families or len(set(self.families)) < len(self.families):
            raise InputError(f"families are named once each, at least one: got {', '.join(self.families) or 'none'}")
        for name in ("n", "k", "iterations", "everything"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Counted(Scored):
    """An arm that also knows the tokens it generated, without those of the prompts it read; ``None`` if unknown.

    ``spent.generation_tokens`` counts both. A refinement reads much and writes little, so that the two differ.
    """

    completion_tokens: float | None = None


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family's arms, and figures that explain them."""

    arms: Mapping[str, Counted]
    explained: Mapping[str, Any]


def headline(work: Path, plan: Headline, *, luck: Luck | None = None, say: Callable[[str], None] = print) -> Study:
    """Run what is missing in ``work`` and compare. An interrupted headline goes on where it stopped.

    Raises:
        InputError: ``work`` holds runs of another plan.
        MagicoreError: As :func:`magicore.solve_batch`.
    """
    luck = luck or Luck()
    return headline_study({family: _family(work, family, plan, say) for family in plan.families}, plan, luck)


def headline_study(found: Mapping[str, Family], plan: Headline, luck: Luck) -> Study:
    """The tables and figures of families that are done."""
    own = rounds_name("magicore", plan.iterations)
    pooled = found if len(found) < 2 else {**found, "all": _pooled(found)}
    rows = [
        {"family": name, **row, "completion_tokens": family.arms[row["method"]].completion_tokens}
        for name, family in pooled.items()
        for row in arm_rows(family.arms, own, luck)
    ]
    aims = [row for name, family in pooled.items() for row in aim_rows(name, family.arms, own, plan, luck)]
    frontier = [
        {"family": name, **row} for name, family in pooled.items() for row in frontier_rows(arm_points(family.arms))
    ]
    apart = [row for row in aims if row["family"] in found]
    met = [row for row in apart if row["met"]]
    return Study(
        name=NAME,
        tables=(
            StudyTable(
                name="methods",
                title=f"Methods on {plan.n} held-out problems of each family, compared with {own}",
                rows=tuple(rows),
                shown=("family", "method", *SHOWN, "completion_tokens"),
            ),
            StudyTable(
                name="aim", title=f"{own} against its rivals (met: above, p < {LEVEL}, McNemar)", rows=tuple(aims)
            ),
            StudyTable(
                name="explained",
                title="What there was to gain, and where it went",
                rows=tuple({"family": name, **family.explained} for name, family in found.items()),
            ),
            StudyTable(
                name="frontier",
                title="Frontiers",
                rows=tuple(frontier),
                brief=lambda row: row["axis"] == "generation_tokens",
            ),
        ),
        figures=tuple(
            StudyFigure(
                name=f"frontier_{name}",
                title=f"{name}: accuracy against {AXIS_LABELS['generation_tokens']}",
                draw=frontier_scatter(
                    tuple(row for row in frontier if row["family"] == name),
                    "generation_tokens",
                    AXIS_LABELS["generation_tokens"],
                ),
            )
            for name in pooled
        ),
        remarks=(f"{len(met)} of {len(apart)} comparisons of the aim are met, each family's alone",),
        notes={
            **luck.notes,
            "families": list(plan.families),
            "problems": plan.n,
            "problem_seed": plan.seed,
            "k": plan.k,
            "iterations": plan.iterations,
            "settings": dict(plan.settings),
        },
    )


def rounds_name(method: str, rounds: int) -> str:
    """``magicore, 2 rounds``."""
    return f"{method}, {rounds} {'round' if rounds == 1 else 'rounds'}"


def aim_rows(family: str, arms: Mapping[str, Counted], own: str, plan: Headline, luck: Luck) -> list[dict[str, Any]]:
    """MAgICoRe against each rival of the aim: the paired test, and its tokens as a share of the rival's.

    ``completion_ratio`` is that of generated tokens, ``token_ratio`` of those together with the prompts'.
    """
    rivals = (f"self-consistency, k = {3 * plan.k}", f"best-of-k, k = {3 * plan.k}", "self-refine+sc")
    rows: list[dict[str, Any]] = []
    for rival in rivals:
        made: Comparison = compare(
            arms[own].right,
            arms[rival].right,
            resamples=luck.resamples,
            seed=luck.seed,
            confidence=luck.confidence,
        )
        rows.append(
            {
                "family": family,
                "rival": rival,
                "accuracy": made.accuracy,
                "rival_accuracy": made.baseline,
                "difference": made.difference,
                "difference_low": made.interval.low,
                "difference_high": made.interval.high,
                "only_magicore": made.only_method,
                "only_rival": made.only_baseline,
                "p_value": made.p_value,
                "completion_ratio": _ratio(arms[own].completion_tokens, arms[rival].completion_tokens),
                "token_ratio": _ratio(arms[own].spent.generation_tokens, arms[rival].spent.generation_tokens),
                "met": made.difference > 0 and made.p_value < LEVEL,
            }
        )
    return rows


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or not theirs else ours / theirs


def _family(work: Path, family: str, plan: Headline, say: Callable[[str], None]) -> Family:
    """Run a family's methods, or read those that are done."""
    say(f"{family}: {rounds_name('magicore', plan.iterations)}, k = {plan.k}")
    base = _base(work / family, family, plan)
    wide_name, everything, perfect = "wide", "refine everything", "exact step scores"
    arms = [
        Arm(name=wide_name, settings={"method": "weighted-self-consistency", "k": 3 * plan.k}),
        Arm(name="self-refine+sc", settings={"method": "self-refine+sc", "k": plan.k, "iterations": 1}),
        Arm(name="mars", settings={"method": "mars"}),
        Arm(name=everything, settings={"router": "hard", "iterations": plan.everything}),
        Arm(name=perfect, settings={"prm": f"{EXACT}:{base.config.data}", "iterations": plan.everything}),
    ]
    runs: dict[str, FinishedRun] = {}
    for arm in arms:
        say(f"{family}: {arm.name}")
        runs |= arm_runs(base, [arm], Options(consent=agree)).runs
    wide, uniform = runs[wide_name], runs[everything]
    scored = {
        **sampled(wide, base, plan.k),
        **{
            name: Counted(
                right=correctness(runs[name].results),
                spent=run_spent(runs[name], base),
                completion_tokens=_written(runs[name], runs[name].last_round),
            )
            for name in ("self-refine+sc", "mars")
        },
        **by_rounds(uniform, everything, plan.everything),
        **by_rounds(base, "magicore", plan.iterations),
    }
    told = explained(base, uniform, wide, plan.k) | with_exact_scores(runs[perfect])
    return Family(arms=scored, explained=told)


def _base(path: Path, family: str, plan: Headline) -> FinishedRun:
    data = f"gen:{family}:{plan.n}:{plan.seed}:test"
    options = {"k": plan.k, "iterations": plan.iterations}
    config = make_config(None, {**plan.settings, "data": data, "method": "magicore", "options": options})
    if (path / CONFIG).is_file():
        found = load_config(path / CONFIG, {})
        if names := [one.name for one in fields(config) if getattr(found, one.name) != getattr(config, one.name)]:
            raise InputError(f"{path} holds runs of another plan ({', '.join(names)} differ); give another folder")
    if solve_batch(None, config, out=path).interrupted:
        raise MagicoreError(f"interrupted in {path}; the same command goes on from here")
    return read_run(path)


def sampled(wide: FinishedRun, base: FinishedRun, k: int) -> dict[str, Counted]:
    """One chain, and each rival that only samples with the first ``k`` and with all chains of a run.

    What they cost is what runs of their own would have paid: ``wide`` has its first chains from ``base``'s store.
    """
    arrays, costs = initial_arrays(wide), _alone(wide, base)
    width = arrays.table.classes.shape[1]
    found = {"cot": _first(wide, arrays, costs, ("cot", None), 1)}
    for name, aggregation in SAMPLED:
        for count in (k, width) if name != "sc+prm" else (k,):
            found[f"{name}, k = {count}"] = _first(wide, arrays, costs, aggregation, count)
    return found


def _alone(wide: FinishedRun, base: FinishedRun) -> FirstCosts:
    """The costs of a run that went on drawing where another's store ended, as if it had drawn everything.

    Its time is longer by that of the chains it found. Where one call draws all chains of a problem, its second call
    for the rest paid for the prompt once more, which is taken off; where every chain is a call, nothing is.
    """
    first, costs = FirstCosts.of(base), FirstCosts.of(wide)
    costs = replace(costs, wall_s=run_spent(wide, base).wall_s)
    if sum(one.usage.calls for one in costs.solving) >= costs.chains:
        return costs
    written = [replace(one, usage=replace(one.usage, prompt=0, calls=0)) for one in costs.solving]
    asked = [replace(one, usage=replace(one.usage, completion=0, reasoning=0)) for one in first.solving]
    solving = (*written, *asked)
    return replace(costs, solving=solving, generated=sum(one.usage.total for one in solving))


def _first(run: FinishedRun, arrays: RoundArrays, costs: FirstCosts, aggregation: Aggregation, k: int) -> Counted:
    votes = vote_table(arrays.table.first(k), *aggregation)
    right = chosen_right(arrays.right[:, :k], votes.chosen)
    written = _written(run, 0)
    return Counted(
        right={r.id: bool(v) for r, v in zip(run.results, right, strict=True)},
        spent=costs.of_aggregation(k, *aggregation),
        completion_tokens=None if written is None else written * min(1.0, k * costs.problems / max(1, costs.chains)),
    )


def by_rounds(run: FinishedRun, name: str, rounds: int) -> dict[str, Counted]:
    """The run's answers after each of ``rounds`` rounds, the first sampling left out, with what they cost up to there.

    After the last round that any problem needed, later ones change nothing and cost nothing.
    """
    taken = trajectories(run)
    scored = scored_by_round(run, taken, answers_by_round(run, taken))
    found: dict[str, Counted] = {}
    for number in range(1, rounds + 1):
        at = min(number, len(scored) - 1)
        found[rounds_name(name, number)] = Counted(
            right=scored[at].right, spent=scored[at].spent, completion_tokens=_written(run, at)
        )
    return found


def _written(run: FinishedRun, number: int) -> float | None:
    """Tokens generated up to a round: the first chains', and of all others the share of the chains refined up to it."""
    total = 0.0
    for result in run.results:
        spent = [one for one in result.usage if one.role not in ("orm", "prm", "judge")]
        if any(one.usage.unmetered for one in spent):
            return None
        first = sum(one.usage.completion for one in spent if one.role in FIRST_ROLES)
        later = [record.scored.chain.round for record in run.chains.get(result.id, ()) if record.scored.chain.round > 0]
        share = sum(at <= number for at in later) / len(later) if later else 1.0
        total += first + (sum(one.usage.completion for one in spent) - first) * share
    return total


def explained(base: FinishedRun, uniform: FinishedRun, wide: FinishedRun, k: int) -> dict[str, Any]:
    """What limits a family: whether right chains are there, whether scores find them, whether refining makes more.

    ``coverage`` is the share of problems with a right chain among those meant; AUROC is over first chains, of the score
    against the answer's being right, problems thrown together. ``oracle_router`` is the accuracy where each problem has
    the better of its first vote and its last one after refining everything.
    """
    first, drawn = trajectories(uniform), initial_arrays(wide)
    last = first.rounds[-1]
    begun, ended = first.rounds[0].right_by(), answers_by_round(uniform, first)[-1]
    hard = np.array([result.verdict is not None and not result.verdict.easy for result in base.results])
    final = np.array([result.correct is True for result in base.results])
    fixed, broken = _moved(uniform)
    return {
        "single": float(drawn.right.mean()),
        "coverage_k": float(first.rounds[0].right.any(axis=1).mean()),
        "coverage_3k": float(drawn.right.any(axis=1).mean()),
        "coverage_kept": float(last.right.any(axis=1).mean()),
        "orm_auroc": _auroc(drawn.table.o, drawn.right),
        "prm_auroc": _auroc(drawn.table.s, drawn.right),
        "hard": float(hard.mean()),
        "easy_right": _share(begun[~hard]),
        "hard_right": _share(begun[hard]),
        "first_vote": float(begun.mean()),
        "magicore": float(final.mean()),
        "refine_everything": float(ended.mean()),
        "oracle_router": float((begun | ended).mean()),
        "chain_fixed": fixed,
        "chain_broken": broken,
    }


def with_exact_scores(run: FinishedRun) -> dict[str, Any]:
    """The same method with the steps' exact truth for scores, in routing, review and choice alike: what the reward
    model costs. What it still does not reach is the refiner's and the outcome model's part.
    """
    right = np.array([result.correct is True for result in run.results])
    fixed, broken = _moved(run)
    return {"with_exact_steps": float(right.mean()), "chain_fixed_exact": fixed, "chain_broken_exact": broken}


def _moved(run: FinishedRun) -> tuple[float | None, float | None]:
    """The share of refined wrong chains that became right, and of right ones that became wrong."""
    refined = [one.scored.chain for found in run.chains.values() for one in found if one.scored.chain.round > 0]
    right_of = _right_by_chain(run)
    moved = [(right_of[chain.parent], right_of[chain.id]) for chain in refined if chain.parent in right_of]
    fixed = _share(np.array([after for before, after in moved if not before]))
    return fixed, _share(np.array([not after for before, after in moved if before]))


def _right_by_chain(run: FinishedRun) -> dict[str | None, bool]:
    found: dict[str | None, bool] = {}
    for name, records in run.chains.items():
        chains = [one.scored for one in records]
        right = round_arrays([run.by_id[name]], [chains]).right[0]
        found |= {one.chain.id: bool(value) for one, value in zip(chains, right, strict=True)}
    return found


def _auroc(scores: FloatArray, right: BoolArray) -> float | None:
    known = ~np.isnan(scores)
    return auroc(scores[known].tolist(), right[known].tolist())


def _share(values: BoolArray) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _pooled(found: Mapping[str, Family]) -> Family:
    """All families as one, over the arms that all of them have."""
    names = [name for name in next(iter(found.values())).arms if all(name in one.arms for one in found.values())]
    arms: dict[str, Counted] = {}
    for name in names:
        parts = [one.arms[name] for one in found.values()]
        right = {problem: value for part in parts for problem, value in part.right.items()}
        written = [part.completion_tokens for part in parts]
        known = [value for value in written if value is not None]
        arms[name] = Counted(
            right=right,
            spent=sum_spent([part.spent for part in parts]),
            completion_tokens=sum(known) if len(known) == len(written) else None,
        )
    return Family(arms=arms, explained={})


def sum_spent(parts: Sequence[Spent]) -> Spent:
    """The cost of several batches together; unknown where one is."""

    def total(axis: Axis) -> float | None:
        values = [part.on(axis) for part in parts]
        return None if any(value is None for value in values) else sum(value for value in values if value is not None)

    bases = {part.wall_basis for part in parts}
    return Spent(
        generation_tokens=total("generation_tokens"),
        reward_tokens=total("reward_tokens"),
        judge_tokens=total("judge_tokens"),
        calls=total("calls"),
        wall_s=total("wall_s"),
        money=total("money"),
        wall_basis=bases.pop() if len(bases) == 1 else "",
    )
