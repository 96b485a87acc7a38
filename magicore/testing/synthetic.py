"""A synthetic run whose truth is known: for testing estimators, and for seeing what a study of a given size can show.

Each problem has a probability q, drawn from a Beta distribution, that a chain of it is right. Wrong chains answer one
of several wrong answers. The outcome score and the solution's process score are Phi(x), where x is normal with unit
variance and mean +d/2 for a right chain and -d/2 for a wrong one: their AUROC is Phi(d / sqrt 2), which sets d. Step
scores are powers of the solution's score that multiply to it. A refinement of a wrong chain is right with probability
``fix``, one of a right chain is wrong with probability ``spoil``.

``synthetic_run`` makes a real run of it, by the real method over a model that answers so; ``draw`` gives the first
chains alone, as arrays.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from difficulty.ties import BoolArray, FloatArray
from magicore.ablations.trajectories import RoundArrays
from magicore.api import solve_batch
from magicore.errors import InputError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.batch import Run
from magicore.store.files import write_problems
from magicore.types import Problem
from magicore.vote_table import VoteTable
from reward_models.scripted import ScriptedORM, ScriptedPRM
from reward_models.types import Solution

GOLD = "1"
_NORMAL = NormalDist()
_Q = re.compile(r"right with probability (\d\.\d+)")
_ANSWER = re.compile(r"[Tt]he final answer is (\d+)")
_OUTCOME = re.compile(r"worth (\d\.\d+)")
_STEP = re.compile(r"weighs (\d\.\d+)")


@dataclass(frozen=True, kw_only=True)
class SyntheticTruth:
    """What a synthetic run is drawn from.

    Attributes:
        problems, k: How many problems, and chains of each.
        alpha, beta: Of the Beta distribution of a problem's q.
        wrong_answers: How many wrong answers a wrong chain chooses among, each half as likely as the one before.
        orm_auroc, prm_auroc: How well o and s tell right from wrong chains, from 0.5 (not at all) to below 1.
        steps: Steps of a solution.
        iterations: Rounds of refinement.
        fix: Probability that refining a wrong chain makes it right.
        spoil: Probability that refining a right chain makes it wrong.
        seed: Equal seeds give equal runs.
    """

    problems: int = 200
    k: int = 16
    alpha: float = 1.0
    beta: float = 1.0
    wrong_answers: int = 4
    orm_auroc: float = 0.8
    prm_auroc: float = 0.75
    steps: int = 3
    iterations: int = 1
    fix: float = 0.3
    spoil: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"problems": 1, "k": 1, "wrong_answers": 1, "steps": 1, "iterations": 0}
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise InputError(f"{name} is at least {minimum}, got {getattr(self, name)}")
        if self.alpha <= 0 or self.beta <= 0:
            raise InputError(f"alpha and beta are above 0, got {self.alpha} and {self.beta}")
        for name in ("orm_auroc", "prm_auroc"):
            if not 0.5 <= getattr(self, name) < 1:
                raise InputError(f"{name} lies in [0.5, 1), got {getattr(self, name)}")
        for name in ("fix", "spoil"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} lies in [0, 1], got {getattr(self, name)}")

    @property
    def chain_accuracy(self) -> float:
        """The probability that a first chain is right: alpha / (alpha + beta)."""
        return self.alpha / (self.alpha + self.beta)

    def coverage(self, k: int) -> float:
        """The probability that some of k chains is right: 1 - B(alpha, beta + k) / B(alpha, beta)."""
        a, b = self.alpha, self.beta
        log_missed = math.lgamma(b + k) + math.lgamma(a + b) - math.lgamma(a + b + k) - math.lgamma(b)
        return 1.0 - math.exp(log_missed)

    def separation(self, auroc: float) -> float:
        """The distance d of the two normal means that gives an AUROC: sqrt 2 times its normal quantile."""
        return math.sqrt(2) * _NORMAL.inv_cdf(auroc)


def draw(truth: SyntheticTruth, *, problems: int | None = None, seed: int | None = None) -> RoundArrays:
    """First chains as arrays: another sample of the same truth for another seed."""
    source = np.random.default_rng(truth.seed if seed is None else seed)
    shape = (truth.problems if problems is None else problems, truth.k)
    right: BoolArray = source.random(shape) < source.beta(truth.alpha, truth.beta, size=(shape[0], 1))
    weights = 0.5 ** np.arange(truth.wrong_answers)
    wrong = 1 + source.choice(truth.wrong_answers, size=shape, p=weights / weights.sum())

    def scores(auroc: float) -> FloatArray:
        from scipy.special import ndtr

        shift = truth.separation(auroc) / 2
        found: FloatArray = ndtr(source.standard_normal(shape) + np.where(right, shift, -shift))
        return found

    table = VoteTable(
        classes=np.where(right, 0, wrong),
        o=scores(truth.orm_auroc),
        s=scores(truth.prm_auroc),
        logprob=np.full(shape, np.nan),
        include=np.ones(shape, dtype=np.bool_),
    )
    return RoundArrays(table=table, right=right, reached=np.ones(shape[0], dtype=np.bool_))


def synthetic_problems(truth: SyntheticTruth) -> list[Problem]:
    """The problems: each question states its own q, which is how the model that answers knows it."""
    source = random.Random(truth.seed)
    return [
        Problem(
            id=f"s{number}",
            question=f"Synthetic problem {number}, right with probability "
            f"{source.betavariate(truth.alpha, truth.beta):.9f}.",
            kind="number",
            answer=GOLD,
        )
        for number in range(truth.problems)
    ]


def synthetic_model(truth: SyntheticTruth) -> ScriptedModel:
    """Answers as the truth says; the same for the same seed, problem, role, round, parent and sample."""
    return ScriptedModel(lambda request, index: reply(truth, request, index), name="synthetic")


def synthetic_orm() -> ScriptedORM:
    """Reads the outcome score that a synthetic solution states."""
    return ScriptedORM(lambda solution: _stated(_OUTCOME, solution.text), name="synthetic-orm")


def synthetic_prm() -> ScriptedPRM:
    """Reads the scores that the steps of a synthetic solution state."""
    return ScriptedPRM(_step_scores, name="synthetic-prm")


def synthetic_run(path: str | Path, truth: SyntheticTruth | None = None, **settings: Any) -> Run:
    """Make a finished run directory: a real run of ``magicore`` that refines everything, over a model of known truth.

    Args:
        path: The directory; its problems are written beside it into ``problems.jsonl``.
        truth: What it is drawn from.
        **settings: Further settings and options of the run, such as ``router="magicore"``.

    Raises:
        InputError: a setting does not fit.
        StoreError: the directory cannot be written or holds another run.
    """
    truth = truth or SyntheticTruth()
    folder = Path(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    data = folder.parent / f"{folder.name}-problems.jsonl"
    write_problems(data, synthetic_problems(truth))
    chosen = {"method": "magicore", "k": truth.k, "iterations": truth.iterations, "router": "hard", "seed": truth.seed}
    return solve_batch(
        None,
        data=str(data),
        model=synthetic_model(truth),
        orm=synthetic_orm(),
        prm=synthetic_prm(),
        out=folder,
        progress=False,
        **{**chosen, **settings},
    )


def reply(truth: SyntheticTruth, request: Request, index: int) -> str:
    """What the synthetic model answers; for a ``scripted:MODULE:FUNCTION`` of one's own, so that new runs find it."""
    key = request.key
    source = random.Random(f"{truth.seed}/{key.problem}/{key.role}/{key.instance}/{key.round}/{key.parent}/{index}")
    texts = [message["content"] for message in request.messages]
    if key.role not in ("solver", "refiner", "joint", "author"):
        return "Look at the lowest step again."
    if key.parent is None:
        chance = _stated(_Q, "\n".join(texts)) or 0.0
    else:
        before = _ANSWER.findall(texts[-1])
        chance = 1.0 - truth.spoil if before and before[-1] == GOLD else truth.fix
    return _solution(truth, right=source.random() < chance, source=source)


