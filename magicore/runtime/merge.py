"""Shards of a run put together: their stores exactly, and either what statistics need or the files they ended with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from difficulty import RewardStats, load_calibration, save_calibration
from magicore.config import CALIBRATIONS, RunConfig, load_config
from magicore.datasets.shards import Shard, dealt_back
from magicore.errors import InputError, StoreError
from magicore.evaluate import summarise
from magicore.runtime.directory import (
    CALIBRATION,
    CHAINS,
    CONFIG,
    PREPARED,
    RESULTS,
    REVIEWS,
    STORE,
    SUMMARY,
    TIMINGS,
    Preparation,
    RunEnd,
    ended_state,
    note_end,
    note_prepared,
    open_directory,
    prepared_state,
    saved_config,
)
from magicore.runtime.run import calibrate as statistics
from magicore.runtime.stages import prepared_rows
from magicore.store.accounting import run_remarks
from magicore.store.files import read_results, read_summary, write_summary
from magicore.store.json_lines import read_bytes, unreadable, write_whole
from magicore.store.locking import is_network, locked
from magicore.store.origin import joined, note_origin, noted_origin
from magicore.store.prepared import PreparedRow, write_prepared
from magicore.store.run_store import RunStore
from magicore.types import Result

T = TypeVar("T")
StateT = TypeVar("StateT", Preparation, RunEnd)
_OF_THE_MACHINE = frozenset({"cache", "concurrency", "device"})
"""Settings that may differ from shard to shard, since no result depends on them; the whole run has the first's."""


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What became of the shards.

    Attributes:
        config: The settings of the whole run.
        problems: How many problems it has.
        failed: How many of them could not be prepared, or failed.
        doubles: Samples that more than one shard drew, for equal questions; the first shard's is kept.
        stats: The statistics over all shards; ``None`` where there are none.
        results: Every result in problem order; none where the shards were calibrated and are yet to be finished.
        summary: What summary.json holds; ``None`` likewise.
    """

    config: RunConfig
    problems: int
    failed: int
    doubles: int
    stats: RewardStats | None
    results: tuple[Result, ...] = ()
    summary: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One shard's directory."""

    path: Path
    shard: Shard
    settings: dict[str, Any]


def merge_runs(
    directories: Iterable[str | Path],
    out: str | Path,
    *,
    calibrate: bool = False,
    force: bool = False,
    ended_early: bool = False,
    wall_s: float | None = None,
) -> Merged:
    """Put the shards of a run together in ``out``, as if one process had done it.

    Args:
        directories: Every shard's directory, in any order.
        out: Where the run goes; the same shards may be merged into it again.
        calibrate: The shards are prepared: compute the statistics over the initial chains of all of them and write
            calibration.json, so that the run in ``out``, or each shard, can be finished. Otherwise the shards are
            finished: results.jsonl, chains.jsonl and the rest are put together in problem order.
        force: Take over a directory that holds a run with other settings.
        ended_early: Take shards as well that were ended early (Ctrl-C): the whole is then noted as ended early too, and
            the same run again goes on.
        wall_s: What the summary says of wall-clock seconds; ``None``: the slowest shard's, as they run side by side.

    Raises:
        InputError: a shard is missing or there twice, or two are of different runs or problems.
        StoreError: a directory holds no shard, is worked on, is not as far as it has to be, or cannot be written.
    """
    parts = _parts([Path(directory) for directory in directories])
    out = Path(out)
    if any(out.resolve() == part.path.resolve() for part in parts):
        raise InputError(f"{out} is one of the shards; give --out a directory of its own")
    config = replace(load_config(parts[0].path / CONFIG, {}), shard=None)
    with ExitStack() as held:
        for part in parts:
            held.enter_context(locked(part.path, network=is_network(part.path)))
        if calibrate:
            return _calibrated(parts, config, out, force=force)
        return _finished(parts, config, out, force=force, ended_early=ended_early, wall_s=wall_s)


