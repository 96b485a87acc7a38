"""``magicore report`` and ``magicore compare``: numbers by hand, what is missing, nothing a model wrote is run."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magicore.ablations.easy_hard import easy_hard_study
from magicore.ablations.iterations import iterations_study
from magicore.ablations.k_sweep import k_sweep_study
from magicore.ablations.options import Options
from magicore.ablations.study import Study, table_csv
from magicore.cli.app import app
from magicore.config import RunConfig, config_toml
from magicore.errors import InputError, StoreError
from magicore.evaluate import Comparison, wilson
from magicore.report.compare_runs import compare_runs
from magicore.report.html import ReportData, render, report_data, write_report
from magicore.report.html.cases import TEXT_LIMIT
from magicore.report.html.panels import Calibration, Flow, Frontier, Missing, Routing
from magicore.report.html.write import summary_rows
from magicore.report.run_files import labels
from magicore.runtime.directory import CHAINS, CONFIG, RESULTS, STORE, SUMMARY, RunEnd, note_end
from magicore.store.run_store import RunStore
from report_runs import HOSTILE, scripted_run, synthetic_run

pytest.importorskip("jinja2")


class Page(HTMLParser):
    """The page as a browser reads it: its scripts by id, its tags with attributes, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script":
            key = attributes.get("id") or "code"
            self.scripts[key] = self.scripts.get(key, "") + data
        else:
            self.text.append(data)

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts["report-data"])
        return found


def details(page: Page, run: int = 0) -> list[dict[str, Any]]:
    """Every case of a run, unpacked."""
    firsts = page.data["runs"][run]["chunks"]
    packed = [page.scripts[f"chunk-{run}-{first}"] for first in firsts]
    return [case for text in packed for case in json.loads(gzip.decompress(base64.b64decode(text)))]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripted")
    return scripted_run(folder, folder / "run")


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("synthetic")
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    return (
        synthetic_run(folder / "a" / "first", 40, 4, failed=2),
        synthetic_run(folder / "b" / "second", 40, 4, seed=3, skill=0.7),
    )


@pytest.fixture(scope="module")
def page(scripted: Path) -> Page:
    return Page(render(report_data([scripted])))


