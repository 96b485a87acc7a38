"""The run store: what is stored stays, whatever happens around it."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.errors import InputError, StoreError
from magicore.store.export import export_run
from magicore.store.locking import LOCK, is_network, locked
from magicore.store.run_store import RunStore, StoredCompletion, completion_from_json, completion_to_json
from magicore.types import Completion, Usage

USAGE = Usage(prompt=3, completion=4, reasoning=1, calls=1, unmetered=0)


def row(key: str, text: str = "t") -> StoredCompletion:
    return StoredCompletion(key, "model", "p", "solver", Completion(index=0, text=text, stop="stop", usage=USAGE))


@given(
    text=st.text(st.characters()),
    thinking=st.none() | st.text(),
    logprobs=st.none() | st.lists(st.floats(-50, 0), max_size=3),
    tokens=st.none() | st.integers(0, 9),
)
def test_a_completion_reads_back_equal(
    text: str, thinking: str | None, logprobs: list[float] | None, tokens: int | None
) -> None:
    completion = Completion(
        index=2,
        text=text,
        thinking=thinking,
        stop="length",
        tokens=tokens,
        token_logprobs=None if logprobs is None else tuple(logprobs),
        top_logprobs=None if logprobs is None else tuple((("a", x), ("b", x)) for x in logprobs),
        usage=USAGE,
    )
    assert completion_from_json(completion_to_json(completion)) == completion


def test_what_is_stored_is_never_changed(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "s.sqlite")
    store.put_completions([row("a", "first")])
    store.put_completions([row("a", "second"), row("b")])
    store.put_many({"x": "1"})
    store.put_many({"x": "2"})
    store.close()
    again = RunStore(tmp_path / "s.sqlite")
    assert [c.text if c else None for c in again.get_completions(["b", "none", "a"])] == ["t", None, "first"]
    assert again.get_many(["x", "y"]) == ["1", None]
    assert [found.key for found in again.completion_rows()] == ["a", "b"]
    again.close()


def test_a_cache_gives_and_takes(tmp_path: Path) -> None:
    one = RunStore(tmp_path / "one.sqlite", cache=RunStore(tmp_path / "cache.sqlite"))
    one.put_completions([row("a")])
    one.put_many({"x": "1"})
    one.close()
    two = RunStore(tmp_path / "two.sqlite", cache=RunStore(tmp_path / "cache.sqlite"))
    assert two.get_completions(["a"])[0] is not None and two.get_many(["x"]) == ["1"]
    two.close()
    alone = RunStore(tmp_path / "two.sqlite")
    assert alone.get_completions(["a"])[0] is not None and alone.get_many(["x"]) == ["1"]
    alone.close()


def test_a_damaged_file_and_a_newer_one_are_sentences(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"this is no database, however long it goes on " * 100)
    with pytest.raises(StoreError, match="move it away"):
        RunStore(damaged)
    newer = tmp_path / "newer.sqlite"
    RunStore(newer).close()
    with sqlite3.connect(newer) as db:
        db.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    db.close()
    with pytest.raises(StoreError, match="newer magicore"):
        RunStore(newer)


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = RunStore(path)
    store.put_completions([row("a")])
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="make room"):
        store.put_completions([row(f"k{i}", "long " * 2000) for i in range(50)])
    assert store.get_completions(["a"])[0] is not None
    store._db.execute("PRAGMA max_page_count = 100000")
    store.put_completions([row("b")])
    store.close()
    again = RunStore(path)
    assert [c is not None for c in again.get_completions(["a", "b", "k0"])] == [True, True, False]
    again.close()


@pytest.mark.parametrize("network", [False, True])
def test_two_holders_of_one_directory_are_refused(network: bool, tmp_path: Path) -> None:
    with locked(tmp_path, network=network):
        with (
            pytest.raises(StoreError, match=f"process {os.getpid()} on .* is working"),
            locked(tmp_path, network=network),
        ):
            pass
    with locked(tmp_path, network=network):
        pass


def _die_holding(directory: Path, network: bool) -> None:
    holder = locked(directory, network=network)
    holder.__enter__()
    os._exit(9)


@pytest.mark.parametrize("network", [False, True])
def test_the_lock_of_a_dead_process_is_taken_over(network: bool, tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_die_holding, args=(tmp_path, network))
    process.start()
    process.join()
    assert process.exitcode == 9 and (tmp_path / LOCK).exists()
    with locked(tmp_path, network=network):
        pass


def test_a_lock_file_of_another_machine_stands(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text('{"pid": 1, "host": "elsewhere"}')
    with pytest.raises(StoreError, match="process 1 on elsewhere"), locked(tmp_path, network=True):
        pass


def test_network_file_systems_are_known_by_their_mount(tmp_path: Path) -> None:
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path}/a\\040b nfs4 rw 0 0\n"
    assert is_network(tmp_path / "a b" / "run", mounts)
    assert not is_network(tmp_path / "other", mounts)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_is_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be made"), locked(tmp_path, network=False):
        pass


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_export_writes_what_was_paid_for(form: Literal["jsonl", "parquet"], tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store.sqlite")
    store.put_completions([row("a", "one"), row("b", "two \ud800")])
    store.put_many({"x": '{"entries": [[0.5, null, null]]}'})
    store.close()
    written = dict(export_run(tmp_path, tmp_path / "out", form))
    assert {path.name: count for path, count in written.items()} == {f"completions.{form}": 2, f"scores.{form}": 1}
    if form == "jsonl":
        rows = [json.loads(line) for line in (tmp_path / "out" / "completions.jsonl").read_text().splitlines()]
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        rows = pq.read_table(tmp_path / "out" / "completions.parquet").to_pylist()
    assert [found["text"] for found in rows] == ["one", "two \ud800" if form == "jsonl" else "two \\ud800"]
    assert rows[0]["completion_tokens"] == 4


def test_exporting_a_folder_without_a_run_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        export_run(tmp_path, tmp_path / "out", "jsonl")