def _parts(directories: Sequence[Path]) -> list[_Part]:
    """The shards in order, all there, each once, all of one run."""
    if not directories:
        raise InputError("there is nothing to merge: name the directories of the shards")
    found = [_part(path) for path in directories]
    first = found[0]
    by_shard: dict[int, _Part] = {}
    for part in found:
        if part.shard.count != first.shard.count:
            raise InputError(
                f"{first.path} is shard {first.shard} and {part.path} is shard {part.shard}: merge shards of one run"
            )
        if (other := by_shard.setdefault(part.shard.index, part)) is not part:
            raise InputError(f"{other.path} and {part.path} are both shard {part.shard}; leave one out")
        names = (first.settings.keys() | part.settings.keys()) - _OF_THE_MACHINE
        differing = sorted(name for name in names if first.settings.get(name) != part.settings.get(name))
        if differing:
            raise InputError(f"{first.path} and {part.path} have other settings ({', '.join(differing)} differ)")
    missing = [str(Shard(index=i, count=first.shard.count)) for i in _numbers(first.shard) if i not in by_shard]
    if missing:
        raise InputError(
            f"shard {', '.join(missing)} is missing: name the directories of all {first.shard.count} shards"
        )
    return [by_shard[index] for index in _numbers(first.shard)]


def _numbers(shard: Shard) -> range:
    return range(1, shard.count + 1)


def _part(path: Path) -> _Part:
    settings = saved_config(path)
    name = settings.pop("shard", None)
    if not isinstance(name, str):
        raise InputError(f"{path} is no shard: its run was not given --shard")
    return _Part(path=path, shard=Shard.read(name), settings=settings)


def _calibrated(parts: Sequence[_Part], config: RunConfig, out: Path, *, force: bool) -> Merged:
    if config.calibration not in CALIBRATIONS:
        raise InputError(
            f"these shards route by {config.calibration}, so there is nothing to calibrate: run them to their end and "
            "merge them without --calibrate"
        )
    states = [_prepared(part) for part in parts]
    _check_problems(parts, states)
    if any(state.names != states[0].names for state in states):
        raise InputError("the shards were scored by different reward models; prepare them anew with one set")
    shards = [prepared_rows(part.path) for part in parts]
    _check_sizes(parts, states, [len(rows) for rows in shards])
    rows: list[PreparedRow] = list(dealt_back(shards))
    _check_ids(parts, [[row.id for row in found] for found in shards])
    stats = statistics([row.combined for row in rows], config.calibration, states[0].names)[-1]
    with open_directory(out, config, force=force) as store:
        doubles = _absorb(store, config, parts)
        write_prepared(out / PREPARED, rows)
        if stats is not None and config.calibration != "running":  # which differ from problem to problem
            save_calibration(stats, out / CALIBRATION)
        whole = Preparation(
            problems=states[0].problems,
            total=len(rows),
            n=len(rows),
            failed=sum(state.failed for state in states),
            chains=sum(state.chains for state in states),
            cut=sum(state.cut for state in states),
            names=states[0].names,
        )
        note_prepared(store, whole)
    return Merged(config=config, problems=len(rows), failed=whole.failed, doubles=doubles, stats=stats)


def _finished(
    parts: Sequence[_Part], config: RunConfig, out: Path, *, force: bool, ended_early: bool, wall_s: float | None
) -> Merged:
    states = [_ended(part, ended_early=ended_early) for part in parts]
    _check_problems(parts, states)
    ids = [list(_fields(part.path / RESULTS, "id")) for part in parts]
    _check_sizes(parts, states, list(map(len, ids)))
    _check_ids(parts, ids)
    calibration = _calibration(parts)
    with open_directory(out, config, force=force) as store:
        doubles = _absorb(store, config, parts)
        for name, field in ((CHAINS, "problem"), (REVIEWS, "problem"), (RESULTS, "id"), (TIMINGS, "id")):
            if any((part.path / name).is_file() for part in parts):
                grouped = [_grouped(part.path / name, found, field) for part, found in zip(parts, ids, strict=True)]
                write_whole(out / name, dealt_back(grouped))
        if calibration is not None:
            write_whole(out / CALIBRATION, [calibration])
        results = tuple(record.result for record in read_results(out / RESULTS))
        summary = summarise(results, config=config, wall_s=_slowest(parts) if wall_s is None else wall_s)
        summary |= run_remarks(store)
        write_summary(out / SUMMARY, summary)
        end = RunEnd(
            problems=states[0].problems,
            total=len(results),
            n=len(results),
            failed=summary["failed"],
            chains=sum(state.chains for state in states),
            cut=sum(state.cut for state in states),
            interrupted=any(state.interrupted for state in states),
        )
        note_end(store, end)
    return Merged(
        config=config,
        problems=len(results),
        failed=end.failed,
        doubles=doubles,
        stats=None if calibration is None else load_calibration(out / CALIBRATION),
        results=results,
        summary=summary,
    )


