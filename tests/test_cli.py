"""The command line: what it prints, and one clear sentence for every mistake."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from magicore.cli import main

DATA = """{"id": "a", "question": "What is 1 + 1?", "answer": "2"}
{"id": "b", "question": "What is 2 + 2?", "answer": "4"}
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scripted model that adds."""
    (tmp_path / "adder_model.py").write_text(
        "def answer(request, index):\n"
        "    question = next(m['content'] for m in reversed(request.messages) if ' + ' in m['content'])\n"
        "    n = int(question.split(' + ')[1].split('?')[0][0])\n"
        "    return f'Step 1: {n} + {n} = {2 * n}\\nStep 2: The final answer is {2 * n}.'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("adder_model", None)
    return "scripted:adder_model:answer"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(DATA)
    return path


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["magicore", *map(str, arguments)])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def test_run_prints_a_table_and_writes_the_files(
    script: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ("run", "--method", "sc+prm", "--model", script, "--prm", "arithmetic", "--data", data, "--k", 3)
    assert call(monkeypatch, *arguments, "--out", out) == 0
    assert "100.0 %" in capsys.readouterr().out
    assert {"config.toml", "results.jsonl", "chains.jsonl", "summary.json", "timings.jsonl"} <= {
        path.name for path in out.iterdir()
    }
    assert 'method = "sc+prm"' in (out / "config.toml").read_text()


def test_json_prints_the_summary_alone(
    script: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "--method", "cot", "--model", script, "--data", data, "--json") == 0
    assert json.loads(capsys.readouterr().out)["correct"] == 2


def test_the_directory_of_another_run_needs_force(
    script: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--method", "self-consistency", "--model", script, "--data", data, "--out", tmp_path / "out"]
    assert call(monkeypatch, *arguments, "--k", 2) == 0
    assert call(monkeypatch, *arguments, "--k", 2) == 0
    capsys.readouterr()
    assert call(monkeypatch, *arguments, "--k", 3) != 0
    assert "--force" in capsys.readouterr().err
    assert call(monkeypatch, *arguments, "--k", 3, "--force") == 0


def test_score_and_refine_from_a_file(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "solutions.jsonl"
    rows = [
        {"id": "a", "question": "What is 1 + 1?", "solution": "Step 1: 1 + 1 = 3\nStep 2: The final answer is 3."},
        {"id": "a", "question": "What is 1 + 1?", "solution": "Step 1: 1 + 1 = 2\nStep 2: The final answer is 2."},
    ]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert call(monkeypatch, "score", given, "--prm", "arithmetic", "--out", tmp_path / "scored") == 0
    chains = [json.loads(line) for line in (tmp_path / "scored" / "chains.jsonl").read_text().splitlines()]
    assert [chain["steps"][0]["score"] == 1.0 for chain in chains] == [False, True]
    assert chains[0]["steps"][1]["score"] is None and "no_equation" in chains[0]["steps"][1]["unscored"]
    out = tmp_path / "refined"
    arguments = ("refine", given, "--model", script, "--orm", "constant:0.5", "--prm", "arithmetic", "--out", out)
    assert call(monkeypatch, *arguments) == 0
    refined = [json.loads(line) for line in (out / "chains.jsonl").read_text().splitlines()]
    assert [chain["parent"] for chain in refined] == [None, None, *(chain["id"] for chain in refined[:2])]
    assert [chain["answer"] for chain in refined] == ["3", "2", "2", "2"]


def test_list_names_everything_without_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "list") == 0
    text = capsys.readouterr().out
    names = ("magicore", "embedded", "arithmetic", "oracle", "default", "yesno", "math-shepherd", "meta-reviewer")
    for name in (*names, "personas=conservative,aggressive"):
        assert name in text


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "empty"),
        ('{"question": "a?"}\nnot json\n', "line 2"),
        ('{"id": 1, "question": "a?"}\n{"question": "b?"}\n', "line 2"),
        ('{"id": 1, "question": "a?"}\n{"id": 1, "question": "b?"}\n', "used before"),
        ('{"question": "a?", "kind": "nmber"}\n', "nmber"),
        ('{"problem": "a?"}\n', "--field"),
    ],
)
def test_a_bad_problems_file_is_one_sentence(
    content: str,
    sentence: str,
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    out = tmp_path / "out"
    assert call(monkeypatch, "run", "--method", "cot", "--model", script, "--data", path, "--out", out) != 0
    error = capsys.readouterr().err
    assert sentence in error and error.startswith("error: ") and "Traceback" not in error and error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"--data": "none.jsonl"}, "none.jsonl"),
        ({"--k": "0"}, "k must be at least 1"),
        ({"--method": "magicor"}, "did you mean 'magicore'"),
        ({"--model": "opnai:x"}, "openai"),
        ({"--prm": "arithmetik"}, "arithmetic"),
        ({"--orm": "likelyhood"}, "likelihood"),
        ({"--router": "orcale"}, "oracle"),
        ({"--prompts": "defalt"}, "default"),
        ({"--option": "rounds"}, "NAME=VALUE"),
        ({"--calibration": "none.json"}, "none.json"),
        ({"--config": "none.toml"}, "none.toml"),
        ({"--prm": "math-shepherd:/nowhere/at/all"}, "/nowhere/at/all"),
        ({"--model": "hf:/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    changed: dict[str, str],
    sentence: str,
    script: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {
        "--model": script,
        "--orm": "constant:0.5",
        "--prm": "arithmetic",
        "--data": str(data),
        "--k": "2",
    } | changed
    assert call(monkeypatch, "run", *(part for pair in options.items() for part in pair)) != 0
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error


def test_an_endpoint_that_refuses_the_connection_is_one_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    out = tmp_path / "out"
    arguments = ("run", "--method", "cot", "--model", f"openai:some-model@{url}", "--data", data, "--out", out)
    assert call(monkeypatch, *arguments) != 0
    error = capsys.readouterr().err
    assert url.removesuffix("/v1") in error and "Traceback" not in error
    assert not (out / "results.jsonl").exists()


def test_a_missing_key_is_one_sentence(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert call(monkeypatch, "run", "--method", "cot", "--model", "openai:gpt-4o-mini", "--data", data) != 0
    assert "OPENAI_API_KEY" in capsys.readouterr().err


def test_a_run_goes_on_from_its_directory_alone(
    script: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["run", "--method", "self-consistency", "--model", script, "--data", data, "--k", 2, "-o", "k=3"]
    assert call(monkeypatch, *arguments, "--out", out) == 0
    results = (out / "results.jsonl").read_bytes()
    (out / "results.jsonl").unlink()
    (tmp_path / "adder_model.py").write_text("def answer(request, index):\n    raise AssertionError('asked again')\n")
    sys.modules.pop("adder_model")
    assert call(monkeypatch, "run", "--resume", out) == 0
    assert (out / "results.jsonl").read_bytes() == results
    for wrong, sentence in (
        (["--resume", out, "--out", out], "leave --config and --out out"),
        (["--resume", tmp_path / "none"], "holds no run"),
        (["--resume", out, "--k", 5], "options differ"),
    ):
        assert call(monkeypatch, "run", *wrong) == 1
        assert sentence in " ".join(capsys.readouterr().err.split())
