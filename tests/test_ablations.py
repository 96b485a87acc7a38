"""The studies over finished runs: right numbers, no model where none is needed, and honest gaps where one would be."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import magicore
from difficulty import Evidence, MagicoreRouter
from magicore.ablations.arms import FOLDER
from magicore.ablations.easy_hard import AGGREGATE, REFINE, ROUTE, easy_hard
from magicore.ablations.finished import read_run
from magicore.ablations.options import Budgeted, Options, agree
from magicore.ablations.registry import STUDIES, run_study
from magicore.ablations.statistics import Luck, Scored, arm_rows
from magicore.ablations.study import Study
from magicore.ablations.subsets import expected_accuracy
from magicore.ablations.thresholds import sweep_rows
from magicore.ablations.trajectories import RoundArrays, initial_arrays, trajectories
from magicore.cli import main
from magicore.errors import InputError, UnknownNameError
from magicore.evaluate.axes import AxisPoint, Spent, frontier_rows
from magicore.store.files import read_summary, write_problems
from magicore.testing.synthetic import SyntheticTruth, synthetic_problems
from magicore.vote_table import VoteTable
from magicore.voting import AGGREGATIONS, vote

N, K = 14, 4
MODULE = """
from magicore.testing.synthetic import SyntheticTruth, reply

TRUTH = SyntheticTruth(problems={n}, k={k}, alpha=0.8, seed=5)
ASKED = []

def answer(request, index):
    ASKED.append(request.key.role)
    if request.key.role == "verifier":
        return "Verdict: right" if request.key.problem < "s5" else "Verdict: wrong"
    if request.key.role == "confidence":
        return "Confidence: 40"
    if request.key.role in ("reviewer", "meta-reviewer") and request.key.parent is not None:
        return "Decision: wrong\\nConfidence: 3\\nJustification: no\\nSuggestions: again\\nAnswer: 1"
    return reply(TRUTH, request, index)
