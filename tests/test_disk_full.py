"""A disk that fills up: one sentence, nothing answered is lost, and the same command goes on when there is room."""

from __future__ import annotations

import errno
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magicore.errors import StoreError
from magicore.report.run_log import RunLog
from magicore.runtime.directory import OUTPUTS, directory_writer
from magicore.store.json_lines import JsonLinesWriter, write_whole
from magicore.store.locking import locked
from magicore.store.run_store import RunStore


def run(data: Path, out: Path, *, largest: int | None = None) -> subprocess.CompletedProcess[str]:
    """``magicore run``; with ``largest`` no file can grow beyond so many bytes, as on a disk that is full."""

    def limit() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    command = [sys.executable, "-m", "magicore", "run", "--model", "scripted", "--orm", "likelihood"]
    command += ["--prm", "arithmetic", "--k", "3", "--data", str(data), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, preexec_fn=limit)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a failed command."""
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    (sentence,) = done.stderr.splitlines()
    return sentence


def stored(out: Path) -> list[str]:
    store = RunStore(out / "store.sqlite")
    try:
        return [row.key for row in store.completion_rows()]
    finally:
        store.close()


def test_a_run_on_a_disk_that_fills_up(tmp_path: Path) -> None:
    data, out = tmp_path / "data.jsonl", tmp_path / "run"
    rows = [{"question": f"What is {i} plus {3 * i + 1}?", "answer": str(4 * i + 1)} for i in range(80)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(data, tmp_path / "alone").returncode == 0
    whole = (tmp_path / "alone" / "results.jsonl").read_bytes()

    sentence = refusal(run(data, out, largest=200_000))
    assert "store.sqlite cannot be written" in sentence and "make room and run the same command again" in sentence
    kept = stored(out)
    assert 0 < len(kept) < 240 and not any((out / name).exists() for name in OUTPUTS)
    assert run(data, out).returncode == 0
    assert stored(out)[: len(kept)] == kept and len(stored(out)) == len(stored(tmp_path / "alone"))
    assert (out / "results.jsonl").read_bytes() == whole

    for name in OUTPUTS:
        (out / name).unlink(missing_ok=True)
    sentence = refusal(run(data, out, largest=100_000))  # the store has everything, chains.jsonl finds no room
    assert "chains.jsonl: cannot be written (File too large); make room" in sentence
    assert sorted(path.name for path in out.iterdir()) == [".lock", "config.toml", "store.sqlite"]
    assert run(data, out).returncode == 0 and (out / "results.jsonl").read_bytes() == whole


class FullFile:
    """A file on a full disk: every write fails, and so does closing it with something unwritten."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: Any) -> None:
            if name in self._names:
                raise OSError(errno.ENOSPC, "No space left on device")

        return fail


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JsonLinesWriter(tmp_path / "rows.jsonl")
    writer.add({"a": 1})
    writer._file.close()
    monkeypatch.setattr(writer, "_file", FullFile("flush", "close"))
    with pytest.raises(StoreError, match=r"rows\.jsonl: cannot be written \(No space left on device\); make room"):
        writer.finish()
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_fails_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_up() -> None:
        with directory_writer(tmp_path) as writer:
            for file in writer._files.values():
                file._file.close()
                monkeypatch.setattr(file, "_file", FullFile("write", "close"))
            writer._files["results.jsonl"].add({"id": "p"})

    with pytest.raises(StoreError, match=r"results\.jsonl: cannot be written"):
        fill_up()
    assert list(tmp_path.iterdir()) == []


def _full(*arguments: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("patched", "work", "sentence"),
    [
        ("os.fsync", lambda folder: write_whole(folder / "summary.json", [b"{}"]), r"summary\.json: cannot be written"),
        ("os.write", lambda folder: locked(folder, network=True).__enter__(), r"\.lock: cannot be written"),
    ],
)
def test_other_files_on_a_full_disk(
    patched: str,
    work: Callable[[Path], Any],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patched, _full)
    with pytest.raises(StoreError, match=sentence):
        work(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_held_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.pwrite", _full)
    with (
        locked(tmp_path, network=False),
        pytest.raises(StoreError, match="another process is working"),
        locked(tmp_path, network=False),
    ):
        pass


def test_a_log_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    log._file.close()
    monkeypatch.setattr(log, "_file", FullFile("write", "close"))
    with pytest.raises(StoreError, match=r"log\.jsonl: cannot be written"), log:
        log.started(1)
