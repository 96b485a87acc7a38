"""The problems of a run, known again: from the data that its configuration names, or from what its store keeps.

Whatever reads a run's directory asks here: ``magicore show``, the report, the studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from magicore.config import RunConfig
from magicore.datasets import iter_problems
from magicore.errors import MagicoreError
from magicore.store.locking import is_network
from magicore.store.origin import Origin, noted_origin
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result


def reread_problems(store: Path, config: RunConfig, results: Sequence[Result]) -> tuple[dict[str, Problem], str | None]:
    """The problems of results, as far as they are known again, and why any are missing.

    Kind and gold are the results'; question and options come from the run's data, or, where it was given its problems
    from Python, from its ``store``.
    """
    wanted = {result.id: result for result in results}
    if not wanted:
        return {}, None
    try:
        origin = Origin(data=config.data) if config.data is not None else _noted(store)
        found = _kept(origin, wanted.values()) if origin.data is None else _read(origin.data, config)
        known: dict[str, Problem] = {}
        for problem in found:
            if problem.id in wanted:
                result = wanted[problem.id]
                known[problem.id] = replace(problem, kind=result.kind, answer=result.gold)
            if len(known) == len(wanted):
                return known, None
    except MagicoreError as error:
        return {}, str(error)
    lost = len(wanted) - len(known)
    if origin.data is not None:
        return known, f"the run's data no longer has {lost:,} of its problems"
    asked = "its question" if len(wanted) == 1 else f"{lost:,} of the questions"
    return known, f"the run was given its problems from Python, and {asked} cannot be found in its store"


def problem_of(result: Result, known: Mapping[str, Problem]) -> Problem:
    """The problem of a result; without question and options where it is not known again."""
    return known.get(result.id) or Problem(id=result.id, question="", kind=result.kind, answer=result.gold)


def _read(data: str, config: RunConfig) -> Iterator[Problem]:
    return iter_problems(data, kind=config.kind, fields=config.fields, limit=config.limit, offset=config.offset)


def _kept(origin: Origin, results: Iterable[Result]) -> Iterator[Problem]:
    for result in results:
        if (question := origin.questions.get(result.id)) is not None:
            options = origin.options.get(result.id)
            yield Problem(
                id=result.id,
                question=question,
                kind=result.kind,
                options=None if options is None else tuple(options),
            )


def _noted(path: Path) -> Origin:
    if not path.is_file():
        return Origin()
    store = RunStore(path, write_ahead=not is_network(path.parent))
    try:
        return noted_origin(store)
    finally:
        store.close()