def _prepared(part: _Part) -> Preparation:
    state = _state(part, prepared_state)
    if state is None or not (part.path / PREPARED).is_file():
        raise StoreError(f"{part.path} has not been prepared to its end: run it with --stage prepare (again)")
    return state


def _ended(part: _Part, *, ended_early: bool) -> RunEnd:
    state = _state(part, ended_state)
    if state is None or (state.interrupted and not ended_early) or not (part.path / RESULTS).is_file():
        prepared = " (it is prepared: --calibrate merges such shards)" if _state(part, prepared_state) else ""
        raise StoreError(f"{part.path} has not been run to its end{prepared}: run it again first")
    return state


def _state(part: _Part, read: Callable[[RunStore], T]) -> T:
    store = RunStore(part.path / STORE, write_ahead=not is_network(part.path))
    try:
        return read(store)
    finally:
        store.close()


def _check_problems(parts: Sequence[_Part], states: Sequence[StateT]) -> None:
    for part, state in zip(parts, states, strict=True):
        if state.problems != states[0].problems:
            raise InputError(f"{parts[0].path} and {part.path} are shards of different problems: did the file change?")


def _check_sizes(parts: Sequence[_Part], states: Sequence[StateT], sizes: Sequence[int]) -> None:
    for part, state, size in zip(parts, states, sizes, strict=True):
        if not size == state.n == part.shard.size(state.total):
            raise StoreError(
                f"{part.path} holds {size} of the {part.shard.size(state.total)} problems of shard {part.shard}: its "
                "files are not those of its run; run it again"
            )


def _check_ids(parts: Sequence[_Part], ids: Sequence[Sequence[str]]) -> None:
    found = Counter(name for names in ids for name in names)
    twice = next((name for name, count in found.items() if count > 1), None)
    if twice is not None:
        where = " and ".join(str(part.path) for part, names in zip(parts, ids, strict=True) if twice in names)
        raise InputError(f"the problem {twice!r} is there twice, in {where}: these are no shards of one run")


def _calibration(parts: Sequence[_Part]) -> bytes | None:
    """The shards' calibration file; ``None`` for a method without."""
    paths = [part.path / CALIBRATION for part in parts]
    found = [read_bytes(path) if path.is_file() else None for path in paths]
    for path, content in zip(paths, found, strict=True):
        if content != found[0]:
            raise InputError(f"{paths[0]} and {path} differ: finish all shards with the same --calibration")
    return found[0]


def _absorb(store: RunStore, config: RunConfig, parts: Sequence[_Part]) -> int:
    if config.data is None:
        note_origin(store, joined([_state(part, noted_origin) for part in parts]))
    return sum(store.absorb(part.path / STORE) for part in parts)


def _slowest(parts: Sequence[_Part]) -> float:
    return max(float(read_summary(part.path / SUMMARY)["wall_s"]) for part in parts)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise unreadable(path, error) from None


def _fields(path: Path, field: str) -> Iterator[str]:
    return (_field(line, field, path) for line in _lines(path))


def _field(line: bytes, field: str, path: Path) -> str:
    try:
        return str(json.loads(line)[field])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: a line is no object with `{field}`; run the shard again") from None


def _grouped(path: Path, ids: Sequence[str], field: str) -> Iterator[bytes]:
    """For each problem in turn its lines of a file, which stand together; a file that is not there has none."""
    lines = _lines(path) if path.is_file() else iter(())
    line = next(lines, None)
    for name in ids:
        group = []
        while line is not None and _field(line, field, path) == name:
            group.append(line)
            line = next(lines, None)
        yield b"".join(group)
    if line is not None:
        raise InputError(f"{path}: its lines are not in the order of {RESULTS}; run the shard again")
