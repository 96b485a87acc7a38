"""A run done in shards and stages ends, byte for byte, as one that a single process did."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore import Problem
from magicore.config import RunConfig
from magicore.datasets.shards import Shard, dealt_back
from magicore.errors import InputError, MagicoreError, StoreError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.budget import Halt
from magicore.store.accounting import role_accounts
from magicore.store.prepared import PreparedRow, read_prepared, write_prepared
from magicore.store.run_store import RunStore, StoredCompletion
from magicore.types import Completion, Usage

FILES = ("results.jsonl", "chains.jsonl", "calibration.json")
N, SHARDS = 8, 3


def answer(request: Request, index: int) -> str:
    """A sum; where the first number is odd, all samples are wrong. Reviews, and refinements that mend it."""
    left, right = numbers(request)
    if request.key.role == "reviewer":
        return "Add again."
    off = 0 if request.key.role != "solver" else index + 1 if left % 2 else index == 3
    total = left + right + off
    return f"Step 1: {left} + {right} = {total}\nStep 2: The final answer is {total}."


def numbers(request: Request) -> tuple[int, int]:
    line = next(line for line in request.messages[-1]["content"].splitlines() if " plus " in line)
    words = line.removeprefix("Question: ").rstrip("?").split()
    return int(words[2]), int(words[4])


def problems(n: int = N) -> list[Problem]:
    return [
        Problem(id=f"p{i}", question=f"What is {i} plus {2 * i + 1}?", kind="number", answer=str(3 * i + 1))
        for i in range(n)
    ]


def refuse(request: Request, index: int) -> str:
    raise AssertionError("asked for something that was there")


def go(out: Path | None, script: Any = answer, batch: list[Problem] | None = None, **settings: Any) -> magicore.Run:
    settings = {"method": "magicore", "k": 4, "iterations": 2, **settings}
    model = ScriptedModel(script, logprobs=True)
    return magicore.solve_batch(
        batch or problems(), model=model, orm="likelihood", prm="arithmetic", out=out, **settings
    )


def shard(index: int) -> str:
    return f"{index}/{SHARDS}"


def prepare_all(tmp_path: Path, **settings: Any) -> list[Path]:
    folders = [tmp_path / f"shard-{index}" for index in range(1, SHARDS + 1)]
    for index, folder in enumerate(folders, 1):
        go(folder, shard=shard(index), stage="prepare", **settings)
    return folders


def assert_equal_files(one: Path, other: Path, names: tuple[str, ...] = FILES) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_items_dealt_to_shards_come_back_in_order() -> None:
    for total in range(12):
        for count in range(1, 6):
            shards = [Shard(index=index, count=count) for index in range(1, count + 1)]
            dealt = [list(one.of(range(total))) for one in shards]
            assert [one.size(total) for one in shards] == list(map(len, dealt))
            assert list(dealt_back(dealt)) == list(range(total))
    assert list(Shard.read("2/3").of("abcdefgh")) == ["b", "e", "h"]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", "1/3/5", ""])
def test_what_is_no_shard_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="shard"):
        RunConfig(shard=text)


def test_prepared_rows_read_back_equal(tmp_path: Path) -> None:
    rows = [PreparedRow(id="a", combined=(0.1 + 0.2, None)), PreparedRow(id="b", combined=(), failure="no")]
    write_prepared(tmp_path / "prepared.jsonl", rows)
    assert list(read_prepared(tmp_path / "prepared.jsonl")) == rows


@pytest.mark.parametrize("calibration", ["batch", "first", "running"])
def test_prepared_in_shards_and_finished_in_one(calibration: str, tmp_path: Path) -> None:
    alone = go(tmp_path / "alone", calibration=calibration)
    assert {result.verdict.easy for result in alone.results if result.verdict} == {True, False}
    folders = prepare_all(tmp_path, calibration=calibration)
    merged = magicore.merge_runs(reversed(folders), tmp_path / "merged", calibrate=True)
    assert merged.problems == N and merged.stats == alone.stats
    finished = go(tmp_path / "merged", calibration=calibration, stage="finish")
    assert_equal_files(tmp_path / "alone", tmp_path / "merged")
    assert finished.results == alone.results
    assert go(tmp_path / "merged", refuse, calibration=calibration).summary == finished.summary
    accounts = [_accounts(tmp_path / name) for name in ("alone", "merged")]
    assert accounts[0] == accounts[1]


def _accounts(folder: Path) -> Any:
    store = RunStore(folder / "store.sqlite")
    try:
        return role_accounts(store.completion_rows(), store.failed_calls())
    finally:
        store.close()


def test_each_shard_finished_with_the_merged_calibration_and_then_merged(tmp_path: Path) -> None:
    alone = go(tmp_path / "alone")
    folders = prepare_all(tmp_path)
    magicore.merge_runs(folders, tmp_path / "merged", calibrate=True)
    calibration = str(tmp_path / "merged" / "calibration.json")
    for index, folder in enumerate(folders, 1):
        go(folder, shard=shard(index), stage="finish", calibration=calibration)
        go(folder, refuse, shard=shard(index), stage="finish", calibration=calibration)  # done: read back
    merged = magicore.merge_runs(folders, tmp_path / "merged")
    assert_equal_files(tmp_path / "alone", tmp_path / "merged")
    assert merged.summary is not None
    assert {**merged.summary, "wall_s": 0} == {**alone.summary, "wall_s": 0}
    read_back = go(tmp_path / "merged", refuse)
    assert read_back.summary == merged.summary
    assert _accounts(tmp_path / "merged") == _accounts(tmp_path / "alone")
    ids = [json.loads(line)["id"] for line in (tmp_path / "merged" / "timings.jsonl").read_text().splitlines()]
    assert ids == [f"p{i}" for i in range(N)]


def test_a_method_with_one_stage_needs_no_calibration(tmp_path: Path) -> None:
    go_mars(tmp_path / "alone")
    folders = [tmp_path / f"shard-{index}" for index in range(1, SHARDS + 1)]
    for index, folder in enumerate(folders, 1):
        go_mars(folder, shard=shard(index))
    magicore.merge_runs(folders, tmp_path / "merged")
    assert_equal_files(tmp_path / "alone", tmp_path / "merged", ("results.jsonl", "chains.jsonl", "reviews.jsonl"))
    assert not (tmp_path / "merged" / "calibration.json").exists()


def go_mars(out: Path, **settings: Any) -> magicore.Run:
    return magicore.solve_batch(problems(), model=ScriptedModel(answer), method="mars", out=out, **settings)


def test_a_shard_that_is_interrupted_goes_on_and_ends_equal(tmp_path: Path) -> None:
    go(tmp_path / "alone")
    halt = Halt()
    asked: list[str] = []

    def halting(request: Request, index: int) -> str:
        asked.append(request.key.problem)
        if len(asked) == 6:  # in the middle of the second problem
            halt.set()
        return answer(request, index)

    folders = [tmp_path / f"shard-{index}" for index in range(1, SHARDS + 1)]
    options = {"shard": shard(1), "stage": "prepare", "concurrency": 1}
    assert go(folders[0], halting, halt=halt, **options).interrupted
    assert 6 <= len(asked) < 12
    with pytest.raises(StoreError, match="has not been prepared to its end"):
        _merge_with_the_others(tmp_path, folders)
    before = set(asked)

    def counting(request: Request, index: int) -> str:
        asked.append(request.key.problem)
        return answer(request, index)

    go(folders[0], counting, **options)
    assert len(asked) == 12 and before < set(asked)  # 3 problems of 4 chains, each asked for once
    magicore.merge_runs(folders, tmp_path / "merged", calibrate=True)
    go(tmp_path / "merged", stage="finish", concurrency=1)
    assert_equal_files(tmp_path / "alone", tmp_path / "merged")


def _merge_with_the_others(tmp_path: Path, folders: list[Path]) -> None:
    for index in range(2, SHARDS + 1):
        go(folders[index - 1], shard=shard(index), stage="prepare")
    magicore.merge_runs(folders, tmp_path / "early", calibrate=True)


def test_merging_again_adds_nothing_twice(tmp_path: Path) -> None:
    folders = prepare_all(tmp_path)
    for _ in range(2):
        magicore.merge_runs(folders, tmp_path / "merged", calibrate=True)
    store = RunStore(tmp_path / "merged" / "store.sqlite")
    assert len(list(store.completion_rows())) == N * 4 and store.failed_calls() == []
    store.close()


def test_a_sample_that_two_shards_drew_is_paid_for_twice_in_the_accounts(tmp_path: Path) -> None:
    def row(text: str, tokens: int) -> StoredCompletion:
        usage = Usage(prompt=5, completion=tokens, calls=1)
        return StoredCompletion("key", "m", "p", "solver", Completion(index=0, text=text, stop="stop", usage=usage))

    for name, found in (("a", row("first", 2)), ("b", row("second", 3))):
        store = RunStore(tmp_path / f"{name}.sqlite")
        store.put_completions([found])
        store.close()
    whole = RunStore(tmp_path / "whole.sqlite")
    assert [whole.absorb(tmp_path / f"{name}.sqlite") for name in ("a", "b", "b")] == [0, 1, 0]
    (account,) = role_accounts(whole.completion_rows(), whole.failed_calls())
    assert (account.usage.prompt, account.usage.completion, account.failed) == (10, 5, 1)
    kept = whole.get_completions(["key"])[0]
    assert kept is not None and kept.text == "first"
    whole.close()


def test_what_cannot_be_merged_is_a_sentence(tmp_path: Path) -> None:
    folders = prepare_all(tmp_path)
    out = tmp_path / "merged"

    def refused(sentence: str, directories: list[Path], *, calibrate: bool = True, to: Path = out) -> None:
        with pytest.raises(MagicoreError, match=sentence):
            magicore.merge_runs(directories, to, calibrate=calibrate)
        assert not out.exists()

    refused("nothing to merge", [])
    refused("shard 2/3 is missing", [folders[0], folders[2]])
    refused("both shard 1/3", [*folders, folders[0]])
    refused("holds no run", [tmp_path / "none", *folders[1:]])
    refused("is prepared: --calibrate", folders, calibrate=False)
    refused("is one of the shards", folders, to=folders[0])
    go(tmp_path / "alone")
    refused("is no shard", [tmp_path / "alone", *folders[1:]])
    go(tmp_path / "other", shard="1/3", stage="prepare", seed=1)
    refused(r"other settings \(seed differ\)", [tmp_path / "other", *folders[1:]])
    go(tmp_path / "quarter", shard="1/4", stage="prepare")
    refused("merge shards of one run", [tmp_path / "quarter", *folders[1:]])
    go(tmp_path / "fewer", batch=problems(6), shard="1/3", stage="prepare")
    refused("different problems", [tmp_path / "fewer", *folders[1:]])
    shutil.copytree(folders[0], tmp_path / "damaged")
    lines = (tmp_path / "damaged" / "prepared.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "damaged" / "prepared.jsonl").write_text("".join(lines[:-1]))
    refused("holds 2 of the 3 problems of shard 1/3", [tmp_path / "damaged", *folders[1:]])
    (tmp_path / "damaged" / "prepared.jsonl").write_text("".join([*lines[:-1], lines[-1].replace("p6", "p1")]))
    refused("'p1' is there twice", [tmp_path / "damaged", *folders[1:]])


def test_a_stage_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot know the statistics of all problems"):
        go(tmp_path / "a", refuse, shard="1/3")
    with pytest.raises(InputError, match="has one stage only"):
        magicore.solve_batch(problems(), model=ScriptedModel(refuse), method="cot", out=tmp_path / "b", stage="prepare")
    with pytest.raises(InputError, match="give --out"):
        go(None, refuse, stage="prepare")
    with pytest.raises(StoreError, match="holds no run"):
        go(tmp_path / "c", refuse, stage="finish")
    with pytest.raises(InputError, match="3 problems cannot be dealt to 4 shards"):
        go(tmp_path / "d", refuse, batch=problems(3), shard="1/4", stage="prepare")
    with pytest.raises(InputError, match="a stage is all, prepare, finish"):
        go(tmp_path / "e", refuse, stage="prepared")
    go(tmp_path / "f", stage="prepare")
    with pytest.raises(StoreError, match="the problems have changed"):
        go(tmp_path / "f", refuse, batch=problems(7), stage="finish")


SBATCH = """#!/bin/bash
# Runs a job at once, and the tasks of an array one after the other.
tasks=""
while [[ $1 == --* ]]; do [[ $1 == --array=* ]] && tasks=${1#--array=1-}; shift; done
for ((task = 1; task <= ${tasks:-1}; task++)); do SLURM_ARRAY_TASK_ID=$task bash "$@" >&2 || exit 1; done
echo 7
"""


def test_the_slurm_script_on_the_command_line(tmp_path: Path) -> None:
    data, tools = tmp_path / "data.jsonl", tmp_path / "bin"
    rows = [{"question": f"What is {i} plus {2 * i + 1}?", "answer": str(3 * i + 1)} for i in range(5)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tools.mkdir()
    for name, text in (("sbatch", SBATCH), ("magicore", f'#!/bin/bash\nexec {sys.executable} -m magicore "$@"\n')):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(arguments, capture_output=True, text=True, timeout=110, check=False, env=environment)

    options = ["--model", "scripted", "--orm", "likelihood", "--prm", "arithmetic", "--k", "3", "--data", str(data)]
    script = Path(__file__).parent.parent / "scripts" / "slurm_shards.sh"
    done = command("bash", str(script), "2", str(tmp_path / "run"), "--", *options)
    assert done.returncode == 0 and "when job 7 has ended" in done.stdout, done.stderr
    assert "2 problems of shard 2/2 prepared" in done.stderr and "S over 15 chains" in done.stderr
    refused = command("magicore", "merge", str(tmp_path / "run" / "shard-1"), "--out", str(tmp_path / "part"))
    assert refused.returncode == 1 and "shard 2/2 is missing" in refused.stderr
    assert command("magicore", "run", *options, "--out", str(tmp_path / "alone")).returncode == 0
    assert_equal_files(tmp_path / "alone", tmp_path / "run" / "merged")