"""
ROUTERS = {
    "oracle": "oracle",
    "condition 1": "condition-1:z_threshold=1.5",
    "condition 2": "condition-2:confidence_threshold=0.95",
}
LUCK = Luck(resamples=200, seed=3)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a finished run ``run`` that routed, made by a model that is found by name."""
    folder = tmp_path_factory.mktemp("studies")
    (folder / "synthetic_answers.py").write_text(MODULE.format(n=N, k=K))
    sys.path.insert(0, str(folder))
    write_problems(folder / "problems.jsonl", synthetic_problems(SyntheticTruth(problems=N, k=K, alpha=0.8, seed=5)))
    magicore.solve_batch(
        None,
        data=str(folder / "problems.jsonl"),
        model="scripted:synthetic_answers:answer",
        orm="random:1",
        prm="random:2",
        k=K,
        iterations=2,
        router="magicore:z_threshold=1.5,confidence_threshold=0.95",
        out=folder / "run",
        progress=False,
    )
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("synthetic_answers", None)


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may add to."""
    return Path(shutil.copytree(place / "run", tmp_path / "run"))


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model of any kind can be opened."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model was opened")

    for name in ("open_model", "load_outcome_model", "load_process_model"):
        monkeypatch.setattr(f"magicore.runtime.open.{name}", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.delitem(sys.modules, "synthetic_answers", raising=False)


def asked() -> list[str]:
    return list(sys.modules["synthetic_answers"].ASKED)


def by(rows: Any, **wanted: Any) -> Mapping[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


# k-sweep


def brute(arrays: RoundArrays, k: int, method: str, weights: str | None) -> list[float]:
    """The mean over every subset, by the scalar vote."""
    found = []
    for at in range(arrays.right.shape[0]):
        table, hits = arrays.table, []
        for chosen in combinations(range(arrays.right.shape[1]), k):
            columns = list(chosen)
            classes = [None if c < 0 else c for c in table.classes[at, columns].tolist()]
            o, s = ([None if np.isnan(v) else v for v in values[at, columns]] for values in (table.o, table.s))
            winner = vote(classes, o, s, method, weights, logprob=table.logprob[at, columns].tolist()).chosen
            hits.append(winner is not None and bool(arrays.right[at, columns[winner]]))
        found.append(sum(hits) / len(hits))
    return found


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_expected_accuracy_equals_the_mean_over_every_subset(k: int) -> None:
    table = VoteTable.of(
        [[0, 1, 0, None, 2], [0, 0, 1, 1, 2], [0, 1, 2, 3, 4]],
        [[0.3, 0.9, 0.2, 0.95, 0.4], [0.5, 0.5, 0.5, 0.5, 0.1], [0.1, None, 0.3, 0.2, 0.9]],
        [[0.9, 0.1, 0.8, 0.7, 0.2], [0.4, 0.4, 0.4, 0.4, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5]],
        [[-0.1, -0.2, -0.3, -0.4, -0.5]] * 3,
    )
    right = np.array([[True, False, True, False, False], [False, False, True, True, False], [False] * 4 + [True]])
    arrays = RoundArrays(table=table, right=right, reached=np.ones(3, dtype=bool))
    found = expected_accuracy(arrays, k, draws=200)
    for one in AGGREGATIONS:
        if one[0] != "cot":
            assert found[one].right.tolist() == pytest.approx(brute(arrays, k, *one)), one
    assert found["cot", None].right.tolist() == pytest.approx([0.4, 0.4, 0.2])
    assert found["best-of-k", "S"].how in ("exact", "enumerated")
    # ties between a right and a wrong chain, and a missing score: the tie rule decides, so no closed form is used
    assert found["best-of-k", "o"].how == ("exact" if k in (1, 5) else "enumerated")


def test_resampled_subsets_are_unbiased_and_fixed_by_the_seed() -> None:
    source = np.random.default_rng(0)
    classes = source.integers(0, 3, size=(40, 10))
    table = VoteTable(
        classes=classes, o=source.random((40, 10)), s=source.random((40, 10)), logprob=np.full((40, 10), np.nan),
        include=np.ones((40, 10), dtype=bool),
    )  # fmt: skip
    arrays = RoundArrays(table=table, right=classes == 0, reached=np.ones(40, dtype=bool))
    chosen = [("self-consistency", None)]
    every = expected_accuracy(arrays, 5, aggregations=chosen, draws=252)[chosen[0]]
    some = expected_accuracy(arrays, 5, aggregations=chosen, draws=100, seed=1)[chosen[0]]
    again = expected_accuracy(arrays, 5, aggregations=chosen, draws=100, seed=1)[chosen[0]]
    assert (every.how, every.draws, some.how, some.draws) == ("enumerated", 252, "resampled", 100)
    assert some.right.tolist() == again.right.tolist() != every.right.tolist()
    # 40 problems x 100 draws: the standard error is at most .5 / sqrt(4000)
    assert abs(some.right.mean() - every.right.mean()) < 4 * 0.5 / 4000**0.5


def test_k_sweep_is_offline_and_says_what_the_run_says(run: Path, unreachable: None) -> None:
    study = run_study("k-sweep", run, Options(luck=LUCK), figures=False)
    curve, cover = study.table("accuracy_by_k").rows, study.table("coverage").rows
    assert {row["k"] for row in curve} == {1, 2, 3, 4}
    at_one = {row["accuracy"] for row in curve if row["k"] == 1}
    assert len(at_one) == 1  # with one chain every aggregation is that chain
    methods = study.table("methods").rows
    summary = read_summary(run / "summary.json")
    assert by(methods, method="magicore")["accuracy"] == summary["accuracy"]
    assert by(methods, method="magicore")["generation_tokens"] == summary["usage"]["generation_tokens"]
    arrays = initial_arrays(read_run(run))
    sc = by(methods, method="self-consistency")
    assert sc["correct"] == int(arrays.right_by("self-consistency").sum()) and sc["reading"] == "baseline"
    for row in cover:
        assert row["coverage"] >= row["selection"] - 1e-12
    assert cover[-1]["coverage"] == pytest.approx(arrays.right.any(axis=1).mean())
    assert any("logprob" in remark for remark in study.remarks)  # the run has none, and that is said


# easy-hard


def test_easy_hard_is_offline_and_leaves_unknown_what_was_not_refined(run: Path, unreachable: None) -> None:
    study = run_study("easy-hard", run, Options(luck=LUCK), figures=False)
    rows = study.table("methods").rows
    found = read_run(run)
    results = {result.id: result for result in found.results}
    # the router, followed through the stored rounds, gives exactly what the run answered
    route = by(rows, method=ROUTE)
    assert (route["correct"], route["unknown"]) == (sum(r.correct is True for r in results.values()), 0)
    easy = sum(r.verdict is not None and r.verdict.easy for r in results.values())
    assert 0 < easy < N
    assert by(rows, method=REFINE)["unknown"] > 0 and by(rows, method=REFINE)["graded"] < N
    assert by(study.table("routers").rows, router=ROUTE)["hard_rate"] == pytest.approx((N - easy) / N)
    assert by(rows, method=AGGREGATE)["correct"] == int(initial_arrays(found).right_by().sum())
    assert any("not run: refine everything" in remark and "--yes" in remark for remark in study.remarks)
    assert not (run / FOLDER).exists()


def test_with_consent_the_rest_is_drawn_once_and_then_read_without_a_model(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Budgeted] = []

    def consent(cost: Budgeted) -> bool:
        told.append(cost)
        return True

    first = easy_hard(run, Options(luck=LUCK, consent=consent))
    assert told[0].runs == (REFINE, "self-verification", "prompted confidence") and told[0].problems == N
    assert told[0].most >= told[0].least > 0 and told[0].tokens
    spent = asked()
    assert spent.count("verifier") >= N  # one a problem at the least
    rows = first.table("methods").rows
    assert [row["unknown"] for row in rows] == [0] * len(rows) and len(rows) == 9
    monkeypatch.setattr("magicore.runtime.open.open_model", None)
    again = easy_hard(run, Options(luck=LUCK, consent=consent))
    assert len(told) == 1 and asked() == spent
    assert again.table("methods").rows == rows
    # every arm stands for a real run: the oracle's outcome, followed through the rounds, is a run's with that router
    monkeypatch.undo()
    config = magicore.config.load_config(run / "config.toml", {})
    for name, chosen in ROUTERS.items():
        made = magicore.solve_batch(None, config, router=chosen, cache=str(run / "store.sqlite"), progress=False)
        assert by(rows, method=name)["correct"] == made.summary["correct"], name
        assert by(rows, method=name)["generation_tokens"] == pytest.approx(
            made.summary["usage"]["generation_tokens"], rel=0.15
        )
    assert set(asked()[len(spent) :]) == set()  # and nothing new was drawn for it


def test_threshold_sweeps_equal_a_router_at_a_time(run: Path) -> None:
    found = read_run(run)
    assert found.stats is not None
    taken = trajectories(found)
    rows = sweep_rows(taken, found.stats, z=[-0.5, 0.0, 0.5], confidence=[0.5, 0.7])
    assert len(rows) == 3 + 2 + 6
    truth = ~taken.rounds[0].right_by()
    for row in (row for row in rows if row["router"] == "magicore"):
        router = MagicoreRouter(z_threshold=row["z_threshold"], confidence_threshold=row["confidence_threshold"])
        hard = []
        for at in range(N):
            classes = [None if c < 0 else int(c) for c in taken.rounds[0].table.classes[at]]
            o, s = (values[at].tolist() for values in (taken.rounds[0].table.o, taken.rounds[0].table.s))
            hard.append(router(Evidence(classes=classes, o=o, s=s, stats=found.stats)).hard)
        assert row["hard_as_hard"] == sum(h and t for h, t in zip(hard, truth, strict=True))
        assert row["hard_rate"] == pytest.approx(sum(hard) / N)


# The studies that need runs


def made(name: str, run: Path, *, figures: bool = False, **options: Any) -> Study:
    return run_study(name, run, Options(luck=LUCK, consent=agree, **options), figures=figures)


def test_every_study_writes_tables_figures_and_how_it_was_made(run: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    from matplotlib.figure import Figure

    for name in STUDIES:
        values = {"methods": "mars;self-refine+sc"} if name == "methods" else {}
        study = made(name, run, limit=8, settings={"iterations": 1, "k": 3}, values=values, figures=name == "k-sweep")
        folder = run / "studies" / name
        notes = json.loads((folder / "study.json").read_text())
        assert (notes["seed"], notes["resamples"]) == (3, 200)
        for figure in study.figures:
            axes = Figure().add_subplot()
            figure.draw(axes)
            assert axes.get_xlabel() or axes.get_ylabel()
        for figure in study.figures if name == "k-sweep" else ():
            assert (folder / f"{figure.name}.png").read_bytes()[:4] == b"\x89PNG"
            assert "<svg" in (folder / f"{figure.name}.svg").read_text()
        for table in study.tables:
            with (folder / f"{table.name}.csv").open() as file:
                rows = list(csv.DictReader(file))
            assert len(rows) == len(table.rows)
            if rows:
                assert rows[0].keys() == table.rows[0].keys()
                assert pq.read_table(folder / f"{table.name}.parquet").num_rows == len(rows)


def test_error_localisation_compares_the_sources_and_labels_serve_one_round(run: Path, tmp_path: Path) -> None:
    study = made("error-localisation", run)
    assert [row["method"] for row in study.table("methods").rows] == ["prm", "orm", "random", "none"]
    assert study.notes["arms"]["prm"] == str(run)  # the run itself; the others are new
    labels = tmp_path / "labels.jsonl"
    chains = [record.scored.chain for found in read_run(run).chains.values() for record in found]
    first = [chain for chain in chains if chain.round == 0]
    rows = [{"chain": c.id, "step_labels": [1.0] * len(c.steps)} for c in first if c.problem != "s3"]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = made("error-localisation", run, values={"labels": str(labels)})
    oracle = by(study.table("methods").rows, method="oracle")
    assert (oracle["graded"], oracle["unknown"]) == (N - 1, 1)
    assert by(study.table("methods").rows, method="prm")["graded"] == N and study.notes["arms"]["prm"] != str(run)


def test_iterations_adds_up(run: Path, unreachable: None) -> None:
    study = run_study("iterations", run, Options(luck=LUCK), figures=False)
    flow = study.table("flow").rows
    assert [row["round"] for row in flow] == [0, 1, 2]
    for before, after in pairwise(flow):
        assert after["correct"] == before["correct"] + after["fixed"] - after["broken"]
        assert after["new_chains"] == K * after["problems"]
    summary = read_summary(run / "summary.json")
    assert flow[-1]["correct"] == summary["correct"] and flow[0]["problems"] == N
    assert study.table("methods").rows[-1]["generation_tokens"] == summary["usage"]["generation_tokens"]


def test_reward_models_recomputes_from_the_stored_steps_and_scores_other_pairs(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = made("reward-models", run, values={"orms": "constant:0.5;random:9"})
    pairs = {(row["orm"], row["prm"]) for row in study.table("votes").rows}
    assert pairs == {("random:1", "random:2"), ("constant:0.5", "random:2"), ("random:9", "random:2")}
    steps = {row["steps"] for row in study.table("votes").rows}
    assert steps == {"product", "min", "last", "mean", "geometric-mean"}
    quality = by(study.table("quality").rows, orm="constant:0.5", steps="product")
    assert quality["auroc_o"] == 0.5  # a constant tells nothing
    own = by(study.table("votes").rows, orm="random:1", steps="product", vote="weighted-self-consistency")
    assert own["correct"] == int(initial_arrays(read_run(run)).right_by().sum())
    monkeypatch.setattr("magicore.runtime.open.load_outcome_model", None)
    again = made("reward-models", run, values={"orms": "constant:0.5;random:9"})
    assert again.table("votes").rows == study.table("votes").rows


def test_roles_and_components_run_every_arm(run: Path) -> None:
    roles = made("roles", run, limit=4, settings={"role_models": {"reviewer": "scripted:synthetic_answers:answer"}})
    names = [row["method"] for row in roles.table("methods").rows]
    assert names == ["separate", "joint", "no reviewer", "mars", "mars, personas", "mixed models"]
    components = made("components", run, limit=4)
    names = [row["method"] for row in components.table("methods").rows]
    assert names == ["none of them", "iterated", "localised", "selective", "all three"]
    # the same settings are one run, whichever study asks
    assert len(set(components.notes["arms"].values())) == 5
    assert components.notes["arms"]["all three"] == roles.notes["arms"]["separate"]


def test_methods_stand_beside_the_aggregations_at_equal_cost(run: Path) -> None:
    study = made("methods", run, values={"methods": "mars;debate"})
    rows = study.table("methods").rows
    assert {"magicore", "mars", "debate", "cot", "self-consistency", "best-of-k"} <= {row["method"] for row in rows}
    matched = study.table("matched").rows
    cot = by(matched, axis="tokens", method="cot", rival="self-consistency")
    assert cot["equal_chains"] == pytest.approx(1.0)  # one chain costs what one chain costs
    beyond = by(matched, axis="tokens", method="debate", rival="self-consistency")
    assert beyond["cost"] is not None and (beyond["equal_accuracy"] is None) == (beyond["equal_chains"] is None)
    magic = by(rows, method="magicore")
    assert magic["wall_basis"] == "measured" and by(rows, method="cot")["wall_basis"] == "by tokens"


def test_without_consent_a_study_of_runs_says_what_it_would_take(run: Path, unreachable: None) -> None:
    study = run_study("roles", run, Options(luck=LUCK), figures=False)
    assert [row["method"] for row in study.table("methods").rows] == ["separate"]
    assert any("not run: joint" in remark and "--yes makes 4 new runs" in remark for remark in study.remarks)


# Statistics


def test_arms_are_compared_in_pairs_and_corrected_within_the_table() -> None:
    base = {str(i): i < 10 for i in range(20)}
    better = {str(i): i < 18 for i in range(20)}
    rows = arm_rows(
        {"base": Scored(right=base), "same": Scored(right=base), "better": Scored(right=better, unknown=2)},
        "base",
        LUCK,
    )
    found = by(rows, method="better")
    assert found["p_value"] == pytest.approx(2 * 0.5**8) and found["p_adjusted"] == pytest.approx(4 * 0.5**8)
    assert (found["only_method"], found["only_baseline"], found["reading"]) == (8, 0, "better")
    assert by(rows, method="same")["reading"] == "no difference shown" and rows[0]["reading"] == "baseline"
    assert (found["seed"], found["resamples"]) == (3, 200)
    with pytest.raises(InputError, match="base, same"):
        arm_rows({"base": Scored(right=base), "same": Scored(right=base)}, "nothing", LUCK)


def test_a_frontier_a_cost_axis_and_unknown_costs_left_out() -> None:
    def point(name: str, tokens: float, calls: float | None, accuracy: float) -> AxisPoint:
        spent = Spent(generation_tokens=tokens, reward_tokens=0, judge_tokens=0, calls=calls)
        return AxisPoint(method=name, spent=spent, accuracy=accuracy)

    rows = frontier_rows([point("a", 10, 1, 0.5), point("b", 20, None, 0.4), point("c", 30, 1, 0.9)])
    assert {row["axis"] for row in rows} == {"tokens", "generation_tokens", "calls"}
    on = [row["method"] for row in rows if row["axis"] == "tokens" and row["on_frontier"]]
    assert on == ["a", "c"]
    calls = [row for row in rows if row["axis"] == "calls"]
    assert [(row["method"], row["on_frontier"]) for row in calls] == [("a", False), ("c", True)]


def test_what_papers_report_stands_beside_a_run_of_the_same_model_and_data(run: Path) -> None:
    study = run_study("iterations", run, Options(luck=LUCK), figures=False)
    assert "published" not in [table.name for table in study.tables]
    config = (run / "config.toml").read_text()
    data = next(line for line in config.splitlines() if line.startswith("data = "))
    config = config.replace(data, 'data = "gpqa.jsonl"').replace(
        "scripted:synthetic_answers:answer", "openai:gpt-4o-mini"
    )
    (run / "config.toml").write_text(config)
    study = run_study("iterations", run, Options(luck=LUCK), figures=False)
    rows = study.table("published").rows
    assert {(row["label"], row["method"], row["accuracy"]) for row in rows} == {
        ("published", "mars", 0.4833),
        ("published", "debate", 0.475),
    }
    assert (run / "studies" / "iterations" / "published.csv").is_file()


# Mistakes


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'k-sweep'"):
        run_study("k-sweeep", run)
    with pytest.raises(UnknownNameError, match="no option 'drews'; did you mean 'draws'"):
        run_study("k-sweep", run, Options(values={"drews": 3}))
    with pytest.raises(InputError, match="holds no finished run"):
        run_study("k-sweep", tmp_path / "nothing")
    with pytest.raises(InputError, match="between 1 and 4"):
        run_study("k-sweep", run, Options(values={"ks": "1,9"}))
    (run / "config.toml").write_text((run / "config.toml").read_text().replace('"magicore"', '"mars"', 1))
    with pytest.raises(InputError, match="holds a run of mars"):
        run_study("roles", run)


# The command line


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["magicore", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_the_command_writes_prints_and_refuses(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--no-figures", "--resamples", 200)
    table, out = tmp_path / "main.csv", tmp_path / "out"
    assert call(monkeypatch, "ablate", "iterations", run, *options, "--csv", table, "--out", out, "--offline") == 0
    shown = capsys.readouterr().out
    assert "after round 2" in shown and "against baseline" in shown and str(out) in shown.replace("\n", "")
    assert table.read_text() == (out / "methods.csv").read_text()
    # no terminal to ask at, so nothing is drawn, and the cost is said
    assert call(monkeypatch, "ablate", "roles", run, *options) == 0
    assert "this study takes 4 new runs" in (said := capsys.readouterr()).err and "not run: joint" in said.out
    assert call(monkeypatch, "ablate", "roles", run, "--offline", "--yes") == 1
    assert "give one of them" in capsys.readouterr().err
    assert call(monkeypatch, "ablate", "iterations", run, *options, "--baseline", "nothing") == 1
    assert "'nothing' is none of the arms: first chains" in capsys.readouterr().err.replace("\n", " ")


def test_every_study_has_a_script_and_no_script_hides_a_package() -> None:
    """A script's folder comes first where it looks for imports, so a script named as a package would take its place."""
    scripts = Path(__file__).resolve().parent.parent / "scripts"
    texts = {path.stem: path.read_text() for path in scripts.glob("*.py")}
    for name in STUDIES:
        assert any(f'["ablate", "{name}"]' in text for text in texts.values()), name
    assert not texts.keys() & {"magicore", "reward_models", "difficulty"}