def _solution(truth: SyntheticTruth, *, right: bool, source: random.Random) -> str:
    weights = [0.5**at for at in range(truth.wrong_answers)]
    answer = GOLD if right else str(2 + source.choices(range(truth.wrong_answers), weights)[0])
    o, s = (_score(truth.separation(a), right, source) for a in (truth.orm_auroc, truth.prm_auroc))
    shares = [source.random() + 0.1 for _ in range(truth.steps)]
    steps = [s ** (share / sum(shares)) for share in shares]
    lines = [f"Step {at}: a step that weighs {value:.12f}." for at, value in enumerate(steps[:-1], 1)]
    lines.append(f"Step {truth.steps}: worth {o:.12f}, it weighs {steps[-1]:.12f}, and the final answer is {answer}.")
    return "\n".join(lines).replace("the final answer is", "The final answer is")


def _score(distance: float, right: bool, source: random.Random) -> float:
    return _NORMAL.cdf(source.gauss(distance / 2 if right else -distance / 2, 1.0))


def _stated(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return None if found is None else float(found.group(1))


def _step_scores(solution: Solution) -> Sequence[float | None]:
    return [_stated(_STEP, step.text) for step in solution.steps]


def truth_row(truth: SyntheticTruth) -> Mapping[str, float]:
    """What has a closed form, for showing beside an estimate."""
    return {"chain_accuracy": truth.chain_accuracy, f"coverage_{truth.k}": truth.coverage(truth.k)}
