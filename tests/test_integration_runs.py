"""Whole runs by the command line against real servers of the embedded model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers import Server

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

K = 3
QUESTIONS = [
    {"id": "sum", "question": "What is 12 + 30?", "answer": "42"},
    {"id": "apples", "question": "Tom has 3 apples, buys 4 and eats 2. How many has he left?", "answer": "5"},
]


def magicore(tmp_path: Path, server: Server, *options: str) -> subprocess.CompletedProcess[str]:
    """``magicore run --method magicore`` over the questions, into ``tmp_path/run``."""
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS), encoding="utf-8")
    command = [sys.executable, "-m", "magicore", "run", "--method", "magicore", "--model", server.name]
    command += ["--data", str(data), "--k", str(K), "--iterations", "1", "--max-tokens", "48", "--seed", "1"]
    command += ["--out", str(tmp_path / "run"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check_run(folder: Path) -> None:
    """What any finished run of the questions shows: its files, k chains a question, refined ones with parents."""
    for name in ("config.toml", "results.jsonl", "chains.jsonl", "summary.json", "timings.jsonl"):
        assert (folder / name).stat().st_size > 0
    results, chains = rows(folder / "results.jsonl"), rows(folder / "chains.jsonl")
    assert [result["id"] for result in results] == ["sum", "apples"]
    assert all(result["error"] is None and result["verdict"]["router"] == "magicore" for result in results)
    for question in QUESTIONS:
        sampled = [chain for chain in chains if chain["problem"] == question["id"] and chain["round"] == 0]
        assert len(sampled) == K
    known = {chain["id"] for chain in chains}
    assert all(chain["parent"] in known for chain in chains if chain["round"] > 0)


def test_vllm_with_likelihood(tmp_path: Path, vllm_server: Server) -> None:
    done = magicore(tmp_path, vllm_server, "--orm", "likelihood", "--prm", "arithmetic")
    assert done.returncode == 0, done.stderr
    check_run(tmp_path / "run")
    chains = rows(tmp_path / "run" / "chains.jsonl")
    assert all(chain["token_logprobs"] for chain in chains if chain["round"] == 0)
    assert all(0 < chain["orm"] <= 1 for chain in chains if chain["round"] == 0)


def test_transformers_serve_is_topped_up_to_k_and_judged(tmp_path: Path, transformers_server: Server) -> None:
    done = magicore(tmp_path, transformers_server, "--orm", "judge", "--prm", "arithmetic")
    assert done.returncode == 0, done.stderr
    check_run(tmp_path / "run")
    first = [chain for chain in rows(tmp_path / "run" / "chains.jsonl") if chain["round"] == 0]
    assert len({chain["id"] for chain in first}) == K * len(QUESTIONS)
    assert all(chain["token_logprobs"] is None for chain in first)


def test_likelihood_is_refused_where_no_log_probabilities_come(tmp_path: Path, transformers_server: Server) -> None:
    done = magicore(tmp_path, transformers_server, "--orm", "likelihood", "--prm", "arithmetic")
    assert done.returncode != 0
    # Before it stands the estimate, which every remote run prints.
    [said] = [line for line in done.stderr.splitlines() if not line.startswith("this run takes")]
    assert said.startswith("error: ")
    assert "gives no log-probabilities" in said
    assert not (tmp_path / "run" / "results.jsonl").exists()
