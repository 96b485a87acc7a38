"""A run's directory: its configuration, its store, and the files it ends with."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from difficulty import save_calibration
from magicore.config import RunConfig, config_toml
from magicore.errors import StoreError
from magicore.runtime.run import RunOutcome
from magicore.store.files import write_chains, write_results, write_summary, write_timings
from magicore.store.run_store import RunStore

CONFIG, STORE = "config.toml", "store.sqlite"
CHAINS, RESULTS, SUMMARY, TIMINGS = "chains.jsonl", "results.jsonl", "summary.json", "timings.jsonl"
CALIBRATION = "calibration.json"
OUTPUTS = (CHAINS, RESULTS, SUMMARY, TIMINGS, CALIBRATION)


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
        elif any(path.iterdir()) and not saved.exists() and not force:
            raise StoreError(f"{path} holds files and no run; give another --out, or --force to write into it")
        if not saved.exists() or saved.read_text(encoding="utf-8") != text:
            for name in OUTPUTS:
                (path / name).unlink(missing_ok=True)
            saved.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"run directory {path} cannot be used: {error.strerror}") from error
    store = RunStore(path / STORE)
    try:
        yield store
    finally:
        store.close()


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


def write_outcome(path: Path, outcome: RunOutcome, summary: Mapping[str, object]) -> None:
    """Write the files that a finished run ends with, each whole or not at all."""
    write_chains(path / CHAINS, outcome.results)
    write_results(path / RESULTS, outcome.results)
    write_timings(path / TIMINGS, [{"id": timing.id, "seconds": timing.seconds} for timing in outcome.timings])
    if outcome.stats is not None:
        save_calibration(outcome.stats, path / CALIBRATION)
    write_summary(path / SUMMARY, summary)
