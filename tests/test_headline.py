"""The headline: its rows by hand, a whole small one with scripted models, and its script."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import magicore
from difficulty import Verdict
from magicore.ablations.finished import FinishedRun
from magicore.ablations.headline import (
    EMBEDDED,
    Counted,
    Family,
    Headline,
    aim_rows,
    by_rounds,
    explained,
    headline,
    headline_study,
    sampled,
    sum_spent,
)
from magicore.ablations.statistics import Luck
from magicore.ablations.study import Study
from magicore.config import RunConfig
from magicore.errors import InputError, UnknownNameError
from magicore.evaluate.axes import Spent
from magicore.store.chain_rows import ChainRecord
from magicore.types import Chain, Problem, Result, RoleUsage, ScoredChain, Usage
from reward_models.types import OutcomeScore, StepScores

ROOT = Path(__file__).resolve().parent.parent
LUCK = Luck(resamples=200, seed=3)
MODULE = """
from random import Random

from magicore.datasets.families import drawn_by_id
from magicore.datasets.families.plan import with_error

ASKED = []

def answer(request, index):
    key = request.key
    ASKED.append((key.problem, key.role))
    drawn = drawn_by_id(key.problem)
    draw = Random(f"{key.problem}/{key.role}/{key.instance}/{key.round}/{key.parent}/{index}")
    if key.role in ("reviewer", "meta-reviewer"):
        return "Decision: wrong\\nConfidence: 3\\nJustification: a step is wrong\\nSuggestions: again\\nAnswer: 1"
    planted = with_error(drawn, draw) if draw.random() < 0.7 else None
    return "\\n".join(drawn.steps if planted is None else planted[0])
"""


# Runs by hand


def chain(
    problem: str, role: str, number: int, index: int, answer: str, o: float, s: float, parent: str | None = None
) -> ScoredChain:
    """A chain of 10 tokens that cost 5 tokens of the ORM and 7 of the PRM to score."""
    return ScoredChain(
        chain=Chain(
            id=f"{problem}/{role}/0/{number}/{index}",
            problem=problem,
            role=role,
            round=number,
            index=index,
            parent=parent,
            text=f"Step 1: The final answer is {answer}.",
            stop="stop",
            answer=answer,
            answer_text=answer,
            tokens=10,
        ),
        orm=OutcomeScore(value=o, raw=o, tokens=5),
        prm=StepScores(steps=(), scores=(), tokens=7),
        o=o,
        s=s,
    )


def firsts(problem: str, values: Sequence[tuple[str, float, float]]) -> list[ScoredChain]:
    return [chain(problem, "solver", 0, index, *value) for index, value in enumerate(values)]


def run_of(
    name: str,
    method: str,
    chains: Mapping[str, Sequence[tuple[ScoredChain, tuple[int, ...]]]],
    results: Sequence[Result],
    rounds: Sequence[int],
    wall_s: float | None,
) -> FinishedRun:
    return FinishedRun(
        path=Path(name),
        config=RunConfig(method=method, data="gen:stories:2:9"),
        problems=tuple(Problem(id=one.id, question="?", kind="number", answer=one.gold) for one in results),
        results=tuple(results),
        rounds=tuple(rounds),
        chains={key: tuple(ChainRecord(scored=one, kept=kept) for one, kept in found) for key, found in chains.items()},
        stats=None,
        wall_s=wall_s,
    )


def used(role: str, prompt: int, completion: int, calls: int) -> RoleUsage:
    return RoleUsage(role=role, model="m", usage=Usage(prompt=prompt, completion=completion, calls=calls))


def result(name: str, answer: str, *, easy: bool, usage: tuple[RoleUsage, ...]) -> Result:
    return Result(
        id=name,
        kind="number",
        method="magicore",
        answer=answer,
        gold="1",
        correct=answer == "1",
        verdict=Verdict(router="magicore", easy=easy),
        usage=usage,
        stop="done" if easy else "iterations",
    )


# Both problems' gold is 1. p is answered 1, 2 first, then 1, 2, 2, 2; q 2, 3 first, then 1, 1, 2, 1.
P = [("1", 0.5, 0.9), ("2", 0.6, 0.2), ("1", 0.1, 0.3), ("2", 0.9, 0.1), ("2", 0.2, 0.1), ("2", 0.3, 0.1)]
Q = [("2", 0.4, 0.4), ("3", 0.3, 0.3), ("1", 0.9, 0.2), ("1", 0.2, 0.2), ("2", 0.1, 0.1), ("1", 0.5, 0.3)]
DRAWN = (used("solver", 100, 20, 1), used("orm", 10, 0, 2), used("prm", 14, 0, 2))
REFINING = (used("reviewer", 200, 16, 2), used("refiner", 300, 20, 2))
TWICE = (used("orm", 20, 0, 4), used("prm", 28, 0, 4))


def wide_run(prompts: int = 2, calls: int = 2) -> FinishedRun:
    """Six chains a problem; the first two from the other's store, so that there are two calls with the prompt."""
    usage = (used("solver", 100 * prompts, 60, calls), used("orm", 30, 0, 6), used("prm", 42, 0, 6))
    chains = {name: [(one, (0,)) for one in firsts(name, rows)] for name, rows in (("p", P), ("q", Q))}
    results = [result("p", "2", easy=True, usage=usage), result("q", "1", easy=True, usage=usage)]
    return run_of("wide", "weighted-self-consistency", chains, results, (1, 1), 8.0)


