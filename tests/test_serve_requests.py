"""What the gateway makes of requests, and of results: without a server."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore.errors import InputError
from magicore.llms.base import Message, messages
from magicore.llms.identity import sibling_seed
from magicore.prompts import load_prompts
from magicore.runtime.budget import Budget
from magicore.types import (
    Chain,
    ClassVotes,
    Failure,
    Result,
    ResultStop,
    RoleUsage,
    Round,
    ScoredChain,
    StopReason,
    Usage,
)

pytest.importorskip("fastapi")
pydantic = pytest.importorskip("pydantic")

from magicore.serve.answers import content_of, cost_body, spent_on, usage_body
from magicore.serve.choosing import check_defaults, choose, served, split_name
from magicore.serve.conversation import check_turns, conversation, problem_of, shown
from magicore.serve.failures import Refusal, failed_result, failure
from magicore.serve.wire import ASKING_NOTHING, ChatRequest
from magicore.store.calibration import calibrate

BOTH = frozenset({"orm", "prm"})


def chosen(name: str, given: dict[str, Any] | None = None, **more: Any) -> Any:
    return choose(name, given or {}, **({"defaults": {}, "rewards": BOTH, "most": 1000} | more))


def test_a_model_s_name_is_a_method_with_options() -> None:
    assert split_name("mars") == ("mars", {})
    assert split_name("weighted-self-consistency:k=8;weights=o") == (
        "weighted-self-consistency",
        {"k": "8", "weights": "o"},
    )
    made = chosen("magicore:k=8,router=random:rate=0.3", {"iterations": 1})
    assert (made.k, made.iterations, made.router.name) == (8, 1, "random")


def test_options_of_the_request_go_over_the_name_s_and_those_over_the_server_s() -> None:
    defaults = {"k": 3, "iterations": 2}
    assert chosen("self-consistency", defaults=defaults).k == 3
    assert chosen("self-consistency:k=4", defaults=defaults).k == 4
    assert chosen("self-consistency:k=4", {"k": 5}, defaults=defaults).k == 5


@pytest.mark.parametrize(
    ("name", "given", "status", "said"),
    [
        ("magicoer", {}, 404, "did you mean 'magicore'"),
        ("gpt-4o", {}, 404, "models are methods: best-of-k, cot"),
        ("mars:k=3", {}, 400, "no option 'k'"),
        ("self-consistency:8", {}, 400, "self-consistency:name=value"),
        ("self-consistency", {"k": 2.5}, 400, "k takes int, not 2.5"),
        ("self-consistency", {"k": [3]}, 400, "k takes int"),
        ("self-consistency", {"k": math.inf}, 400, "k takes int"),
        ("self-consistency", {"k": None}, 400, "k takes int"),
        ("self-consistency", {"k": 0}, 400, "k must be at least 1"),
        ("self-consistency", {"k": 10**9}, 400, "1,000,000,000 completions"),
        ("magicore", {"router": {"easy": 1}}, 400, "router is a router"),
        ("magicore:router=oracle", {}, 400, "gold answer"),
        ("magicore", {"step_scores": "oracle", "iterations": 1}, 400, "labelled solutions"),
        ("magicore:k=400", {}, 400, "2,800 completions"),
    ],
)
def test_what_cannot_be_run_is_refused(name: str, given: dict[str, Any], status: int, said: str) -> None:
    with pytest.raises(Refusal, match=said) as caught:
        chosen(name, given)
    assert caught.value.status == status


def test_methods_without_their_reward_models_are_not_served() -> None:
    assert "magicore" in served({}, BOTH) and "sc+prm" in served({}, {"prm"})
    alone = served({}, ())
    assert "magicore" not in alone and "best-of-k" not in alone and {"cot", "mars", "self-consistency"} <= set(alone)
    with pytest.raises(Refusal, match="needs an orm and a prm model") as caught:
        chosen("magicore", rewards=())
    assert caught.value.status == 404


def test_the_server_s_own_options_are_checked_when_it_starts() -> None:
    check_defaults({"k": 8, "router": "hard"})
    with pytest.raises(InputError, match="did you mean 'iterations'"):
        check_defaults({"iteration": 3})
    with pytest.raises(InputError, match="k takes int"):
        check_defaults({"k": "eight"})


TURNS = messages(("system", "Be brief."), ("user", "What is 2 + 2?"), ("assistant", "4."), ("user", "And 3 + 3?"))


def test_the_solver_is_sent_the_messages_unchanged() -> None:
    prompts = conversation(load_prompts("raw"), TURNS)
    assert prompts.messages("solver", "number", question="x") == TURNS
    assert prompts.messages("author", "number", question="x") == TURNS
    [first, *rest] = prompts.messages("solver", "number", persona="You are careful.", question="x")
    assert first == {"role": "system", "content": "Be brief.\n\nYou are careful."} and tuple(rest) == TURNS[1:]
    alone = conversation(load_prompts("raw"), TURNS[1:2])
    assert alone.messages("solver", "number", persona="P") == (Message(role="system", content="P"), TURNS[1])
    review = prompts.messages("reviewer", "number", question="Q?", solution="S")
    assert review == load_prompts("raw").messages("reviewer", "number", question="Q?", solution="S")


def test_the_question_is_the_message_or_the_whole_conversation() -> None:
    assert shown(TURNS[1:2]) == "What is 2 + 2?"
    problem = problem_of(TURNS, "p")
    assert problem.question == ("System: Be brief.\n\nUser: What is 2 + 2?\n\nAssistant: 4.\n\nUser: And 3 + 3?")
    assert problem_of(TURNS[1:2], "p").kind == "number"
    assert problem_of(TURNS, "p", kind="math", question="Q").question == "Q"
    listed = problem_of(messages(("user", "Which of the following is even? (A) 3 (B) 4")), "p")
    assert (listed.kind, listed.options) == ("choice", ("3", "4"))
    assert problem_of(messages(("user", "Which?")), "p", choices=["a", "b", "c"]).options == ("a", "b", "c")


def test_a_conversation_ends_with_a_question() -> None:
    check_turns(TURNS)
    with pytest.raises(InputError, match="the last message must be the user's; this is the assistant's"):
        check_turns(TURNS[:3])
    with pytest.raises(InputError, match="empty"):
        check_turns(messages(("user", "  ")))


def request(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "cot", "messages": [{"role": "user", "content": "hi"}], **fields})


@pytest.mark.parametrize("name", sorted(ASKING_NOTHING))
def test_a_field_that_is_not_supported_is_refused_and_its_neutral_values_pass(name: str) -> None:
    for neutral in (None, *ASKING_NOTHING[name]):
        assert request(**{name: neutral}).model == "cot"
    with pytest.raises(pydantic.ValidationError, match=f"{name} is not supported here"):
        request(**{name: {"something": 1}})


@pytest.mark.parametrize(
    "fields",
    [
        {"nonsense": 1},
        {"temperature": "0.5"},
        {"temperature": math.nan},
        {"temperature": 2.1},
        {"top_p": 0},
        {"n": 0},
        {"n": True},
        {"max_tokens": 0},
        {"max_tokens": 5, "max_completion_tokens": 6},
        {"stream_options": {"include_usage": True}},
        {"stop": [1]},
        {"seed": 2**63},
        {"messages": []},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": "\ud800"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": [{"role": "user", "content": "x", "name": "Bob"}]},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]}]},
        {"magicore": {"kind": "poem"}},
        {"magicore": {"budget": {"tokens": 0}}},
        {"magicore": {"budget": {"pages": 1}}},
    ],
)
def test_a_request_with_a_wrong_field_is_none(fields: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        request(**fields)


def test_what_clients_send_by_habit_passes() -> None:
    found = request(
        user="me",
        metadata={"a": "b"},
        stop="END",
        max_completion_tokens=7,
        magicore={"kind": "number", "k": 4, "options": {"weights": "o"}},
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c", "refusal": None, "tool_calls": None, "reasoning_content": "hm"},
            {"role": "user", "content": "d"},
        ],
    )
    assert (found.stops, found.limit) == (("END",), 7)
    assert [message.text for message in found.messages] == ["a\nb", "c", "d"]
    assert found.magicore is not None and found.magicore.method_options == {"k": 4, "weights": "o"}


def chain(index: int, *, stop: StopReason = "stop", o: float | None = None, s: float | None = None) -> ScoredChain:
    own = Chain(
        id=f"p/solver/0/0/{index}", problem="p", role="solver", round=0, index=index, text=f" text {index}\n",
        stop=stop, thinking="hm" if index == 1 else None,
    )  # fmt: skip
    return ScoredChain(chain=own, o=o, s=s)


def result(*chains: ScoredChain, stop: ResultStop = "done", **fields: Any) -> Result:
    rounds = (Round(number=0, chains=chains, kept=tuple(one.chain.id for one in chains)),) if chains else ()
    return Result(id="p", kind="number", method="m", rounds=rounds, stop=stop, **fields)


@pytest.mark.parametrize(
    ("chain_stop", "result_stop", "finish"),
    [
        ("stop", "done", "stop"),
        ("stop", "accepted", "stop"),
        ("stop", "iterations", "stop"),
        ("length", "done", "length"),
        ("filter", "done", "content_filter"),
        ("filter", "budget", "content_filter"),
        ("error", "done", "length"),
        ("stop", "budget", "length"),
    ],
)
def test_the_content_is_the_chosen_chain_verbatim_and_says_why_it_ended(
    chain_stop: StopReason, result_stop: ResultStop, finish: str
) -> None:
    found = content_of(
        result(chain(0), chain(1, stop=chain_stop), stop=result_stop, chain="p/solver/0/0/1", answer="3")
    )
    assert (found.text, found.finish, found.thinking, found.note) == (" text 1\n", finish, "hm", None)


def test_without_an_answer_the_best_chain_is_shown_and_that_is_said() -> None:
    cut, low, high = chain(0, stop="length", o=0.9, s=0.9), chain(1, o=0.2, s=0.3), chain(2, o=0.5, s=0.3)
    found = content_of(result(cut, low, high))
    assert (found.chain, found.finish) == (high.chain.id, "stop")
    assert found.note is not None and "no chain states an answer" in found.note
    assert content_of(result(cut)).finish == "length"
    assert content_of(result(chain(0), chain(1))).chain == "p/solver/0/0/0"
    with pytest.raises(ValueError, match="no chain"):
        content_of(result())


def test_an_answer_that_only_reviewers_recommend_is_shown_alone() -> None:
    found = content_of(
        result(chain(0), answer="4", answer_text="$4$", votes=(ClassVotes(answer="4", count=2, weight=2),))
    )
    assert (found.text, found.chain) == ("$4$", None)


def test_usage_has_its_parts_and_what_was_in_the_store_is_told_apart() -> None:
    solver = Usage(prompt=10, completion=40, reasoning=5, calls=2, cached=4)
    judge, orm = Usage(prompt=7, completion=3, calls=1), Usage(prompt=99, calls=4)
    parts = (("solver", solver), ("judge", judge), ("orm", orm))
    one = result(chain(0), usage=tuple(RoleUsage(role=role, model="m", usage=usage) for role, usage in parts))
    two = result(chain(0), usage=(RoleUsage(role="solver", model="m", usage=solver),))
    paid = Usage(prompt=17, completion=43, reasoning=5, calls=3, cached=4)
    spent = spent_on([one, two], paid=paid, unreadable=Usage(prompt=1, completion=2), lost=3)
    assert usage_body(spent.models) == {
        "prompt_tokens": 28,
        "completion_tokens": 85,
        "total_tokens": 113,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    told = cost_body(spent, method="m", seed=3)
    assert told["reused"] == {"prompt": 10, "completion": 40, "reasoning": 5, "calls": 2, "cached": 4}
    assert (told["calls"], told["reward_tokens"], told["judge_tokens"], told["lost_replies"]) == (5, 99, 10, 3)
    assert [row["role"] for row in told["usage"]] == ["solver", "judge", "orm"]


@pytest.mark.parametrize(
    ("name", "message", "status", "code"),
    [
        ("AuthenticationFailed", "x", 502, "upstream_authentication_failed"),
        ("BadReply", "x", 502, "upstream_bad_reply"),
        ("ConnectionFailed", "x", 503, "upstream_unavailable"),
        ("TimedOut", "x", 504, "upstream_timeout"),
        ("RateLimited", "x", 429, "rate_limit_exceeded"),
        ("ContextExceeded", "x", 400, "context_length_exceeded"),
        ("PromptFiltered", "x", 400, "content_filter"),
        ("RequestRefused", "u refused the request with status 400 (top_p)", 400, "upstream_refused"),
        ("RequestRefused", "u knows no model 'm'", 502, "upstream_refused"),
        ("LanguageModelError", "x", 502, "upstream_error"),
        ("InputError", "x", 400, "invalid_value"),
        ("ZeroDivisionError", "x", 500, "internal_error"),
    ],
)
def test_failures_have_the_status_that_clients_know(name: str, message: str, status: int, code: str) -> None:
    found = failure(name, message)
    assert (found.status, found.code) == (status, code)
    assert set(found.body["error"]) == {"message", "type", "param", "code"}
    assert ("retry-after" in found.headers) == (found.retry_after is not None)


def test_a_result_without_anything_is_a_failure() -> None:
    def found(stop: ResultStop, *warnings: str, error: Failure | None = None) -> tuple[int, str] | None:
        refusal = failed_result(result(stop=stop, warnings=warnings, error=error))
        return None if refusal is None else (refusal.status, refusal.code)

    assert found("failed", error=Failure(type="TimedOut", message="x")) == (504, "upstream_timeout")
    assert found("failed", error=Failure(type="StepCountError", message="x")) == (502, "reward_model_failed")
    assert found("budget", "m: the budget problem.tokens = 5 is used up") == (400, "budget_exceeded")
    assert found("budget", "m: the budget run.tokens = 5 is used up") == (429, "insufficient_quota")
    assert found("budget", "m: interrupted: no further call is made") == (503, "server_stopping")
    assert failed_result(result(chain(0), stop="budget")) is None


def test_the_first_answer_has_the_request_s_seed_and_the_others_their_own() -> None:
    seeds = {sibling_seed(7, index) for index in range(50)}
    assert len(seeds) == 50 and sibling_seed(7, 0) == 7 and all(0 <= seed < 2**31 for seed in seeds)
    assert sibling_seed(7, 1) == sibling_seed(7, 1) != sibling_seed(8, 1)


def test_several_problems_may_share_one_account() -> None:
    budget = Budget({"problem.tokens": 100, "problem.seconds": 9})
    assert budget.account() is not budget.account()
    shared = budget.shared({"tokens": 500, "calls": 3})
    assert shared.account() is shared.account()
    assert shared.account().limits == {"tokens": 100, "calls": 3, "seconds": 9}
    assert budget.shared({}).account().limits == {"tokens": 100, "seconds": 9}
    with pytest.raises(InputError, match="money"):
        budget.shared({"money": 1})
    with pytest.raises(InputError, match="no budget"):
        budget.shared({"pages": 1})


def test_a_calibration_is_made_from_any_run_with_both_reward_models(tmp_path: Path) -> None:
    questions = [{"id": str(i), "question": f"What is {i} plus {i + 2}?"} for i in range(4)]
    settings: dict[str, Any] = {"model": "scripted", "orm": "random:1", "prm": "arithmetic", "k": 3, "progress": False}
    routed = magicore.solve_batch(questions, method="magicore", iterations=0, out=tmp_path / "a", **settings)
    stats, path = calibrate(tmp_path / "a")
    assert stats == routed.stats and path == tmp_path / "a" / "calibration.json"
    magicore.solve_batch(questions, method="weighted-self-consistency", out=tmp_path / "b", **settings)
    again, path = calibrate(tmp_path / "b", tmp_path / "saved.json")
    assert (again.mu, again.sigma, again.n) == (stats.mu, stats.sigma, 12)
    assert json.loads(path.read_text())["population"] == "batch" and not (tmp_path / "b" / "calibration.json").exists()
    single = magicore.solve_batch(
        questions[:1], method="magicore", iterations=0, calibration=str(path), out=tmp_path / "c", **settings
    )
    assert single.stats is not None and single.stats.mu == stats.mu
    assert not any("calibrated on this problem" in warning for warning in single.results[0].warnings)
    with pytest.raises(InputError, match="give --out FILE"):
        calibrate(tmp_path / "c")
    with pytest.raises(InputError, match="finished run"):
        calibrate(tmp_path)
