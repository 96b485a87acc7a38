"""The recipe of the embedded set: its data, its estimates, its record, and (slowly) all of its stages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from magicore.datasets.families import drawn_by_id
from magicore.errors import InputError, MagicoreError
from magicore.prompts import load_prompts
from magicore.training.conversations import read_conversations
from magicore.training.recipe import ADAPTERS, QUICK, STAGES, Rates, Recipe, estimate, install, policy_data, run_recipe

ROOT = Path(__file__).resolve().parent.parent


def test_the_policys_data_solves_reviews_and_refines(tmp_path: Path) -> None:
    recipe = replace(QUICK, families=("stories", "clock"), problems=5, reviews=30)
    rows = list(policy_data(recipe, load_prompts("trained")))
    assert [row["role"] for row in rows].count("solver") == 10
    assert [row["role"] for row in rows].count("reviewer") == [row["role"] for row in rows].count("refiner") == 60
    solved = {row["problem"] for row in rows if row["role"] == "solver"}
    assert not solved & {row["problem"] for row in rows if row["role"] != "solver"}, "other seeds, other problems"
    for row in rows:
        drawn = drawn_by_id(row["problem"])
        assert drawn is not None
        assert drawn.question in row["messages"][-2]["content"]
        if row["role"] != "reviewer":
            assert row["messages"][-1]["content"] == "\n".join(drawn.steps)
    reviews = [row["messages"][-1]["content"] for row in rows if row["role"] == "reviewer"]
    assert 0.15 < reviews.count("All steps are right.") / len(reviews) < 0.6
    refined = [row["messages"][-2]["content"] for row in rows if row["role"] == "refiner"]
    assert all(review in shown for review, shown in zip(reviews, refined, strict=True))
    (tmp_path / "policy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = list(read_conversations(str(tmp_path / "policy.jsonl"), load_prompts("trained")))
    assert len(read) == len(rows)


def test_the_data_follow_the_seeds() -> None:
    prompts = load_prompts("trained")
    assert list(policy_data(QUICK, prompts)) == list(policy_data(QUICK, prompts))
    assert list(policy_data(QUICK, prompts)) != list(policy_data(replace(QUICK, policy_seed=9), prompts))


def test_minutes_are_estimated_from_counts_and_rates() -> None:
    recipe = Recipe()
    minutes = estimate(recipe)
    assert tuple(minutes) == STAGES
    assert sum(minutes.values()) < 180, "the recipe is to take under three hours"
    double = estimate(recipe, Rates(training=2 * Rates().training, sampling=Rates().sampling))
    assert double["policy"] == pytest.approx(minutes["policy"] / 2)
    assert double["labels"] == minutes["labels"]


def test_a_folder_of_another_recipe_is_refused_and_stages_are_not_run_twice(tmp_path: Path) -> None:
    said: list[str] = []
    first = run_recipe(QUICK, tmp_path, until="policy-data", say=said.append)
    again = run_recipe(QUICK, tmp_path, until="policy-data", say=said.append)
    assert first == again
    assert said[-1].startswith("policy-data: done before")
    with pytest.raises(InputError, match="problems differ"):
        run_recipe(replace(QUICK, problems=65), tmp_path, until="policy-data")


def test_only_finished_adapters_of_bounded_size_are_installed(tmp_path: Path) -> None:
    folders = {name: tmp_path / "package" / name for name in ADAPTERS}
    with pytest.raises(MagicoreError, match="run the recipe to its end"):
        install(tmp_path, folders)
    for name in ADAPTERS:
        (tmp_path / name).mkdir()
        for file in ("adapter_config.json", "adapter_model.safetensors", "training.json", "curve.jsonl"):
            (tmp_path / name / file).write_bytes(b"x" * 100)
    (tmp_path / "recipe.json").write_text("{}")
    assert install(tmp_path, folders) == dict.fromkeys(ADAPTERS, 300)
    assert not (folders["prm"] / "curve.jsonl").exists()
    assert (tmp_path / "package" / "recipe.json").exists()
    with (tmp_path / "orm" / "adapter_model.safetensors").open("wb") as file:
        file.truncate(25_000_001)
    with pytest.raises(MagicoreError, match="more than 25,000,000"):
        install(tmp_path, folders)


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_every_stage_runs_and_what_it_makes_loads(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "train_embedded.py"), str(tmp_path / "work"), "--quick"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "work" / "recipe.json").read_text())
    assert tuple(record["stages"]) == STAGES
    assert record["stages"]["labels"]["labelled"] > 0
    sizes = install(tmp_path / "work", {name: tmp_path / "package" / name for name in ADAPTERS})
    assert all(size > 10_000 for size in sizes.values())