def base_run() -> FinishedRun:
    """Two chains a problem: p is easy, q is hard and refined once, from 2, 3 to 1, 2, of which the 1 scores higher."""
    first, new = firsts("q", Q[:2]), refined("q")
    chains = {
        "p": [(one, (0,)) for one in firsts("p", P[:2])],
        "q": [(first[0], (0,)), (first[1], (0,)), (new[0], (1,)), (new[1], (1,))],
    }
    results = [
        result("p", "1", easy=True, usage=DRAWN),
        result("q", "1", easy=False, usage=(DRAWN[0], *REFINING, *TWICE)),
    ]
    return run_of("base", "magicore", chains, results, (1, 2), 12.0)


def refined(problem: str) -> list[ScoredChain]:
    """New chains of 1 and 2."""
    return [
        chain(problem, "refiner", 1, at, answer, o, s, f"{problem}/solver/0/0/{at}")
        for at, (answer, o, s) in enumerate([("1", 0.9, 0.8), ("2", 0.2, 0.2)])
    ]


def uniform_run() -> FinishedRun:
    """As the base, with p refined too: its chain of 1 becomes 2, its chain of 2 stays, and its answer is spoiled."""
    spoiled = [chain("p", "refiner", 1, at, "2", 0.5, 0.5, f"p/solver/0/0/{at}") for at in range(2)]
    chains = {
        name: [(one, (0,)) for one in firsts(name, rows[:2])] + [(one, (1,)) for one in new]
        for name, rows, new in (("p", P, spoiled), ("q", Q, refined("q")))
    }
    usage = (DRAWN[0], *REFINING, *TWICE)
    results = [result("p", "2", easy=False, usage=usage), result("q", "1", easy=False, usage=usage)]
    return run_of("uniform", "magicore", chains, results, (2, 2), 20.0)