def test_html_csv_and_summary_hold_the_same_numbers(synthetic: tuple[Path, Path], tmp_path: Path) -> None:
    out, table = tmp_path / "new" / "report.html", tmp_path / "summary.csv"
    arguments = ["report", *map(str, synthetic), "--out", str(out), "--csv", str(table)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert str(out) in result.output
    page = Page(out.read_text(encoding="utf-8"))
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    for directory, embedded, row in zip(synthetic, page.data["runs"], rows, strict=True):
        summary = json.loads((directory / SUMMARY).read_text())
        assert embedded["summary"] == summary
        assert embedded["label"] == row["run"] == directory.name
        flat = {**summary, **summary.pop("usage")}
        for name in (
            "n",
            "graded",
            "correct",
            "accuracy",
            "accuracy_low",
            "accuracy_high",
            "generation_tokens",
            "wall_s",
        ):
            assert float(row[name]) == flat[name], name
        assert embedded["frontier"]["run"]["accuracy"] == summary["accuracy"]
        assert embedded["flow"]["rounds"][-1]["right"] == summary["correct"]
        assert embedded["flow"]["graded"] == summary["graded"]
        assert (
            sum(r["prompt"] + r["completion"] for r in embedded["tokens"] if r["group"] == "generation")
            == (flat["generation_tokens"])
        )
        assert f"{100 * summary['accuracy']:.1f} %" in page.text
    cell = next(a for t, a in page.tags if t == "td" and a.get("data-key") == "correct")
    assert cell["data-run"] == "first"


def test_panels_of_a_scripted_run(scripted: Path) -> None:
    (run,) = report_data([scripted]).runs
    assert isinstance(run.flow, Flow) and isinstance(run.routing, Routing) and isinstance(run.frontier, Frontier)
    # easy: 42; fixed: 7 had the largest S, then 72; broken: 5, then 6; silent: no answer, then 9.
    (one,) = run.flow.rounds
    assert (one.active, one.fixed, one.broken, one.stayed_right, one.stayed_wrong) == (3, 2, 1, 0, 0)
    assert (run.flow.first_right, one.right, run.flow.graded) == (2, 3, 4)
    assert run.cases["id"] == ["easy", "fixed", "broken", "silent"]
    assert run.cases["change"] == ["same", "fixed", "broken", "fixed"]
    assert run.cases["right"] == [1, 1, 0, 1]
    # Routed hard: fixed, broken, silent; wrong at first: fixed and silent.
    assert (run.routing.precision, run.routing.recall) == (2 / 3, 1.0)
    assert (run.routing.refined_without_need, run.routing.left_wrong) == (1, 0)
    assert run.routing.groups["hard"].correct == 2 and run.routing.unplaced == 1
    # One chain: easy and fixed begin right. All four: 42, then 72 8 6 7 and 6 7 8 5 where S grows with the index.
    series = {name: [point.accuracy for point in points] for name, points in run.frontier.series.items()}
    assert series["self-consistency"] == [0.5, 0.25, 0.5]
    assert series["coverage"] == pytest.approx([(3 / 4 + 1 / 4 + 1 / 4) / 4, (1 + 1 / 2 + 1 / 2) / 4, 3 / 4])
    assert [point.k for point in run.frontier.series["coverage"]] == [1, 2, 4]
    assert run.frontier.run.accuracy == 0.75


def test_the_studies_find_the_same(scripted: Path) -> None:
    """What the report draws, and the CSV of the studies over the same run."""
    (run,) = report_data([scripted]).runs
    assert isinstance(run.flow, Flow) and isinstance(run.routing, Routing) and isinstance(run.frontier, Frontier)

    def csv_of(study: Study, table: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(table_csv(study.table(table)))))

    first, last = csv_of(iterations_study(scripted, Options()), "flow")
    (shown,) = run.flow.rounds
    assert int(first["correct"]) == run.flow.first_right and int(last["correct"]) == shown.right
    for name in ("fixed", "broken", "stayed_right", "stayed_wrong"):
        assert int(last[name]) == getattr(shown, name)
    router = csv_of(easy_hard_study(scripted, Options()), "routers")[0]
    assert router["router"] == "route"
    assert (float(router["precision"]), float(router["recall"])) == (run.routing.precision, run.routing.recall)
    sweep = k_sweep_study(scripted, Options())
    by_k = {(row["method"], row["k"]): float(row["accuracy"]) for row in csv_of(sweep, "accuracy_by_k")}
    for name, method in (
        ("self-consistency", "self-consistency"),
        ("best-of-k by o", "best-of-k"),
        ("sc+prm", "sc+prm"),
    ):
        assert run.frontier.series[name][-1].accuracy == by_k[method, "4"]
    assert run.summary is not None and run.summary["accuracy"] == float(last["accuracy"]) == run.frontier.run.accuracy


def test_calibration_of_a_scripted_run(scripted: Path) -> None:
    (run,) = report_data([scripted]).runs
    assert isinstance(run.calibration, Calibration)
    assert not isinstance(run.calibration.orm, Missing) and not isinstance(run.calibration.steps, Missing)
    assert (run.calibration.orm.n, run.calibration.orm.right) == (28, 13)
    # Right: 3 at .95, 1 at .2, 1 at .23, 8 at .9. Wrong: 1 at .95, 4 at .9, and .20 .21 .21 .22 .22 .23 and 4 silent.
    right = [0.95] * 3 + [0.2, 0.23] + [0.9] * 8
    wrong = [0.95] + [0.9] * 4 + [0.21, 0.22, 0.23] + [0.2, 0.21, 0.22] + [0.2, 0.21, 0.22, 0.23]
    won = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    assert run.calibration.orm.auroc == pytest.approx(won / (len(right) * len(wrong)))
    assert run.calibration.steps.n == 56


