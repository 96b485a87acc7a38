"""A run's directory: its configuration, its store, and the files it ends with."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from difficulty import RewardStats, save_calibration
from magicore.config import RunConfig, config_toml
from magicore.errors import StoreError
from magicore.runtime.run import ResultSink
from magicore.store.chain_rows import result_chain_records
from magicore.store.files import write_summary
from magicore.store.json_lines import JsonLinesWriter, remains, write_whole
from magicore.store.locking import LOCK, is_network, locked
from magicore.store.result_rows import result_row
from magicore.store.review_rows import review_rows
from magicore.store.run_store import RunStore
from magicore.types import Result

CONFIG, STORE = "config.toml", "store.sqlite"
CHAINS, RESULTS, SUMMARY, TIMINGS = "chains.jsonl", "results.jsonl", "summary.json", "timings.jsonl"
CALIBRATION, REVIEWS, PREPARED = "calibration.json", "reviews.jsonl", "prepared.jsonl"
StateT = TypeVar("StateT")
log = logging.getLogger(__name__)

OUTPUTS = (CHAINS, RESULTS, SUMMARY, TIMINGS, CALIBRATION, REVIEWS, PREPARED)


@contextmanager
def open_directory(path: Path, config: RunConfig, *, force: bool = False) -> Iterator[RunStore]:
    """Create a run's directory, or go on with one of the same configuration; yields its store.

    ``force`` takes over the directory of another run: its configuration and files are replaced, what it paid for stays
    in the store and is used where it fits.

    Raises:
        StoreError: it cannot be made, holds other files, or belongs to a run with another configuration.
    """
    text = config_toml(config)
    saved = path / CONFIG
    try:
        path.mkdir(parents=True, exist_ok=True)
        if saved.exists() and not force:
            _check_same(saved.read_text(encoding="utf-8"), text, path)
        elif any(entry.name != LOCK for entry in path.iterdir()) and not saved.exists() and not force:
            raise StoreError(f"{path} holds files and no run; give another --out, or --force to write into it")
        network = is_network(path)
    except OSError as error:
        raise StoreError(f"run directory {path} cannot be used: {error.strerror}") from error
    with locked(path, network=network):
        for remnant in remains(path, (CONFIG, *OUTPUTS)):
            remnant.unlink(missing_ok=True)
        fresh = not saved.exists() or saved.read_text(encoding="utf-8") != text
        if fresh:
            for name in OUTPUTS:
                (path / name).unlink(missing_ok=True)
            write_whole(saved, [text.encode("utf-8")])
        if network:
            log.warning("%s lies on a network file system: the store uses a rollback journal and a lock file", path)
        shared = None if config.cache is None else open_cache(Path(config.cache))
        store = RunStore(path / STORE, cache=shared, write_ahead=not network)
        try:
            if fresh:
                forget_states(store)
            yield store
        finally:
            store.close()


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What a store notes of a first stage that went to its end; the S values are in prepared.jsonl.

    Attributes:
        problems: Fingerprint of the problems, of all shards.
        total: How many those are.
        n, failed: Problems of this shard, and those that could not be prepared.
        chains, cut: Chains drawn, and those that ended at the token limit.
        names: What the scores are of; see :func:`magicore.runtime.run.scorer_names`.
    """

    problems: str
    total: int
    n: int
    failed: int
    chains: int
    cut: int
    names: Mapping[str, str | None]


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """What a store notes of a run that wrote its files.

    Attributes:
        problems, total, n, failed, chains, cut: As in :class:`Preparation`.
        interrupted: Whether it was ended early.
        given: Mean, standard deviation and count of statistics that it was given to finish with.
    """

    problems: str
    total: int
    n: int
    failed: int
    chains: int
    cut: int
    interrupted: bool = False
    given: Sequence[float] | None = None

    @property
    def finished(self) -> bool:
        """Whether the same run again has nothing to do: one with failed problems tries them once more."""
        return not self.interrupted and not self.failed


_PREPARED, _ENDED = "prepared", "ended"


def note_prepared(store: RunStore, preparation: Preparation | None) -> None:
    """Note that the first stage went to its end, or with ``None`` that it has not."""
    store.put_state(_PREPARED, None if preparation is None else asdict(preparation))


def prepared_state(store: RunStore) -> Preparation | None:
    """What the store notes of the first stage; ``None`` if it has not gone to its end."""
    state = store.get_state(_PREPARED)
    return None if state is None else Preparation(**state)


