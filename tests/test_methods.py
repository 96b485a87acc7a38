"""The methods, run end to end on scripted models with scores worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import magicore
from family import CALIBRATION, EASY, EASY_O, EASY_S, HARD, HARD_O, HARD_S, TableORM, TablePRM, chain_text
from magicore import Problem, Run
from magicore.errors import CapabilityError, InputError, UnknownNameError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.methods import make_method, method_names
from magicore.methods.magicore import Magicore
from magicore.roles.reviewer import shown_solution
from magicore.types import Chain, ScoredChain
from reward_models.steps import split_steps


def by_role(solver: Sequence[str], refiner: Callable[[int], str] | None = None) -> Callable[[Request, int], str]:
    """The solver's i-th sample is solver[i]; the reviewer says which parent it read; the refiner goes by its parent."""

    def script(request: Request, index: int) -> str:
        key = request.key
        if key.role == "solver":
            return solver[index]
        parent = int((key.parent or "0").split("/")[-1])
        if key.role == "reviewer":
            return f"feedback on chain {parent}"
        assert refiner is not None, f"unexpected call of {key.role}"
        return refiner(parent)

    return script


def solve(
    solver: Sequence[str],
    o: Mapping[str, float],
    s: Mapping[str, Sequence[float]],
    refiner: Callable[[int], str] | None = None,
    **settings: Any,
) -> Run:
    problem = Problem(id="q", question="How many?", kind="number", answer=settings.pop("gold", "72"))
    settings = {"k": len(solver), **settings}
    return magicore.solve_batch(
        [problem], model=ScriptedModel(by_role(solver, refiner)), orm=TableORM(o), prm=TablePRM(s), **settings
    )


@pytest.fixture
def fixed(tmp_path: Any) -> str:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({**CALIBRATION, "version": 1}))
    return str(path)


def test_an_easy_question_is_answered_by_weighted_self_consistency(fixed: str) -> None:
    result = solve(EASY, EASY_O, EASY_S, method="magicore", calibration=fixed).results[0]
    assert result.answer == "72" and result.correct is True and result.stop == "done"
    assert result.verdict is not None and result.verdict.easy
    assert result.verdict.z == pytest.approx(1.6766, abs=5e-5)
    assert result.verdict.confidence_orm == pytest.approx(0.8367, abs=5e-5)
    assert result.verdict.confidence_prm == pytest.approx(0.8929, abs=5e-5)
    assert [(v.answer, v.count) for v in result.votes] == [("72", 3), ("36", 1)]
    assert [v.weight for v in result.votes] == pytest.approx([5.0119, 0.44], abs=5e-5)
    assert [a.chain for a in result.abstained] == ["q/solver/0/0/4"]
    assert len(result.rounds) == 1


def test_a_hard_question_is_refined_and_the_k_best_by_o_are_kept(fixed: str) -> None:
    refined = [chain_text(f"r{i}", "The final answer is 72.") for i in range(5)]
    o = {**HARD_O, **dict(zip(refined, (0.29, 0.95, 0.10, 0.96, 0.27), strict=True))}
    s = {**HARD_S, **{text: [0.9, 0.9] for text in refined}}
    run = solve(HARD, o, s, refined.__getitem__, method="magicore", iterations=2, calibration=fixed)
    result = run.results[0]
    assert result.verdict is not None and not result.verdict.easy
    first, second = result.rounds
    assert [scored.chain.parent for scored in second.chains] == [f"q/solver/0/0/{i}" for i in range(5)]
    assert [review.text for review in second.reviews] == [f"feedback on chain {i}" for i in range(5)]
    # o in order: .30 .28 .26 .22 .25 | .29 .95 .10 .96 .27 -> the five best are .96 .95 .30 .29 .28
    new = [scored.chain.id for scored in second.chains]
    assert second.kept == ("q/solver/0/0/0", "q/solver/0/0/1", new[0], new[1], new[3])
    assert second.verdict is not None and second.verdict.easy and result.stop == "done"
    assert result.answer == "72"
    # S of the kept: 5 -> .30 + .2; 7 -> .28 + .3; 72 -> (.29 + .95 + .96) + 3 * .81
    assert {v.answer: v.weight for v in result.votes} == pytest.approx({"72": 4.63, "7": 0.58, "5": 0.5})
    assert first.kept == tuple(f"q/solver/0/0/{i}" for i in range(5))


