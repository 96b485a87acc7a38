"""The demonstration: its problems, its models with and without trained adapters, and its table."""

from __future__ import annotations

import runpy
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import magicore.data
from magicore.cli import demonstration, main
from magicore.cli.demonstration import TRAINED, UNTRAINED, demo_settings, missing_adapters
from magicore.datasets import load_problems
from magicore.datasets.families import drawn_by_id

ROOT = Path(__file__).resolve().parent.parent
ROLES = ("model", "orm", "prm")
MODULE = """
from magicore.datasets.families import drawn_by_id

def answer(request, index):
    if request.key.role == "reviewer":
        return "All steps are right."
    assert request.sampling.max_tokens == {max_tokens}
    steps = drawn_by_id(request.key.problem).steps
    return "\\\\n".join(steps) if index else "Step 1: The final answer is 0."
"""


def test_the_problems_are_what_their_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(magicore.data, "__file__", str(tmp_path / "__init__.py"))
    runpy.run_path(str(ROOT / "scripts" / "make_demo.py"), run_name="__main__")
    assert (tmp_path / "demo.jsonl").read_bytes() == files("magicore.data").joinpath("demo.jsonl").read_bytes()


def test_the_problems_are_held_out_twelve_of_each_family() -> None:
    problems = load_problems("demo")
    families = [problem.id.split("-")[0] for problem in problems]
    assert families == ["stories", "units"] * 12
    assert [problem.kind for problem in problems[:3]] == ["number", "number", "number"]
    for problem in problems:
        drawn = drawn_by_id(problem.id)
        assert drawn is not None, "an id says which problem it is, so that the truth of every step is known"
        assert (problem.question, problem.answer) == (drawn.question, drawn.answer)
    others = {
        problem.question
        for family in set(families)
        for source in ("1000:1:train", "150:2:train", "200:3:train", "40:4:test", "100:9:test")
        for problem in load_problems(f"gen:{family}:{source}")
    }
    assert not others & {problem.question for problem in problems}


def test_the_problems_are_of_the_recipes_families_and_of_no_seed_of_its_own() -> None:
    pytest.importorskip("torch")
    from magicore.training.recipe import Recipe

    script = runpy.run_path(str(ROOT / "scripts" / "make_demo.py"))
    recipe = Recipe()
    assert set(script["FAMILIES"]) <= set(recipe.families)
    assert script["SEED"] not in (recipe.policy_seed, recipe.review_seed, recipe.chain_seed, recipe.check_seed, 9)


def test_the_trained_models_are_taken_where_they_are() -> None:
    settings = demo_settings({}, [])
    assert settings == {**TRAINED, "data": "demo", "prompts": "trained"}
    assert set(TRAINED.values()) == {"embedded"}


def test_what_is_missing_is_stood_in_for() -> None:
    assert demo_settings({}, ROLES) == {**UNTRAINED, "data": "demo", "prompts": "few-shot"}
    only = demo_settings({}, ["prm"])
    assert (only["model"], only["orm"], only["prm"], only["prompts"]) == (
        "embedded",
        "embedded",
        "arithmetic",
        "trained",
    )


def test_what_is_given_is_taken() -> None:
    settings = demo_settings({"model": "scripted", "prm": "random:1"}, [])
    assert (settings["model"], settings["orm"], settings["prm"]) == ("scripted", "embedded", "random:1")
    assert settings["prompts"] == "few-shot", "another model was not trained without worked examples"
    assert demo_settings({"model": "embedded"}, ["model"])["prompts"] == "few-shot"


def test_adapters_are_looked_for_where_the_recipe_puts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from magicore.training.recipe import package_folders

    folders = package_folders()
    there = [(folders[{"model": "policy"}.get(role, role)] / "adapter_config.json").is_file() for role in ROLES]
    assert missing_adapters() == [role for role, found in zip(ROLES, there, strict=True) if not found]

    folder = tmp_path / "embedded" / "policy"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    monkeypatch.setattr(demonstration, "adapter_folder", lambda kind: tmp_path / "embedded" / kind)
    assert missing_adapters() == ["orm", "prm"]


def demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, missing: list[str], max_tokens: int = 220
) -> None:
    (folder / "demo_answers.py").write_text(MODULE.format(max_tokens=max_tokens))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(demonstration, "missing_adapters", lambda: missing)
    monkeypatch.setattr(sys, "argv", ["magicore", "demo", "--model", "scripted:demo_answers:answer", *arguments])
    try:
        main()
    except SystemExit as done:
        assert not done.code
    finally:
        sys.modules.pop("demo_answers", None)


def test_the_table_compares_five_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo(tmp_path, monkeypatch, "--orm", "constant:0.5", "--prm", "constant:0.5", "--k", "4", missing=[])
    said = capsys.readouterr().out
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert {"cot", "self-consistency", "weighted-self-consistency", "best-of-k", "magicore"} <= rows.keys()
    assert " 0 of 24" in rows["cot"]  # the first chain of every problem is wrong, the other three are right
    assert "24 of 24" in rows["self-consistency"]
    assert "24 of 24" in rows["magicore"]
    assert "on demo, k = 4, 1 round(s)" in said
    assert "no trained adapter" not in said
    assert "135M" not in said


def test_missing_adapters_are_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--orm", "random:1", "--limit", "3", "--k", "2", "--max-tokens", "90")
    demo(tmp_path, monkeypatch, *arguments, missing=["model", "orm", "prm"], max_tokens=90)
    said = capsys.readouterr().out
    assert said.count("no trained adapter for prm (scripts/train_embedded.py makes them), so arithmetic will do") == 1


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_the_real_models_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    arguments: list[Any] = ["--limit", "3", "--k", "2", "--max-tokens", "60"]
    monkeypatch.setattr(sys, "argv", ["magicore", "demo", *arguments])
    try:
        main()
    except SystemExit as done:
        assert not done.code
    said = capsys.readouterr().out
    assert ("no trained adapter" in said) == bool(missing_adapters())
    assert "magicore: " in said
    assert "135M" in said