def test_the_case_view_has_the_whole_story(page: Page) -> None:
    cases = details(page)
    assert len(cases) == 4
    fixed = cases[1]
    assert [chain["round"] for chain in fixed["chains"]] == [0] * 4 + [1] * 4
    assert fixed["chains"][0]["text"] == [["Step 1: f0\n", 0.6], ["Step 2: The final answer is 72.", 0.3]]
    assert fixed["chains"][4]["parent"] == fixed["chains"][0]["id"]
    assert fixed["chains"][0]["kept"] == [0] and fixed["chains"][4]["kept"] == [1]
    assert fixed["after"] == [False, True] and fixed["votes"] == [["72", 4, 6.84]]
    assert [review["chain"] for review in fixed["reviews"]] == [chain["id"] for chain in fixed["chains"][:4]]
    assert fixed["reviews"][0]["text"] == f"Step 2 is wrong. {HOSTILE}"
    assert cases[3]["chains"][0]["answer"] is None and cases[3]["chains"][0]["why"]
    assert page.data["runs"][0]["cases"]["question"][3] == "How many <b>stars</b>?"


def test_what_models_wrote_is_data_alone(page: Page, scripted: Path) -> None:
    text = render(report_data([scripted]))
    assert [a.get("id") or "code" for t, a in page.tags if t == "script"] == ["report-data", "chunk-0-0", "code"]
    assert not any(tag in {"img", "iframe", "link", "object", "b"} for tag, _ in page.tags)
    assert not any(
        name.startswith("on") or name in {"src", "style"} for _, attributes in page.tags for name in attributes
    )
    assert {a["href"][0] for t, a in page.tags if t == "a" and a.get("href")} == {"#"}
    policy = next(str(a["content"]) for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    assert "http://" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text) and "https://" not in text


def test_hostile_names_and_errors_stay_text(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / f"{HOSTILE[:60].replace('/', '')}", 4, 2, failed=1)
    page = Page(render(report_data([run])))
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert page.data["runs"][0]["label"] == run.name
    (trouble,) = [one for one in page.data["runs"][0]["troubles"] if one["where"] == "Problems that failed"]
    assert trouble["what"] == f"ConnectionFailed: nothing answered {HOSTILE}" and trouble["problems"] == ["p3"]


def test_equal_runs_make_equal_bytes(scripted: Path) -> None:
    assert render(report_data([scripted])) == render(report_data([scripted]))


def test_without_reward_models_or_routing(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, tmp_path / "run", method="self-consistency", orm=False, prm=False)
    (found,) = report_data([run]).runs
    assert found.calibration == Missing(missing="The run used no reward model.")
    assert found.routing == Missing(missing="This method routes nothing: there is no easy and hard to show.")
    assert found.flow == Missing(missing="No problem went through a second round: nothing was refined.")
    assert isinstance(found.frontier, Frontier) and set(found.frontier.series) == {"self-consistency", "coverage"}
    assert found.cases["easy"] == [None] * 4
    assert not isinstance(found.troubles, Missing)
    (silent,) = [one for one in found.troubles if one.where == "Problems without an answer"]
    assert silent.problems == ("silent",)


def test_one_reward_model(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, tmp_path / "run", method="best-of-k", prm=False)
    (found,) = report_data([run]).runs
    assert isinstance(found.calibration, Calibration) and isinstance(found.frontier, Frontier)
    assert found.calibration.prm == Missing(missing="The run used no process reward model.")
    assert set(found.frontier.series) == {"self-consistency", "best-of-k by o", "coverage"}


