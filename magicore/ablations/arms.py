"""New runs beside a finished one: what a study needs and the store does not hold.

An arm is the finished run with some settings changed. It is a run like any other, in ``DIR/arms/NAME-HASH``: resumable,
readable by every command, and shared by the studies that ask for the same settings. Its store stands in front of the
finished run's, so that what one has paid for the other does not pay again. An arm that is done is read from its files,
and no model is opened.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from magicore.ablations.finished import FinishedRun, read_run
from magicore.ablations.options import Budgeted, Options
from magicore.api import make_config, solve_batch
from magicore.config import RunConfig, config_toml
from magicore.errors import InputError, MagicoreError
from magicore.evaluate.axes import Spent, spent_on
from magicore.methods import AnyMethod, make_method, method_options
from magicore.runtime.directory import CHAINS, CONFIG, RESULTS, STORE, ended_state
from magicore.store.json_lines import write_whole
from magicore.store.locking import is_network
from magicore.store.run_store import RunStore
from magicore.types import Problem

FOLDER = "arms"
_NAMELESS = ("cache", "budget", "concurrency", "device", "placement", "prices")
"""Settings that do not make another arm."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One variant.

    Attributes:
        name: As tables show it.
        settings: What differs from the finished run: settings of :class:`RunConfig` and options of the method. With
            ``method`` among them the finished run's options are not carried over.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArmRuns:
    """Arms with their runs, in the order given.

    Attributes:
        runs: Those that are done.
        missing: Names of those that are not, because consent was not given.
        asked: What the missing ones, or those that were just made, were told to take; ``None`` where all were there.
    """

    runs: Mapping[str, FinishedRun]
    missing: tuple[str, ...] = ()
    asked: Budgeted | None = None

    @property
    def remarks(self) -> list[str]:
        """What is missing, and how to have it."""
        if not self.missing or self.asked is None:
            return []
        return [f"not run: {', '.join(self.missing)}; --yes makes {self.asked}"]


def arm_runs(base: FinishedRun, arms: Sequence[Arm], options: Options) -> ArmRuns:
    """Every arm's run: the finished run itself where the settings are its own, what is on file, or a new run.

    Raises:
        InputError: a new run is wanted and the questions cannot be read again, or a setting does not fit.
        MagicoreError: as :func:`magicore.solve_batch`.
    """
    planned = {arm.name: _planned(base, arm, options) for arm in arms}
    done = {name: found for name, config in planned.items() if (found := _on_file(base, config, options)) is not None}
    wanted = [name for name in planned if name not in done]
    if not wanted:
        return ArmRuns(runs=done)
    asked = _budget(base, {name: planned[name] for name in wanted}, options)
    if not options.consent(asked):
        return ArmRuns(runs=done, missing=tuple(wanted), asked=asked)
    problems = _questions(base, options)
    for name in wanted:
        done[name] = _run(base, name, planned[name], problems)
    return ArmRuns(runs={name: done[name] for name in planned}, asked=asked)


def done_run(path: Path, base: FinishedRun, ids: Sequence[str]) -> FinishedRun | None:
    """The run in ``path`` if it went to its end over the problems ``ids``; failed problems are results too."""
    if any(not (path / name).is_file() for name in (CONFIG, STORE, RESULTS, CHAINS)):
        return None
    store = RunStore(path / STORE, write_ahead=not is_network(path))
    try:
        end = ended_state(store)
    finally:
        store.close()
    if end is None or end.interrupted:
        return None
    found = read_run(path, base.problems)
    return found if [result.id for result in found.results] == list(ids) else None


def run_spent(run: FinishedRun, base: FinishedRun) -> Spent:
    """What a run cost. To the time of one that took chains from the finished run's store, that run's own is added by
    the share of the tokens that were taken over."""
    if run.path == base.path:
        return spent_on(run.results, wall_s=run.wall_s, prices=run.config.prices)
    wall, basis = run.wall_s, "measured"
    taken = _taken_over(run, base)
    if taken and wall is not None:
        wall, basis = (None if base.wall_s is None else wall + base.wall_s * taken), "measured + by tokens"
    spent = spent_on(run.results, wall_s=wall, prices=run.config.prices)
    return replace(spent, wall_basis="" if wall is None else basis)


def _taken_over(run: FinishedRun, base: FinishedRun) -> float:
    """The share of the finished run's chain tokens that stand in the other run too."""
    every = {record.scored.chain.id: record.scored.chain for found in base.chains.values() for record in found}
    whole = sum(chain.tokens or 0 for chain in every.values())
    same = 0
    for record in (record for found in run.chains.values() for record in found):
        chain = every.get(record.scored.chain.id)
        if chain is not None and chain.text == record.scored.chain.text:
            same += chain.tokens or 0
    return same / whole if whole else 0.0


