"""Easy and hard: aggregate everything, refine everything, or route. From the chains of one run.

Every strategy starts from the same stored chains, so they differ in the decision alone; what a strategy needs and the
run has not drawn (the refinements of easy questions) is drawn once and stored in the run's directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from difficulty import Confusion, Evidence, OracleRouter, compare_verdicts, router
from magicore._sync import run_sync
from magicore.ablations.comparison import method_row
from magicore.api import as_source
from magicore.chains import answer_classes
from magicore.config import RunConfig, load_config
from magicore.errors import InputError
from magicore.methods import make_method
from magicore.methods.conclude import is_correct, vote_on
from magicore.methods.magicore import Magicore
from magicore.report.tables import MethodRow
from magicore.runtime.directory import CONFIG, STORE
from magicore.runtime.open import open_engine
from magicore.runtime.run import RunOutcome, initial_chains, run_method
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result

STRATEGIES = {"aggregate everything": "easy", "refine everything": "hard", "route": None}
"""Each strategy and the router that makes it; ``None`` is the run's own."""


@dataclass(frozen=True, kw_only=True)
class EasyHard:
    """The study's outcome. ``confusion`` compares the run's router with the oracle, hard being positive; ``fixed`` and
    ``broken`` count answers that refining everything turned right or wrong."""

    strategies: tuple[MethodRow, ...]
    confusion: Confusion | None
    fixed: int
    broken: int


def easy_hard(directory: str | Path) -> EasyHard:
    """Run the study on a finished (or unfinished) run's directory.

    Raises:
        InputError: there is no run of the method ``magicore`` there.
    """
    path = Path(directory)
    if not (path / CONFIG).is_file() or not (path / STORE).is_file():
        raise InputError(f"{path} holds no run: make one with `magicore run --method magicore --out {path}`")
    config = load_config(path / CONFIG, {})
    problems = list(as_source(None, config))
    if all(problem.answer is None for problem in problems):
        raise InputError(f"no problem of {path} has a gold answer, so nothing can be compared")
    if config.method != "magicore":
        raise InputError(f"{path} holds a run of {config.method}; this study needs one of the method magicore")
    store = RunStore(path / STORE)
    try:
        return run_sync(study(config, problems, store))
    finally:
        store.close()


async def study(config: RunConfig, problems: Sequence[Problem], store: RunStore, **given: Any) -> EasyHard:
    """The study over ``problems``, with everything drawn so far in ``store``; ``given`` as in ``open_engine``."""
    outcomes: dict[str, RunOutcome] = {}
    async with open_engine(config, store, **given) as engine:
        own = make_method(config.method, **config.options)
        assert isinstance(own, Magicore)
        for name, router_name in STRATEGIES.items():
            method = own if router_name is None else replace(own, router=router(router_name))
            outcomes[name] = await run_method(
                method, problems, engine, calibration=config.calibration, concurrency=config.concurrency
            )
    aggregate, refine = outcomes["aggregate everything"], outcomes["refine everything"]
    pairs = [(a.correct, r.correct) for a, r in zip(aggregate.results, refine.results, strict=True)]
    return EasyHard(
        strategies=tuple(method_row(name, outcome.results, outcome.wall_s) for name, outcome in outcomes.items()),
        confusion=_against_oracle(problems, outcomes["route"].results),
        fixed=sum(before is False and after is True for before, after in pairs),
        broken=sum(before is True and after is False for before, after in pairs),
    )


def _against_oracle(problems: Sequence[Problem], results: Sequence[Result]) -> Confusion | None:
    """The run's verdicts against the oracle's, over problems with a gold answer and a verdict."""
    verdicts, oracle = [], []
    for problem, result in zip(problems, results, strict=True):
        chains = initial_chains(result)
        if problem.answer is None or result.verdict is None:
            continue
        vote, _ = vote_on(problem, chains, "weighted-self-consistency")
        chosen = None if vote.chosen is None else chains[vote.chosen].chain.answer
        evidence = Evidence(
            classes=answer_classes(problem, [scored.chain for scored in chains]),
            o=[scored.o for scored in chains],
            s=[scored.s for scored in chains],
            coarse_correct=is_correct(problem, chosen),
        )
        verdicts.append(result.verdict)
        oracle.append(OracleRouter()(evidence))
    return compare_verdicts(verdicts, oracle) if verdicts else None