def test_without_gold_nothing_is_drawn_as_zero(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", 5, 3, gold=False)
    data = report_data([run])
    (found,) = data.runs
    for panel in (found.frontier, found.flow, found.calibration):
        assert isinstance(panel, Missing) and "gold" in panel.missing
    assert isinstance(found.routing, Routing) and found.routing.precision is None
    assert all(one.value is None for one in found.routing.groups.values())
    assert found.cases["right"] == [None] * 5 and set(found.cases["change"]) == {None}
    text = " ".join(Page(render(data)).text)
    assert "No problem has a gold answer, so there is no accuracy." in text and "0.0 %" not in text


def test_an_unfinished_run_says_so(scripted: Path, tmp_path: Path) -> None:
    run = tmp_path / "begun"
    run.mkdir()
    for name in (CONFIG, STORE):
        (run / name).write_bytes((scripted / name).read_bytes())
    data = report_data([run])
    (found,) = data.runs
    assert found.state == "unfinished" and "--resume" in found.remarks[0]
    assert found.frontier == found.troubles == Missing(missing="There are no results yet.")
    assert not isinstance(found.tokens, Missing) and [row.role for row in found.tokens] == [
        "refiner",
        "reviewer",
        "solver",
    ]
    assert summary_rows(data)[0]["accuracy"] is None
    assert "There is no summary of this run yet." in " ".join(Page(render(data)).text)


def test_files_that_are_not_there(scripted: Path, tmp_path: Path) -> None:
    run = tmp_path / "moved"
    run.mkdir()
    for name in (CONFIG, RESULTS):
        (run / name).write_bytes((scripted / name).read_bytes())
    (found,) = report_data([run]).runs
    assert found.frontier == Missing(missing="chains.jsonl is not in the directory.")
    assert found.remarks == ("There is no summary.json, so the numbers of the whole run are not shown.",)
    (run / SUMMARY).write_text(json.dumps({"n": 4, "graded": 4, "correct": 4}))
    (run / CHAINS).write_bytes((scripted / CHAINS).read_bytes())
    (found,) = report_data([run]).runs
    assert "one of them was changed" in found.remarks[0] and isinstance(found.frontier, Frontier)


def test_an_interrupted_run_and_a_store_that_cannot_be_read(scripted: Path, tmp_path: Path) -> None:
    run = tmp_path / "early"
    run.mkdir()
    for name in (CONFIG, RESULTS, SUMMARY, CHAINS, STORE):
        (run / name).write_bytes((scripted / name).read_bytes())
    store = RunStore(run / STORE)
    end = RunEnd(problems="", total=4, n=4, failed=0, chains=16, cut=0, interrupted=True)
    note_end(store, end)
    store.close()
    (found,) = report_data([run]).runs
    assert found.state == "interrupted" and "ended early" in found.remarks[0] and isinstance(found.flow, Flow)
    (run / STORE).write_bytes(b"no store" * 200)
    (found,) = report_data([run]).runs
    assert found.state == "finished" and found.remarks[0].startswith("Whether the run was ended early is not known")


def test_published_figures_stand_apart(scripted: Path, tmp_path: Path) -> None:
    run = tmp_path / "known"
    run.mkdir()
    for name in (RESULTS, SUMMARY, CHAINS):
        (run / name).write_bytes((scripted / name).read_bytes())
    config = RunConfig(model="openai:gpt-3.5-turbo", data=str(tmp_path / "gsm8k_test.jsonl"), method="magicore")
    (run / CONFIG).write_text(config_toml(config))
    data = report_data([run, scripted])
    known, other = data.runs
    assert {row["label"] for row in known.published} == {"published"} and other.published == ()
    assert any(row["method"] == "mars" and row["accuracy"] == 0.7567 for row in known.published)
    assert known.why_no_questions is not None and "no such file" in known.why_no_questions
    text = " ".join(Page(render(data)).text)
    assert "75.7 %" in text and "whose prompts, samples and readings of answers differ" in text


def test_costs_on_every_axis(synthetic: tuple[Path, Path]) -> None:
    data = report_data(synthetic)
    assert isinstance(data.runs[0].frontier, Frontier)
    spent, summary = data.runs[0].frontier.spent, data.runs[0].summary
    assert summary is not None and set(spent) == set(data.axes)
    assert spent["generation_tokens"] == summary["usage"]["generation_tokens"] / 40
    assert spent["wall_s"] == 12.5 / 40 and spent["calls"] == summary["calls"] / 40 and spent["money"] is None
    costs = [point.tokens for point in data.pareto]
    gains = [point.accuracy for point in data.pareto]
    assert costs == sorted(costs) and gains == sorted(gains) and len(gains) > 1


def test_mistakes_are_named(scripted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        report_data([tmp_path])
    with pytest.raises(InputError, match="twice"):
        report_data([scripted, scripted / "."])
    data = report_data([scripted])
    with pytest.raises(InputError, match="is a folder"):
        write_report(data, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        write_report(data, tmp_path / "file" / "report.html")


def test_long_texts_are_cut_and_say_so(scripted: Path, tmp_path: Path) -> None:
    run = tmp_path / "long"
    run.mkdir()
    for name in (CONFIG, RESULTS, SUMMARY):
        (run / name).write_bytes((scripted / name).read_bytes())
    rows = [json.loads(line) for line in (scripted / CHAINS).read_text().strip().split("\n")]
    rows[0]["text"] += "x" * TEXT_LIMIT
    (run / CHAINS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    pieces = details(Page(render(report_data([run]))))[0]["chains"][0]["text"]
    assert len("".join(piece[0] for piece in pieces)) < TEXT_LIMIT + 200
    assert "more characters are not in this report" in pieces[-1][0]


def test_labels_tell_directories_apart() -> None:
    assert labels([Path("/r/a/x/run"), Path("/r/b/x/run"), Path("/r/c")]) == ["a/x/run", "b/x/run", "c"]


def test_compare_by_hand(synthetic: tuple[Path, Path]) -> None:
    found = compare_runs(*synthetic, resamples=2000, seed=5)
    right = [
        {row["id"]: row["correct"] for row in map(json.loads, (run / RESULTS).read_text().strip().split("\n"))}
        for run in synthetic
    ]
    assert found.fixed == tuple(name for name in right[0] if right[1][name] and not right[0][name])
    assert found.broken == tuple(name for name in right[0] if right[0][name] and not right[1][name])
    assert found.comparison.difference == (len(found.fixed) - len(found.broken)) / 40
    assert found.accuracy_a.interval == wilson(sum(right[0].values()), 40)
    summaries = [json.loads((run / SUMMARY).read_text())["usage"] for run in synthetic]
    assert found.tokens_ratio == sum(summaries[1].values()) / sum(summaries[0].values())
    report = report_data(synthetic, resamples=2000, seed=5).comparisons["second"]
    assert isinstance(report, Comparison)
    assert report.interval == found.comparison.interval and report.p_value == found.comparison.p_value


def test_compare_in_the_terminal(synthetic: tuple[Path, Path]) -> None:
    arguments = ["compare", *map(str, synthetic), "--resamples", "500"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    row = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert f"Fixed ({len(row['fixed'])}, wrong in first and right in second): {row['fixed'][0]}" in shown.output
    assert f"{100 * row['a']['accuracy']:.1f} %" in shown.output and row["verdict"] in shown.output
    assert f"Tokens of second for each of first: {row['tokens_ratio']:.2f}" in shown.output
    assert row["settings"].keys() == {"data"}
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]


def test_runs_over_other_problems_are_not_compared(
    scripted: Path, synthetic: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"no graded problem in common \(ids like 'easy' and 'p0'\).*their data are"):
        compare_runs(scripted, synthetic[0])
    with pytest.raises(InputError, match="one directory"):
        compare_runs(scripted, scripted)
    other = tmp_path / "other"
    other.mkdir()
    for name in (CONFIG, SUMMARY):
        (other / name).write_bytes((synthetic[1] / name).read_bytes())
    rows = [json.loads(line) for line in (synthetic[1] / RESULTS).read_text().strip().split("\n")]
    (other / RESULTS).write_text("".join(json.dumps({**row, "gold": "1.50"}) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"gold answer '0' in first and '1\.50' in other"):
        compare_runs(synthetic[0], other)
    (other / RESULTS).write_text("".join(json.dumps({**row, "gold": f"{row['gold']}.0"}) + "\n" for row in rows[:30]))
    found = compare_runs(synthetic[0], other)
    assert found.comparison.n == 30 and len(found.only_a) == 10 and not found.only_b
    refused = report_data([scripted, synthetic[0]]).comparisons["first"]
    assert isinstance(refused, Missing) and "no graded problem in common" in refused.missing
    assert "is not compared" in " ".join(Page(render(report_data([scripted, synthetic[0]]))).text)


def test_a_missing_extra_is_named(scripted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from magicore.errors import MissingExtraError

    data: ReportData = report_data([scripted])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"magicore\[report\]"):
        render(data)