def test_rounds_end_after_the_iterations_given(fixed: str) -> None:
    settings = {"method": "magicore", "router": "hard", "iterations": 2, "calibration": fixed}
    run = solve(HARD, HARD_O, HARD_S, HARD.__getitem__, **settings)
    result = run.results[0]
    assert [round.number for round in result.rounds] == [0, 1, 2] and result.stop == "iterations"
    roles = {entry.role: entry.usage.calls for entry in result.usage}
    assert roles["reviewer"] == 10 and roles["refiner"] == 10


def test_a_kept_chain_is_reviewed_again_in_the_next_round(fixed: str) -> None:
    calls: list[tuple[str, int, str | None]] = []

    def script(request: Request, index: int) -> str:
        calls.append((request.key.role, request.key.round, request.key.parent))
        return by_role(HARD, HARD.__getitem__)(request, index)

    problem = Problem(id="q", question="How many?", kind="number")
    magicore.solve_batch(
        [problem],
        model=ScriptedModel(script),
        orm=TableORM(HARD_O),
        prm=TablePRM(HARD_S),
        k=5,
        iterations=2,
        router="hard",
        calibration=fixed,
    )
    reviewed = [(round, parent) for role, round, parent in calls if role == "reviewer"]
    assert (1, "q/solver/0/0/0") in reviewed and (2, "q/solver/0/0/0") in reviewed


@pytest.mark.parametrize(
    ("method", "answer"),
    [("cot", "5"), ("self-consistency", "5"), ("weighted-self-consistency", "5"), ("best-of-k", "5"), ("sc+prm", "5")],
)
def test_aggregations_answer_from_the_same_chains(method: str, answer: str) -> None:
    settings = {} if method == "cot" else {"k": 5}
    problem = Problem(id="q", question="How many?", kind="number", answer="5")
    run = magicore.solve_batch(
        [problem],
        model=ScriptedModel(by_role(HARD)),
        orm=TableORM(HARD_O),
        prm=TablePRM(HARD_S),
        method=method,
        **settings,
    )
    assert run.results[0].answer == answer and run.results[0].correct is True


def test_best_of_k_takes_the_largest_o() -> None:
    o = {**HARD_O, HARD[3]: 0.99}
    assert solve(HARD, o, HARD_S, method="best-of-k").results[0].answer == "11"


def test_no_answer_at_all_is_a_result_without_an_answer(fixed: str) -> None:
    texts = ["I cannot tell.", "No idea."]
    run = solve(
        texts,
        dict.fromkeys(texts, 0.5),
        {text: [0.5] * len(split_steps(text)) for text in texts},
        lambda parent: texts[parent],
        method="magicore",
        iterations=1,
        calibration=fixed,
    )
    result = run.results[0]
    assert result.answer is None and result.correct is False and len(result.abstained) == 2
    assert result.verdict is not None and not result.verdict.easy


def test_a_question_alone_is_calibrated_on_its_own_chains_with_a_warning() -> None:
    result = solve(EASY, EASY_O, EASY_S, method="magicore").results[0]
    assert any("own chains" in warning for warning in result.warnings)


def scored(index: int, o: float | None, s: float | None) -> ScoredChain:
    chain = Chain(id=f"c{index}", problem="q", role="solver", round=0, index=index, text="", stop="stop")
    return ScoredChain(chain=chain, o=o, s=s)