def test_rivals_that_only_sample_by_hand() -> None:
    found = sampled(wide_run(), base_run(), 2)
    assert {name: (one.right["p"], one.right["q"]) for name, one in found.items()} == {
        "cot": (True, False),
        "self-consistency, k = 2": (True, False),  # p: one each, and 1 has the larger S = 1.4 against 0.8
        "self-consistency, k = 6": (False, True),  # p: four of 2; q: three of 1
        "best-of-k, k = 2": (False, False),  # o of 0.6 and 0.4
        "best-of-k, k = 6": (False, True),  # o of 0.9 for 2, and for 1
        "sc+prm, k = 2": (True, False),  # s of 0.9 against 0.2
    }
    # p and q together: prompts of 100, once each; 10 tokens a chain; 5 of the ORM and 7 of the PRM a chain
    spent = {name: (one.spent.generation_tokens, one.spent.reward_tokens) for name, one in found.items()}
    assert spent == {
        "cot": pytest.approx((220, 0)),
        "self-consistency, k = 2": pytest.approx((240, 0)),
        "self-consistency, k = 6": pytest.approx((320, 0)),
        "best-of-k, k = 2": pytest.approx((240, 20)),
        "best-of-k, k = 6": pytest.approx((320, 60)),
        "sc+prm, k = 2": pytest.approx((240, 28)),
    }
    assert {one.spent.calls for one in found.values()} == {2.0}
    assert found["cot"].completion_tokens == pytest.approx(20)
    assert found["best-of-k, k = 6"].completion_tokens == pytest.approx(120)
    # The wide run took over 4 of the base's 6 chains of 10 tokens: 8 s and two thirds of 12 s, shared out by tokens.
    wall = {name: one.spent.wall_s for name, one in found.items()}
    assert wall["self-consistency, k = 6"] == pytest.approx(16.0)
    assert wall["cot"] == pytest.approx(16.0 * 220 / 320)
    assert found["cot"].spent.wall_basis == "by tokens"


def test_where_every_chain_is_a_call_nothing_is_taken_off() -> None:
    found = sampled(wide_run(prompts=6, calls=6), base_run(), 2)
    assert found["self-consistency, k = 6"].spent.generation_tokens == pytest.approx(2 * (600 + 60))


def test_answers_by_round_by_hand() -> None:
    found = by_rounds(base_run(), "magicore", 3)
    assert list(found) == ["magicore, 1 round", "magicore, 2 rounds", "magicore, 3 rounds"]
    one = found["magicore, 1 round"]
    assert one.right == {"p": True, "q": True}
    # p: 120; q: 120 + 216 + 320. Scores: 24 and 48. Nothing was gone through after round 1.
    assert (one.spent.generation_tokens, one.spent.reward_tokens, one.spent.calls) == (776, 72, 18)
    assert one.completion_tokens == 20 + 20 + 16 + 20
    assert found["magicore, 2 rounds"] == found["magicore, 3 rounds"] == one
    only_easy = by_rounds(wide_run(), "magicore", 1)
    assert only_easy["magicore, 1 round"].right == {"p": False, "q": True}


def test_what_there_was_to_gain_by_hand() -> None:
    found = explained(base_run(), uniform_run(), wide_run(), 2)
    assert found == {
        "single": pytest.approx(5 / 12),  # p has 2 of 6 right, q 3 of 6
        "coverage_k": 0.5,  # p alone, of the first two
        "coverage_3k": 1.0,
        "coverage_kept": 0.5,  # q alone, after refining
        # right o: .5 .1 .9 .2 .5, wrong o: .6 .9 .2 .3 .4 .3 .1; wins of 35 pairs: 5 + .5 + 6.5 + 1.5 + 5
        "orm_auroc": pytest.approx(18.5 / 35),
        # right s: .9 .3 .2 .2 .3, wrong s: .2 .1 .1 .1 .4 .3 .1: 7 + 5.5 + 4.5 + 4.5 + 5.5
        "prm_auroc": pytest.approx(27 / 35),
        "hard": 0.5,
        "easy_right": 1.0,
        "hard_right": 0.0,
        "first_vote": 0.5,
        "magicore": 1.0,
        "refine_everything": 0.5,
        "oracle_router": 1.0,
        "chain_fixed": pytest.approx(1 / 3),  # of the wrong 2 of p, 2 and 3 of q the second
        "chain_broken": 1.0,  # the 1 of p
    }


def arm(right: str, tokens: float | None = None, completions: float | None = None) -> Counted:
    """Rightness as a row of ``+`` and ``-``."""
    return Counted(
        right={f"p{at}": mark == "+" for at, mark in enumerate(right)},
        spent=Spent(generation_tokens=tokens),
        completion_tokens=completions,
    )


PLAN = Headline(families=("stories", "clock"), n=10, k=2, iterations=1)
RIVALS = ("self-consistency, k = 6", "best-of-k, k = 6", "self-refine+sc")