def arm_config(base: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """The configuration of an arm, before it is given a place.

    Options of the finished run's method that the arm's has not are left out; those of the command line's that a method
    has not likewise.
    """
    known = {one.name for one in fields(RunConfig)}
    method = str(settings.get("method", base.method))
    own = method_options(method)
    kept = {} if "method" in settings and method != base.method else dict(base.options)
    given = {name: value for name, value in settings.items() if name not in known}
    chosen = {name: value for name, value in {**kept, **given}.items() if name in own}
    plain = {name: value for name, value in settings.items() if name in known and name != "options"}
    emptied = replace(base, options={}, method=method)
    return make_config(emptied, {**plain, "options": _said(method, chosen)})


def _said(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that differ from the method's defaults, so that equal arms are one."""
    made, usual = make_method(method, **options), make_method(method)
    return {name: value for name, value in options.items() if getattr(made, name) != getattr(usual, name)}


def arm_path(base: FinishedRun, config: RunConfig) -> Path:
    """Where an arm of these settings is: a name that can be read, and a hash of all that makes it another."""
    same = replace(config, **{name: getattr(RunConfig(), name) for name in _NAMELESS})
    digest = hashlib.sha256(config_toml(same).encode()).hexdigest()[:8]
    said = "-".join([config.method, *(f"{name}={value}" for name, value in config.options.items())])
    return base.path / FOLDER / f"{re.sub(r'[^A-Za-z0-9=+.-]+', '_', said)[:80]}-{digest}"


def _planned(base: FinishedRun, arm: Arm, options: Options) -> RunConfig:
    limit = base.config.limit if options.limit is None else min(options.limit, len(base.results))
    config = arm_config(base.config, {**options.settings, **arm.settings})
    make_method(config.method, **config.options)
    return replace(config, limit=limit, cache=str(base.path / STORE))


def _on_file(base: FinishedRun, config: RunConfig, options: Options) -> FinishedRun | None:
    """The arm's run, if it went to its end; failed problems are results too."""
    narrowed = base.narrowed(options.limit)
    if _same(config, base.config) and narrowed is base:
        return base
    return done_run(arm_path(base, config), base, [result.id for result in narrowed.results])


def _same(config: RunConfig, base: RunConfig) -> bool:
    """Whether two configurations make the same results: a method option at its default is as one not given."""

    def plain(one: RunConfig) -> tuple[str, AnyMethod]:
        neutral = {name: getattr(RunConfig(), name) for name in (*_NAMELESS, "options", "limit")}
        return config_toml(replace(one, **neutral)), make_method(one.method, **one.options)

    return plain(config) == plain(base)


def _run(base: FinishedRun, name: str, config: RunConfig, problems: Sequence[Problem]) -> FinishedRun:
    path = arm_path(base, config)
    given = None
    if base.config.data is None:
        given, config = list(problems), replace(config, offset=0)  # which lies before the first of these already
    if (path / CONFIG).is_file():  # begun where the directory was then, or with other settings of no consequence
        write_whole(path / CONFIG, [config_toml(config).encode()])
    if solve_batch(given, config, out=path).interrupted:
        raise MagicoreError(f"interrupted while running {name}; the same command goes on from here")
    return read_run(path, base.problems)


def _questions(base: FinishedRun, options: Options) -> tuple[Problem, ...]:
    """The problems of new runs.

    Raises:
        InputError: their questions are not known.
    """
    problems = base.narrowed(options.limit).problems
    if base.unread is not None or any(not problem.question for problem in problems):
        raise InputError(f"new runs need the questions of {base.path}, which cannot be read again: {base.unread}")
    return problems


def _budget(base: FinishedRun, planned: Mapping[str, RunConfig], options: Options) -> Budgeted:
    n = len(base.narrowed(options.limit).results)
    bounds = [make_method(config.method, **config.options).completions for config in planned.values()]
    most = n * sum(high for _, high in bounds)
    cost = spent_on(base.results)
    completions = max(1, sum(len(found) for found in base.chains.values()))
    tokens = None if not cost.generation_tokens else round(most * cost.generation_tokens / completions)
    return Budgeted(
        runs=tuple(planned),
        problems=n,
        least=n * sum(low for low, _ in bounds),
        most=most,
        tokens=tokens,
        model=base.config.model,
    )