def test_selection_puts_missing_scores_last_and_breaks_ties_by_order() -> None:
    pool = [scored(0, None, 0.9), scored(1, 0.5, None), scored(2, 0.5, 0.1), scored(3, 0.7, 0.2)]
    method = make_method("magicore", k=2)
    assert isinstance(method, Magicore)
    assert [c.chain.id for c in method.selected(pool[:2], pool[2:], k=2)] == ["c1", "c3"]
    by_s = make_method("magicore", k=2, select_by="S")
    assert isinstance(by_s, Magicore)
    assert [c.chain.id for c in by_s.selected(pool[:2], pool[2:], k=3)] == ["c0", "c2", "c3"]
    everything = make_method("magicore", select="all")
    assert isinstance(everything, Magicore)
    assert len(everything.selected(pool[:2], pool[2:], k=2)) == 4


def test_the_reviewer_sees_each_step_with_its_score_as_n_of_ten() -> None:
    steps = split_steps("Step 1: a\nStep 2: b\nStep 3: c")
    assert shown_solution(steps, [0.949, 0.05, None]) == (
        "Step 1 (score 9/10): a\nStep 2 (score 1/10): b\nStep 3 (no score): c"
    )
    assert shown_solution(steps, None) == "Step 1: a\nStep 2: b\nStep 3: c"


@pytest.mark.parametrize("name", ["random:rate=0.5", "easy", "hard", "condition-1", "condition-2", "oracle"])
def test_every_router_by_name(name: str, fixed: str) -> None:
    run = solve(
        EASY, EASY_O, EASY_S, lambda i: EASY[i], method="magicore", router=name, iterations=1, calibration=fixed
    )
    verdict = run.results[0].verdict
    assert verdict is not None and verdict.router == name.partition(":")[0]
    assert verdict.easy == (name != "hard" if not name.startswith("random") else verdict.easy)


@pytest.mark.parametrize(
    ("router", "reply", "easy"), [("self-verification", "Yes.", True), ("stated-confidence", "5", False)]
)
def test_routers_that_ask_the_model(router: str, reply: str, easy: bool, fixed: str) -> None:
    def script(request: Request, index: int) -> str:
        return (
            reply
            if request.key.role in ("verifier", "confidence")
            else by_role(EASY, lambda i: EASY[i])(request, index)
        )

    run = magicore.solve_batch(
        [Problem(id="q", question="How many?", kind="number")],
        model=ScriptedModel(script),
        orm=TableORM(EASY_O),
        prm=TablePRM(EASY_S),
        k=5,
        iterations=1,
        router=router,
        calibration=fixed,
    )
    verdict = run.results[0].verdict
    assert verdict is not None and verdict.easy is easy


def test_joint_review_and_refinement_in_one_call(fixed: str) -> None:
    improved = chain_text("better", "The final answer is 72.")
    o, s = {**HARD_O, improved: 0.9}, {**HARD_S, improved: [0.9, 0.9]}

    def script(request: Request, index: int) -> str:
        if request.key.role == "joint":
            return f"Step 1 is wrong.\n\nImproved solution:\n{improved}"
        return by_role(HARD)(request, index)

    run = magicore.solve_batch(
        [Problem(id="q", question="How many?", kind="number", answer="72")],
        model=ScriptedModel(script),
        orm=TableORM(o),
        prm=TablePRM(s),
        k=5,
        iterations=1,
        review="joint",
        calibration=fixed,
    )
    result = run.results[0]
    assert result.correct is True and {r.text for r in result.rounds[1].reviews} == {"Step 1 is wrong."}


def test_a_method_without_its_reward_models_is_refused_before_anything_is_spent() -> None:
    def script(request: Request, index: int) -> str:
        raise AssertionError("no call may be made")

    with pytest.raises(CapabilityError, match="--orm NAME and --prm NAME"):
        magicore.solve_batch(["What is 1 + 1?"], model=ScriptedModel(script), method="magicore", k=2)


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"k": 0}, InputError, "k must be at least 1"),
        ({"k": "many"}, InputError, "k takes int"),
        ({"iteration": 1}, UnknownNameError, "did you mean 'iterations'"),
        ({"review": "twice"}, InputError, "review is one of"),
        ({"router": "random:rate"}, InputError, "name=number"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        make_method("magicore", **options)


def test_unknown_methods_suggest_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'magicore'"):
        make_method("magicor")
    assert "magicore" in method_names()