def note_end(store: RunStore, end: RunEnd) -> None:
    """Note how the run ended."""
    store.put_state(_ENDED, asdict(end))


def ended_state(store: RunStore) -> RunEnd | None:
    """What the store notes of the run's end; ``None`` if it has not ended."""
    state = store.get_state(_ENDED)
    return None if state is None else RunEnd(**state)


def forget_states(store: RunStore) -> None:
    """Forget how far another run had come that this store served before."""
    for name in (_PREPARED, _ENDED):
        store.put_state(name, None)


def finished_state(path: Path, config: RunConfig) -> RunEnd | None:
    """What a directory's store notes of its run's end; ``None`` if it has not finished or is another run's."""
    end = _noted(path, config, (RESULTS, SUMMARY), ended_state)
    return end if end is not None and end.finished else None


def finished_preparation(path: Path, config: RunConfig) -> Preparation | None:
    """What a directory's store notes of its first stage; ``None`` if it has to be gone through (again)."""
    prepared = _noted(path, config, (PREPARED,), prepared_state)
    return prepared if prepared is not None and not prepared.failed else None


def _noted(
    path: Path, config: RunConfig, files: Sequence[str], read: Callable[[RunStore], StateT | None]
) -> StateT | None:
    """What the store of a run with this configuration notes, if the files it speaks of are there."""
    try:
        if not (path / STORE).is_file() or (path / CONFIG).read_text(encoding="utf-8") != config_toml(config):
            return None
    except OSError:
        return None
    if any(not (path / name).is_file() for name in files):
        return None
    store = RunStore(path / STORE, write_ahead=not is_network(path))
    try:
        return read(store)
    finally:
        store.close()


def saved_config(path: Path) -> dict[str, Any]:
    """The settings in a run's directory.

    Raises:
        StoreError: there is no run, or its configuration cannot be read.
    """
    try:
        return tomllib.loads((path / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} holds no run: there is no {CONFIG}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StoreError(f"{path / CONFIG} cannot be read ({error})") from error


@contextmanager
def memory_store(config: RunConfig) -> Iterator[RunStore]:
    """A store that lasts as long as the run, in front of the cache where there is one."""
    store = RunStore(cache=None if config.cache is None else open_cache(Path(config.cache)))
    try:
        yield store
    finally:
        store.close()


def open_cache(path: Path) -> RunStore:
    """A store that runs share.

    Raises:
        StoreError: it cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the cache {path} cannot be made: {error.strerror}") from error
    return RunStore(path, write_ahead=not is_network(path.parent))


def _check_same(found: str, wanted: str, path: Path) -> None:
    if found == wanted:
        return
    try:
        old, new = tomllib.loads(found), tomllib.loads(wanted)
    except tomllib.TOMLDecodeError as error:
        raise StoreError(f"{path / CONFIG} is damaged ({error}); --force replaces it") from error
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    differing = ", ".join(names)
    raise StoreError(
        f"{path} holds a run with other settings ({differing} differ); give another --out, or --force to take it over"
    )


class DirectoryWriter(ResultSink):
    """Writes a run's files as results come, and puts each in its place when the run is over.

    A run that dies leaves the files of before as they were; the same command again makes them from the store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = {name: JsonLinesWriter(path / name) for name in (CHAINS, RESULTS, TIMINGS)}

    def add(self, result: Result, timings: Mapping[str, Any]) -> None:
        """Write one problem's chains, result, times and, where the method has any, reviews."""
        for record in result_chain_records(result):
            self._files[CHAINS].add(record.row)
        for row in review_rows(result):
            if REVIEWS not in self._files:
                self._files[REVIEWS] = JsonLinesWriter(self._path / REVIEWS)
            self._files[REVIEWS].add(row)
        self._files[RESULTS].add(result_row(result))
        self._files[TIMINGS].add({"id": result.id, **timings})

    def finish(self, stats: RewardStats | None, summary: Mapping[str, object]) -> None:
        """Put everything in its place.

        Raises:
            StoreError: a file cannot be written.
        """
        for file in self._files.values():
            file.finish()
        if stats is not None:
            save_calibration(stats, self._path / CALIBRATION)
        write_summary(self._path / SUMMARY, summary)

    def abandon(self) -> None:
        """Remove what was begun."""
        for file in self._files.values():
            file.abandon()


@contextmanager
def directory_writer(path: Path) -> Iterator[DirectoryWriter]:
    """A writer that leaves no trace of a run that does not finish."""
    writer = DirectoryWriter(path)
    try:
        yield writer
    finally:
        writer.abandon()