def test_the_aim_by_hand() -> None:
    own = "magicore, 1 round"
    arms = {
        own: arm("+" * 10 + "--", 300, 120),
        RIVALS[0]: arm("+" * 2 + "-" * 8 + "--", 1000, 800),  # 8 to 0: p = 2 / 2 ** 8
        RIVALS[1]: arm("+" * 3 + "-" * 7 + "--", 600),  # 7 to 0: p = 2 / 2 ** 7, above 0.01
        RIVALS[2]: arm("+" * 12, None),
    }
    rows = aim_rows("stories", arms, own, PLAN, LUCK)
    assert [row["rival"] for row in rows] == list(RIVALS)
    first = rows[0]
    assert (first["accuracy"], first["rival_accuracy"]) == pytest.approx((10 / 12, 2 / 12))
    assert first["difference"] == pytest.approx(8 / 12)
    assert (first["only_magicore"], first["only_rival"]) == (8, 0)
    assert first["p_value"] == pytest.approx(2 / 2**8)
    assert first["difference_low"] < 8 / 12 < first["difference_high"]
    assert [row["token_ratio"] for row in rows] == [pytest.approx(0.3), pytest.approx(0.5), None]
    assert [row["completion_ratio"] for row in rows] == [pytest.approx(0.15), None, None]
    assert [row["met"] for row in rows] == [True, False, False]
    assert rows[1]["p_value"] == pytest.approx(2 / 2**7)
    worse = aim_rows("stories", {**arms, RIVALS[2]: arm("+" * 12), own: arm("-" * 12)}, own, PLAN, LUCK)
    assert worse[2]["p_value"] < 0.01
    assert not worse[2]["met"], "a shown difference the wrong way is none of the aim"


def test_costs_add_up_and_unknown_stays_unknown() -> None:
    first = Spent(generation_tokens=100, reward_tokens=5, judge_tokens=0, calls=2, wall_s=3, wall_basis="measured")
    second = Spent(generation_tokens=50, reward_tokens=None, judge_tokens=0, calls=1, wall_s=4, wall_basis="by tokens")
    both = sum_spent([first, second])
    assert both == Spent(generation_tokens=150, judge_tokens=0, calls=3, wall_s=7)
    assert both.tokens is None
    assert sum_spent([first, first]).wall_basis == "measured"


def families() -> dict[str, Family]:
    """Two of 12 problems each; SC's 8 to 0 in one, 2 to 0 in the other."""
    own = arm("+" * 10 + "--", 300, 100)
    shared = {"magicore, 1 round": own, RIVALS[1]: own, RIVALS[2]: own}
    clock = {
        name: replace(one, right={f"d{problem}": value for problem, value in one.right.items()})
        for name, one in {**shared, RIVALS[0]: arm("+" * 8 + "----", 500, 400)}.items()
    }
    stories = {**shared, RIVALS[0]: arm("++" + "-" * 10, 1000), "only here": own}
    return {"stories": Family(arms=stories, explained={"hard": 0.5}), "clock": Family(arms=clock, explained={})}


def test_the_pooled_row_by_hand() -> None:
    study = headline_study(families(), PLAN, LUCK)
    methods = study.table("methods").rows
    assert {row["method"] for row in methods if row["family"] == "all"} == {"magicore, 1 round", *RIVALS}
    sc = by(methods, family="all", method=RIVALS[0])
    assert (sc["graded"], sc["correct"], sc["generation_tokens"]) == (24, 10, 1500)
    assert (sc["only_method"], sc["only_baseline"]) == (0, 10)
    row = by(study.table("aim").rows, family="all", rival=RIVALS[0])
    assert (row["only_magicore"], row["only_rival"]) == (10, 0)
    assert row["p_value"] == pytest.approx(2 / 2**10)
    assert row["token_ratio"] == pytest.approx(600 / 1500)
    assert row["completion_ratio"] is None, "unknown in one family"
    assert by(methods, family="all", method="self-refine+sc")["completion_tokens"] == 200
    assert row["met"]
    # 2 / 2 ** 8 of stories meets the aim, 2 / 2 ** 2 of clock does not; the pooled row is none of the six
    assert study.remarks == ("1 of 6 comparisons of the aim are met, each family's alone",)
    assert {row["family"] for row in study.table("explained").rows} == {"stories", "clock"}
    alone = headline_study({"stories": families()["stories"]}, PLAN, LUCK)
    assert {row["family"] for row in alone.table("methods").rows} == {"stories"}


