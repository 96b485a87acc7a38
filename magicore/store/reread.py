"""The problems of a run, read again from its data."""

from __future__ import annotations

from collections.abc import Set

from magicore.config import RunConfig
from magicore.datasets import iter_problems
from magicore.errors import MagicoreError
from magicore.types import Problem


def reread_problems(config: RunConfig, wanted: Set[str]) -> tuple[dict[str, Problem], str | None]:
    """The problems with the ids ``wanted``, as far as the run's data still has them, and why any are missing."""
    if config.data is None:
        return {}, "the run was given its problems from Python"
    try:
        found = iter_problems(
            config.data, kind=config.kind, fields=config.fields, limit=config.limit, offset=config.offset
        )
        known = {problem.id: problem for problem in found if problem.id in wanted}
    except MagicoreError as error:
        return {}, str(error)
    lost = len(wanted) - len(known)
    return known, f"the run's data no longer has {lost:,} of its problems" if lost else None
