"""MARS, debate, peer review, self-reflection, self-correction, Self-Refine: on scripted models, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from family import PROBLEM, Script, answer, calls, refused, reviews, solve, verdict
from magicore.errors import CapabilityError, InputError, UnknownNameError
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel, ScriptedReply
from magicore.methods import make_method
from magicore.methods.debate import Debate
from magicore.methods.mars import Mars
from magicore.methods.peer_review import PeerReview
from magicore.methods.self_correction import SelfCorrection
from magicore.methods.self_refine import SelfRefine, SelfRefineSC
from magicore.methods.self_reflection import SelfReflection


def by_round(*texts: str) -> Callable[[Request], str]:
    return lambda request: texts[request.key.round]


def by_instance(*rounds: tuple[str, ...]) -> Callable[[Request], str]:
    return lambda request: rounds[request.key.round][request.key.instance]


# MARS


def test_an_accepted_answer_stands() -> None:
    script = Script({"author": answer(72), "reviewer": verdict("right"), "meta-reviewer": verdict("right")})
    result = solve(Mars(), script)
    assert (result.answer, result.correct, result.stop, result.chain) == ("72", True, "accepted", "q/author/0/0/0")
    assert calls(result) == {"author": 1, "reviewer": 2, "meta-reviewer": 1}
    assert [(r.role, r.instance, r.decision, r.confidence, r.answer) for r in reviews(result)] == [
        ("reviewer", 0, "right", 4.0, "72"),
        ("reviewer", 1, "right", 4.0, "72"),
        ("meta-reviewer", 0, "right", 4.0, "72"),
    ]
    assert not result.warnings


def test_a_rejected_author_goes_on_in_its_own_conversation() -> None:
    meta = verdict("wrong", suggestions="count the second row")
    script = Script({"author": by_round(answer(64), answer(72)), "reviewer": verdict("wrong"), "meta-reviewer": meta})
    result = solve(Mars(), script)
    assert (result.answer, result.stop, result.chain) == ("72", "iterations", "q/author/0/1/0")
    rebuttal = script.of("author", 1)[0]
    assert rebuttal.key.parent == "q/author/0/0/0"
    first = script.of("author", 0)[0]
    assert rebuttal.messages[:-2] == first.messages
    assert rebuttal.messages[-2] == {"role": "assistant", "content": answer(64)}
    assert meta in rebuttal.messages[-1]["content"] and "strongly agree" in rebuttal.messages[-1]["content"]
    assert [len(round.chains) for round in result.rounds] == [1, 1]
    assert result.rounds[1].kept == ("q/author/0/1/0",)


def test_fresh_reviewers_see_the_latest_answer_only() -> None:
    decisions = {1: "wrong", 2: "right"}
    script = Script(
        {
            "author": by_round(answer(64), answer(70)),
            "reviewer": verdict("right"),
            "meta-reviewer": lambda request: verdict(decisions[request.key.round]),
        }
    )
    result = solve(Mars(max_rounds=3), script)
    assert (result.answer, result.stop) == ("70", "accepted")
    assert calls(result) == {"author": 2, "reviewer": 4, "meta-reviewer": 2}
    second = script.text("reviewer", 2, 1)
    assert answer(70) in second and answer(64) not in second
    assert script.of("reviewer", 2)[0].key.parent == "q/author/0/1/0"


def test_after_the_last_rejection_the_last_rebuttal_stands() -> None:
    script = Script(
        {
            "author": by_round(answer(1), answer(2), answer(3)),
            "reviewer": verdict("wrong"),
            "meta-reviewer": verdict("wrong"),
        }
    )
    result = solve(Mars(max_rounds=2), script)
    assert (result.answer, result.stop, len(result.rounds)) == ("3", "iterations", 3)


@pytest.mark.parametrize("said", ["I like it.", "Decision: Inconclusive", "Decision: [right | wrong]"])
def test_an_unreadable_meta_decision_accepts_and_is_reported(said: str) -> None:
    script = Script({"author": answer(72), "reviewer": verdict("wrong"), "meta-reviewer": said})
    result = solve(Mars(), script)
    assert result.stop == "accepted" and reviews(result)[-1].decision is None
    assert any("meta-review" in warning and "states no decision" in warning for warning in result.warnings)


def test_incorrect_rejects() -> None:
    script = Script(
        {
            "author": by_round(answer(5), answer(72)),
            "reviewer": verdict("right"),
            "meta-reviewer": "**Decision:** Incorrect",
        }
    )
    assert solve(Mars(), script).answer == "72"


def test_an_unreadable_review_is_shown_to_the_meta_reviewer_and_reported() -> None:
    replies = ("Decision: who knows", verdict("right"))
    script = Script(
        {
            "author": answer(72),
            "reviewer": lambda request: replies[request.key.instance],
            "meta-reviewer": verdict("right"),
        }
    )
    result = solve(Mars(), script)
    assert [review.decision for review in reviews(result)] == [None, "right", "right"]
    shown = script.text("meta-reviewer", 1)
    assert f"Review 1:\n{replies[0]}\n\nReview 2:\n{replies[1]}" in shown
    assert any("1 of 2 reviews" in warning for warning in result.warnings)


def test_a_failing_reviewer_costs_only_itself() -> None:
    def reviewer(request: Request) -> str:
        if request.key.instance == 0:
            raise refused()
        return verdict("right")

    script = Script({"author": answer(72), "reviewer": reviewer, "meta-reviewer": verdict("right")})
    result = solve(Mars(reviewers=3), script)
    assert result.answer == "72" and result.stop == "accepted"
    assert [review.instance for review in reviews(result)[:-1]] == [1, 2]
    assert any("1 of 3 reviews" in warning for warning in result.warnings)


def test_without_reviews_or_meta_review_the_answer_stands_and_nobody_accepted_it() -> None:
    script = Script({"author": answer(72), "reviewer": refused(), "meta-reviewer": verdict("wrong")})
    result = solve(Mars(), script)
    assert (result.answer, result.stop) == ("72", "done") and not script.of("meta-reviewer")
    script = Script({"author": answer(72), "reviewer": verdict("wrong"), "meta-reviewer": refused()})
    result = solve(Mars(), script)
    assert (result.answer, result.stop) == ("72", "done")


def test_a_failed_rebuttal_leaves_the_answer() -> None:
    def author(request: Request) -> str:
        if request.key.round:
            raise refused()
        return answer(5)

    script = Script({"author": author, "reviewer": verdict("wrong"), "meta-reviewer": verdict("wrong")})
    result = solve(Mars(), script)
    assert (result.answer, result.chain) == ("5", "q/author/0/0/0")
    assert any("rebuttal failed" in warning for warning in result.warnings)


def test_a_rebuttal_without_an_answer_is_no_answer() -> None:
    script = Script(
        {
            "author": by_round(answer(5), "I give up."),
            "reviewer": verdict("wrong"),
            "meta-reviewer": verdict("wrong"),
        }
    )
    result = solve(Mars(), script)
    assert result.answer is None and [a.chain for a in result.abstained] == ["q/author/0/1/0"]


@pytest.mark.parametrize(
    ("author", "recommended", "meta", "winner", "chain", "counts"),
    [
        # accepted: the author votes twice; 64 64 | 72 72 72
        (64, (72, 72), verdict("right", 72), "72", None, {"72": 3, "64": 2}),
        # 64 64 | 72 64 none
        (64, (72, 64), verdict("right", "none"), "64", "q/author/0/0/0", {"64": 3, "72": 1}),
        # tie, 64 64 | 72 72 (the meta-review recommends nothing): the first seen wins
        (64, (72, 72), "Decision: right", "64", "q/author/0/0/0", {"64": 2, "72": 2}),
    ],
)
def test_the_vote_of_author_reviews_and_meta_review(
    author: int, recommended: tuple[int, int], meta: str, winner: str, chain: str | None, counts: Mapping[str, int]
) -> None:
    script = Script(
        {
            "author": answer(author),
            "reviewer": lambda request: verdict("right", recommended[request.key.instance]),
            "meta-reviewer": meta,
        }
    )
    result = solve(Mars(answer="vote"), script)
    assert (result.answer, result.chain) == (winner, chain)
    assert {vote.answer: vote.count for vote in result.votes} == counts
    abstained = [one.chain for one in result.abstained]
    assert abstained == ([] if sum(counts.values()) == 5 else ["q/meta-reviewer/0/1/0"])


def test_the_vote_counts_the_rebuttal_beside_the_first_answer() -> None:
    script = Script(
        {
            "author": by_round(answer(64), answer(72)),
            "reviewer": verdict("wrong", 70),
            "meta-reviewer": verdict("wrong", 72),
        }
    )
    result = solve(Mars(answer="vote", reviewers=1), script)
    assert {vote.answer: vote.count for vote in result.votes} == {"72": 2, "64": 1, "70": 1}


def test_reviewers_see_question_and_solution_alone_and_byte_identical() -> None:
    script = Script({"author": answer(72), "reviewer": verdict("right"), "meta-reviewer": verdict("right")})
    solve(Mars(reviewers=3), script)
    prompts = [request.messages for request in script.of("reviewer")]
    assert prompts[0] == prompts[1] == prompts[2]
    assert prompts[0][-1]["content"].count(answer(72)) == 1


def test_personas_differ_in_the_reviewers_prompts_only() -> None:
    replies = {"author": answer(72), "reviewer": verdict("right"), "meta-reviewer": verdict("right")}
    plain, personas = Script(replies), Script(replies)
    solve(Mars(), plain)
    solve(Mars(personas=("conservative", "aggressive")), personas)
    for role in ("author", "meta-reviewer"):
        assert [r.messages for r in plain.of(role)] == [r.messages for r in personas.of(role)]
    before, after = plain.of("reviewer"), personas.of("reviewer")
    assert len({r.messages[-1]["content"] for r in after}) == 2
    assert [r.messages[0] for r in before] == [r.messages[0] for r in after]  # the persona comes last
    assert "conservative" in after[0].messages[-1]["content"] and "aggressive" in after[1].messages[-1]["content"]


def test_unknown_personas_and_too_many_are_refused() -> None:
    script = Script({"author": answer(72)})
    with pytest.raises(UnknownNameError, match="did you mean 'aggressive'"):
        solve(Mars(personas=("agressive",)), script)
    with pytest.raises(InputError, match="3 personas for 2 reviewers"):
        solve(Mars(personas=("aggressive",) * 3), script)


def test_confidence_from_the_probability_of_the_decision() -> None:
    said = "Decision: wrong\nConfidence: 5"
    tokens = (-0.1, math.log(0.8), -0.3, -2.0)  # Decision: | wrong | Confidence: | 5

    def reviewer(request: Request) -> ScriptedReply:
        assert request.logprobs and request.top_logprobs >= 1
        return ScriptedReply(text=said, token_logprobs=tokens)

    script = Script({"author": answer(72), "reviewer": reviewer, "meta-reviewer": verdict("right")})
    result = solve(Mars(confidence="logprob"), script)
    assert [review.confidence for review in reviews(result)[:2]] == [pytest.approx(0.8)] * 2
    assert "Review 1 (probability of its decision: 0.80):" in script.text("meta-reviewer", 1)
    assert not any(request.logprobs for request in script.of("author") + script.of("meta-reviewer"))


def test_log_probability_confidence_needs_log_probabilities() -> None:
    script = Script({"author": answer(72), "reviewer": verdict("right"), "meta-reviewer": verdict("right")})
    with pytest.raises(CapabilityError, match="log-probabilities"):
        solve(Mars(confidence="logprob"), script)


def test_each_role_and_each_reviewer_may_have_its_own_model() -> None:
    models = {
        name: ScriptedModel(lambda request, index: verdict("right"), name=name) for name in ("one", "other", "meta")
    }
    script = Script({"author": answer(72)})
    roles = {"reviewer": models["one"], "reviewer/1": models["other"], "meta-reviewer": models["meta"]}
    result = solve(Mars(reviewers=3), script, models=roles)
    spent = {(entry.role, entry.model): entry.usage.calls for entry in result.usage}
    assert spent == {
        ("author", "scripted"): 1,
        ("reviewer", "one"): 2,
        ("reviewer", "other"): 1,
        ("meta-reviewer", "meta"): 1,
    }


# Debate


def test_a_debate_ends_with_the_majority_of_the_latest_answers() -> None:
    script = Script({"solver": by_instance((answer(1), answer(2), answer(3)), (answer(3), answer(3), answer(2)))})
    result = solve(Debate(), script, problem=PROBLEM)
    assert result.answer == "3" and [(v.answer, v.count) for v in result.votes] == [("3", 2), ("2", 1)]
    assert [round.kept for round in result.rounds] == [
        tuple(f"q/solver/{agent}/{number}/0" for agent in range(3)) for number in range(2)
    ]
    second = script.of("solver", 1)[0]
    assert [turn["role"] for turn in second.messages] == ["system", "user", "assistant", "user"]
    told = second.messages[-1]["content"]
    assert f"Agent 2's solution:\n{answer(2)}\n\nAgent 3's solution:\n{answer(3)}" in told
    assert answer(1) not in told


def test_a_debate_of_three_rounds_shows_latest_answers() -> None:
    rounds = [tuple(answer(10 * number + agent) for agent in range(2)) for number in range(3)]
    script = Script({"solver": by_instance(*rounds)})
    solve(Debate(agents=2, rounds=3), script)
    told = script.text("solver", 2, 0)
    assert rounds[1][1] in told and rounds[0][1] not in told


def test_an_agent_that_fails_keeps_its_answer_or_is_left_out() -> None:
    def solver(request: Request) -> str:
        number, agent = request.key.round, request.key.instance
        if (number, agent) in ((0, 0), (1, 1)):
            raise refused()
        return answer(agent + 10 * number)

    result = solve(Debate(agents=3), Script({"solver": solver}))
    assert result.rounds[0].kept == ("q/solver/1/0/0", "q/solver/2/0/0")
    assert result.rounds[1].kept == ("q/solver/1/0/0", "q/solver/2/1/0")
    assert len(result.warnings) == 2


def test_no_first_answer_at_all_is_a_failed_result() -> None:
    result = solve(Debate(), Script({"solver": refused("overloaded")}))
    assert result.stop == "failed" and result.correct is False
    assert result.error is not None and "overloaded" in result.error.message


def test_an_agent_may_have_its_own_model_in_every_role() -> None:
    own = Script({"solver": answer(9), "reviewer": "fine\nConfidence: 7"})
    script = peer_script()
    result = solve(PeerReview(), script, models={"agent/1": ScriptedModel(own, name="own")})
    spent = {(entry.role, entry.model): entry.usage.calls for entry in result.usage}
    assert spent == {
        ("solver", "scripted"): 4,
        ("solver", "own"): 2,
        ("reviewer", "scripted"): 4,
        ("reviewer", "own"): 2,
    }
    assert {request.key.instance for request in own.asked} == {1}


def test_personas_of_agents_stand_in_their_system_message() -> None:
    plain, personas = peer_script(), peer_script()
    solve(Debate(), plain)
    solve(Debate(personas=("aggressive",)), personas)
    first, second = plain.of("solver", 0), personas.of("solver", 0)
    assert second[0].messages[0]["content"].startswith(first[0].messages[0]["content"])
    assert "aggressive" in second[0].messages[0]["content"]
    assert [r.messages for r in first[1:]] == [r.messages for r in second[1:]]


# Peer review


def peer_script() -> Script:
    def reviewer(request: Request) -> str:
        return f"review by {request.key.instance} of {request.indices[0]}\nConfidence: 9/10"

    return Script(
        {
            "solver": by_instance((answer(1), answer(2), answer(3)), (answer(2), answer(2), answer(3))),
            "reviewer": reviewer,
        }
    )


def test_peer_review_each_reviews_every_other_and_revises() -> None:
    script = peer_script()
    result = solve(PeerReview(), script)
    assert result.answer == "2" and calls(result) == {"solver": 6, "reviewer": 6}
    assert [(r.instance, r.chain, r.confidence) for r in reviews(result)] == [
        (one, f"q/solver/{other}/0/0", 9.0) for one in range(3) for other in range(3) if one != other
    ]
    revision = script.of("solver", 1)[0].messages
    assert [turn["role"] for turn in revision] == ["system", "user", *["assistant", "user"] * 3]
    assert [turn["content"].split("\n")[0] for turn in revision if turn["role"] == "assistant"][1:] == [
        "review by 0 of 1",
        "review by 0 of 2",
    ]
    told = revision[-1]["content"]
    assert f"Agent 2's solution:\n{answer(2)}" in told
    assert "Agent 2's review of your solution:\nreview by 1 of 0\nConfidence: 9/10" in told
    assert "review by 2 of 0" in told and "of 1" not in told
    asked = script.of("reviewer")[0].messages[-1]["content"]
    assert answer(2) in asked and "whole number from 1 to 10" in asked


@pytest.mark.parametrize(
    ("options", "solutions", "received", "rating"),
    [
        ({"confidence": "none"}, True, True, False),
        ({"exchange": "reviews"}, False, True, True),
        ({"exchange": "both"}, True, True, True),
    ],
)
def test_variants_of_peer_review(options: dict[str, Any], solutions: bool, received: bool, rating: bool) -> None:
    script = peer_script()
    solve(PeerReview(**options), script)
    told = script.text("solver", 1, 0)
    assert ("Agent 2's solution" in told) is solutions
    assert ("Agent 2's review" in told) is received
    assert ("from 1 to 10" in script.of("reviewer")[0].messages[-1]["content"]) is rating


def test_peer_review_of_solutions_only_is_a_debate() -> None:
    review, debate = peer_script(), peer_script()
    first = solve(PeerReview(exchange="solutions"), review)
    second = solve(Debate(), debate)
    assert [(r.key, r.messages) for r in review.of("solver")] == [(r.key, r.messages) for r in debate.of("solver")]
    assert not review.of("reviewer") and first.votes == second.votes and first.rounds == second.rounds


def test_peer_review_of_two_rounds_reviews_the_revisions() -> None:
    rounds = [tuple(answer(10 * number + agent) for agent in range(2)) for number in range(3)]
    script = Script({"solver": by_instance(*rounds), "reviewer": "fine\nConfidence: 7"})
    result = solve(PeerReview(agents=2, rounds=2), script)
    assert calls(result) == {"solver": 6, "reviewer": 4}
    assert [r.chain for r in result.rounds[2].reviews] == ["q/solver/1/1/0", "q/solver/0/1/0"]
    assert rounds[1][1] in script.text("reviewer", 2, 0)


def test_a_failing_review_is_missing_and_nothing_else() -> None:
    def reviewer(request: Request) -> str:
        if request.key.instance == 1:
            raise refused()
        return "fine\nConfidence: 7"

    script = Script({"solver": by_instance((answer(1), answer(2)), (answer(1), answer(1))), "reviewer": reviewer})
    result = solve(PeerReview(agents=2), script)
    assert result.answer == "1" and [r.instance for r in reviews(result)] == [0]
    assert "review of your solution" not in script.text("solver", 1, 0)
    assert "review of your solution" in script.text("solver", 1, 1)


# Self-reflection, self-correction, Self-Refine


def test_self_reflection_counts_the_revised_answer() -> None:
    script = Script({"solver": by_round(answer(64), answer(72))})
    result = solve(SelfReflection(), script)
    assert (result.answer, result.chain, calls(result)) == ("72", "q/solver/0/1/0", {"solver": 2})
    assert [turn["role"] for turn in script.of("solver", 1)[0].messages] == ["system", "user", "assistant", "user"]


def test_a_failed_reflection_leaves_the_first_answer() -> None:
    def solver(request: Request) -> str:
        if request.key.round:
            raise refused()
        return answer(64)

    result = solve(SelfReflection(), Script({"solver": solver}))
    assert result.answer == "64" and any("reflections failed" in warning for warning in result.warnings)


def test_self_correction_answers_criticises_and_corrects() -> None:
    script = Script({"solver": by_round(answer(64), answer(72)), "reviewer": "The sum is off."})
    result = solve(SelfCorrection(), script)
    assert result.answer == "72" and calls(result) == {"solver": 2, "reviewer": 1}
    assert [r.text for r in reviews(result)] == ["The sum is off."]
    texts = [turn["content"] for turn in script.of("solver", 1)[0].messages]
    assert texts[2] == answer(64) and texts[4] == "The sum is off."


def test_self_correction_of_several_agents_takes_the_majority() -> None:
    script = Script(
        {
            "solver": by_instance((answer(1), answer(1), answer(1)), (answer(2), answer(1), answer(2))),
            "reviewer": "Hm.",
        }
    )
    assert solve(SelfCorrection(agents=3), script).answer == "2"


def test_self_refine_reviews_without_scores() -> None:
    def refiner(request: Request) -> str:
        return answer({1: 70, 2: 72}[request.key.round])

    script = Script({"solver": answer(64), "reviewer": "Step 1 is wrong.", "refiner": refiner})
    result = solve(SelfRefine(iterations=2), script)
    assert result.answer == "72" and calls(result) == {"solver": 1, "reviewer": 2, "refiner": 2}
    assert [round.kept for round in result.rounds] == [("q/solver/0/0/0",), ("q/refiner/0/1/0",), ("q/refiner/0/2/0",)]
    for request in script.of("reviewer") + script.of("refiner"):
        assert not any("score" in turn["content"].lower() for turn in request.messages)
    assert "Step 1 is wrong." in script.text("refiner", 1) and answer(64) in script.text("refiner", 1)
    assert answer(70) in script.text("reviewer", 2)


def test_self_refine_with_self_consistency_keeps_what_cannot_be_refined() -> None:
    def refiner(request: Request) -> str:
        if request.indices == (1,):
            raise refused()
        return answer(72)

    script = Script({"solver": [answer(1), answer(2), answer(3)], "reviewer": "no", "refiner": refiner})
    result = solve(SelfRefineSC(k=3, iterations=1), script)
    assert result.answer == "72" and [(v.answer, v.count) for v in result.votes] == [("72", 2), ("2", 1)]
    assert result.rounds[1].kept == ("q/refiner/0/1/0", "q/solver/0/0/1", "q/refiner/0/1/2")


def test_no_iterations_is_self_consistency() -> None:
    script = Script({"solver": [answer(1), answer(2), answer(2)]})
    assert solve(SelfRefineSC(k=3, iterations=0), script).answer == "2"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("mars", {"reviewers": 0}, "reviewers must be at least 1"),
        ("mars", {"max_rounds": "0"}, "max_rounds must be at least 1"),
        ("mars", {"answer": "all"}, "answer is one of author, vote"),
        ("mars", {"personas": 3}, "personas takes names"),
        ("debate", {"agents": 0}, "agents must be at least 1"),
        ("peer-review", {"exchange": "letters"}, "exchange is one of"),
        ("self-refine", {"iterations": -1}, "iterations must be at least 0"),
        ("magicore", {"step_scores": "oracle"}, "set iterations=1"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_method(name, **options)


def test_names_may_come_from_a_command_line() -> None:
    method = make_method("mars", personas="conservative, aggressive", reviewers="3")
    assert method == Mars(personas=("conservative", "aggressive"), reviewers=3)