def by(rows: Any, **wanted: Any) -> Mapping[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def test_plans_that_cannot_be() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'stories'"):
        Headline(families=("storys",))
    with pytest.raises(InputError, match="named once each"):
        Headline(families=("clock", "clock"))
    with pytest.raises(InputError, match="at least one: got none"):
        Headline(families=())
    with pytest.raises(InputError, match="iterations is at least 1"):
        Headline(iterations=0)


def test_the_plan_is_the_trained_models_and_fresh_problems() -> None:
    plan = Headline()
    assert (plan.families, plan.n, plan.k, plan.iterations) == (("stories", "clock", "units"), 100, 16, 3)
    assert (EMBEDDED["model"], EMBEDDED["orm"], EMBEDDED["prm"]) == ("embedded",) * 3
    assert plan.seed not in (1, 2, 3, 4), "the recipe's own"


# A whole one


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the module of a model that solves a family's problems, mostly with an error."""
    folder = tmp_path_factory.mktemp("headline")
    (folder / "headline_answers.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("headline_answers", None)


SETTINGS = {"model": "scripted:headline_answers:answer", "orm": "random:1", "prm": "random:2", "prompts": "trained"}
N, K = 4, 4


def whole(folder: Path, said: list[str], **changed: Any) -> Study:
    plan = Headline(families=("stories", "clock"), n=N, k=K, iterations=1, settings=SETTINGS, **changed)
    return headline(folder / "work", plan, luck=LUCK, say=said.append)


def asked() -> list[tuple[str, str]]:
    return list(sys.modules["headline_answers"].ASKED)


@pytest.fixture(scope="module")
def study(scripted: Path) -> Study:
    return whole(scripted, [])


def test_a_whole_headline_has_every_method_of_every_family(study: Study) -> None:
    names = ["cot", f"self-consistency, k = {K}", f"self-consistency, k = {3 * K}", f"best-of-k, k = {K}"]
    names += [f"best-of-k, k = {3 * K}", f"sc+prm, k = {K}", "self-refine+sc", "mars"]
    names += ["refine everything, 1 round", "magicore, 1 round"]
    rows = study.table("methods").rows
    assert [(row["family"], row["method"]) for row in rows] == [
        (family, name) for family in ("stories", "clock", "all") for name in names
    ]
    assert {row["graded"] for row in rows} == {N, 2 * N}
    assert all(row["generation_tokens"] > 0 for row in rows)
    assert len(study.table("aim").rows) == 9
    told = by(study.table("explained").rows, family="clock")
    assert 0 < told["single"] < 1
    assert told["coverage_3k"] >= told["coverage_k"]
    assert told["magicore"] == by(rows, family="clock", method="magicore, 1 round")["accuracy"]
    assert told["with_exact_steps"] >= told["magicore"], "against scores that are random"


def test_each_row_is_what_a_run_of_its_own_would_be(study: Study) -> None:
    """Accuracy and tokens of methods that were read off other runs, against fresh runs without any store."""
    rows = study.table("methods").rows
    options: dict[str, dict[str, Any]] = {
        "cot": {"method": "cot"},
        f"self-consistency, k = {K}": {"method": "self-consistency", "k": K},
        f"self-consistency, k = {3 * K}": {"method": "self-consistency", "k": 3 * K},
        f"best-of-k, k = {3 * K}": {"method": "best-of-k", "k": 3 * K},
        f"sc+prm, k = {K}": {"method": "sc+prm", "k": K},
        "self-refine+sc": {"method": "self-refine+sc", "k": K, "iterations": 1},
        "mars": {"method": "mars"},
        "refine everything, 1 round": {"method": "magicore", "k": K, "iterations": 1, "router": "hard"},
        "magicore, 1 round": {"method": "magicore", "k": K, "iterations": 1},
    }
    for name, chosen in options.items():
        row = by(rows, family="stories", method=name)
        run = magicore.solve_batch(f"gen:stories:{N}:9:test", progress=False, **SETTINGS, **chosen)
        assert run.summary["correct"] == row["correct"], name
        shared_out = name == "cot" or name.endswith(f"k = {K}")  # by the mean length of chains, not these chains' own
        tokens = run.summary["usage"]["generation_tokens"]
        close = 0.02 if shared_out else 1e-9
        assert row["generation_tokens"] == pytest.approx(tokens, rel=close), name
        written = sum(one.usage.completion for one in used_by(run.results))
        assert row["completion_tokens"] == pytest.approx(written, rel=0.1 if shared_out else 1e-9), name


def used_by(results: Sequence[Result]) -> list[RoleUsage]:
    return [one for result in results for one in result.usage if one.role not in ("orm", "prm")]


def test_a_second_call_draws_nothing(study: Study, scripted: Path) -> None:
    drawn = asked()
    assert {role for _, role in drawn} >= {"solver", "reviewer", "refiner", "author", "meta-reviewer"}
    said: list[str] = []
    again = whole(scripted, said)
    assert asked() == drawn
    assert [table.rows for table in again.tables] == [table.rows for table in study.tables]
    assert said[0] == f"stories: magicore, 1 round, k = {K}"


def test_an_interrupted_headline_goes_on_where_it_stopped(scripted: Path, study: Study) -> None:
    plan = Headline(families=("stories",), n=N, k=K, iterations=1, settings=SETTINGS)

    def stop(said: str) -> None:
        if said == "stories: refine everything":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headline(scripted / "stopped", plan, luck=LUCK, say=stop)
    before = len(asked())
    again = headline(scripted / "stopped", plan, luck=LUCK, say=lambda text: None)
    assert {role for _, role in asked()[before:]} <= {"reviewer", "refiner"}
    alone = [row["accuracy"] for row in again.table("methods").rows]
    assert alone == [row["accuracy"] for row in study.table("methods").rows if row["family"] == "stories"]


def test_a_folder_of_another_plan_is_refused(study: Study, scripted: Path) -> None:
    with pytest.raises(InputError, match=r"holds runs of another plan \(data differ\); give another folder"):
        whole(scripted, [], seed=8)


# The script


def script(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "scripts" / "headline.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


def test_the_script_shows_and_writes_its_tables(study: Study, scripted: Path) -> None:
    pytest.importorskip("matplotlib")
    asked_for = ["work", "--families", "stories", "clock", "--n", str(N), "--k", str(K), "--iterations", "1"]
    asked_for += ["--model", SETTINGS["model"], "--orm", "random:1", "--prm", "random:2"]
    settings = {**SETTINGS, "max_tokens": 220}
    plan = Headline(families=("stories", "clock"), n=N, k=K, iterations=1, settings=settings)
    headline(scripted / "script" / "work", plan, luck=LUCK, say=lambda text: None)
    done = script(*asked_for, folder=_copied(scripted))
    assert done.returncode == 0, done.stderr
    assert "magicore, 1 round against its rivals" in done.stdout
    assert "comparisons of the aim are met" in done.stdout
    written = scripted / "script" / "work" / "headline"
    with (written / "aim.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    notes = json.loads((written / "study.json").read_text())
    assert (notes["k"], notes["settings"]["max_tokens"], notes["settings"]["prompts"]) == (K, 220, "trained")
    assert (written / "frontier_all.png").stat().st_size > 0


def _copied(folder: Path) -> Path:
    """The folder that the script runs in, with the scripted model's module."""
    place = folder / "script"
    (place / "headline_answers.py").write_text("def answer(request, index):\n    raise AssertionError('drawn anew')\n")
    return place


def test_the_script_says_what_is_wrong_in_one_sentence(tmp_path: Path) -> None:
    helped = script("--help", folder=tmp_path)
    assert helped.returncode == 0
    assert "three families, 100 problems each" in helped.stdout
    wrong = script("work", "--families", "storys", folder=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (1, "error: no generated family 'storys'; did you mean 'stories'?\n")
