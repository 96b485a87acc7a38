"""``magicore show``: one problem's story out of a run's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import magicore
from family import HARD, HARD_O, HARD_S, Script, TableORM, TablePRM, chain_text, verdict
from magicore.cli.app import app
from magicore.errors import InputError, UnknownNameError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.report.story import plain, story
from magicore.store.story import read_story

REFINED = [chain_text(f"r{i}", "The final answer is 72.") for i in range(5)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run: a hard question whose second and fourth chains are judged wrong and refined."""

    def meta(request: Request) -> str:
        wrong = (request.key.parent or "").endswith(("/1", "/3"))
        return verdict("wrong" if wrong else "right", suggestions="count \x1b[31mthe rows\x1b[0m again")

    def refiner(request: Request) -> str:
        return REFINED[request.indices[0]]

    script = Script({"solver": HARD, "reviewer": verdict("right"), "meta-reviewer": meta, "refiner": refiner})
    data = tmp_path / "q.jsonl"
    data.write_text(json.dumps({"id": "q1", "question": "How many [bold]jars[/bold]?", "answer": "72"}) + "\n")
    out = tmp_path / "run"
    magicore.solve_batch(
        data=str(data),
        model=ScriptedModel(script),
        orm=TableORM({**HARD_O, **dict.fromkeys(REFINED, 0.9)}),
        prm=TablePRM({**HARD_S, **{text: [0.9, 0.6] for text in REFINED}}),
        method="magicore",
        router="hard",
        review="mars",
        k=5,
        iterations=1,
        out=out,
        progress=False,
    )
    return out


def test_the_whole_story(run: Path) -> None:
    result = CliRunner().invoke(app, ["show", str(run), "--id", "q1"])
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for part in (
        "How many [bold]jars[/bold]?",
        "gold 72",
        "q1/solver/0/0/1 answer 7 o 0.28 s 0.3 S 0.58",
        "0.60 Step 1: h1",
        "verdict hard by the hard router",
        "condition 2 fails: confidence o 0.4234, s 0.4164, 0.5 of both is needed",
        "reviewer 0 on q1/solver/0/0/1 decision right confidence 4 recommends 72",
        "meta-review on q1/solver/0/0/1 decision wrong",
        "q1/refiner/0/1/1 from q1/solver/0/0/1 answer 72 o 0.9 s 0.54 S 1.44 kept after round 1 chosen",
        "72 2 2.8800",
        "answer 72 right chain q1/refiner/0/1/1",
        "meta-reviewer scripted 5",
    ):
        assert part in text, part
    assert "\x1b" not in result.stdout


def test_step_scores_are_coloured(run: Path) -> None:
    console = Console(force_terminal=True, no_color=False, color_system="standard", width=120, record=True)
    with console.capture() as capture:
        for part in story(read_story(run, "q1")):
            console.print(part)
    shown = capture.get()
    assert "\x1b[32m0.90\x1b[0m" in shown  # green
    assert "\x1b[33m0.60\x1b[0m" in shown  # yellow
    assert "\x1b[31m0.40\x1b[0m" in shown  # red


def test_reviews_are_read_back_as_they_were(run: Path) -> None:
    told = read_story(run, "q1")
    assert [(r.role, r.instance, r.decision) for r in told.reviews[:3]] == [
        ("reviewer", 0, "right"),
        ("reviewer", 1, "right"),
        ("meta-reviewer", 0, "right"),
    ]
    assert told.reviews[5].suggestions == "count \x1b[31mthe rows\x1b[0m again"
    assert len(told.reviews) == 15 and told.question == "How many [bold]jars[/bold]?"


def test_what_cannot_be_shown_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'q1'"):
        read_story(run, "q11")
    with pytest.raises(InputError, match="finished run"):
        read_story(tmp_path, "q1")
    (tmp_path / "q.jsonl").unlink()
    assert read_story(run, "q1").question is None
    shown = CliRunner().invoke(app, ["show", str(run), "--id", "q1"]).stdout
    assert "no question to show" in shown


@pytest.mark.parametrize("given", ["values", "file"])
def test_the_question_of_a_run_whose_configuration_names_no_data(tmp_path: Path, given: str) -> None:
    rows = [{"id": "a", "question": "What is 1 + 1?"}, {"id": "b", "question": "What is 2 + 2?"}]
    file = tmp_path / "q.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = ScriptedModel(Script({"solver": chain_text("s", "The final answer is 4.")}))
    out = tmp_path / "run"
    magicore.solve_batch(rows if given == "values" else file, model=model, method="cot", out=out, progress=False)
    assert "data" not in (out / "config.toml").read_text()
    result = CliRunner().invoke(app, ["show", str(out), "--id", "b"])
    assert result.exit_code == 0 and "What is 2 + 2?" in result.stdout
    (out / "store.sqlite").unlink()
    assert "its question cannot be found in its store" in " ".join(
        CliRunner().invoke(app, ["show", str(out), "--id", "b"]).stdout.split()
    )


def test_control_characters_are_not_obeyed() -> None:
    assert plain("a\x1b[2J\x07b\n\tc") == "a\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}b\n\tc"
