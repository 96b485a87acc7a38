"""What holds for every method and variant: it ends, books every token, keeps order, repeats, and takes failures."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest

import magicore
from fake_servers import Answer, Call, FakeServer, serving
from family import refused
from magicore import Problem, Run
from magicore.llms.base import Generation, Request
from magicore.llms.scripted import ScriptedModel
from magicore.methods import make_method, method_names
from magicore.types import ResultStop, Usage

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("cot", {}),
    ("self-consistency", {"k": 3}),
    ("weighted-self-consistency", {"k": 3}),
    ("weighted-self-consistency", {"k": 3, "weights": "mean-S"}),
    ("best-of-k", {"k": 3}),
    ("sc+prm", {"k": 3}),
    ("magicore", {"k": 2, "iterations": 2, "router": "hard"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "magicore"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "review": "joint"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "review": "none"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "step_scores": "none"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "step_scores": "random"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "step_scores": "orm"}),
    ("magicore", {"k": 2, "iterations": 2, "router": "hard", "select": "all"}),
    ("magicore", {"k": 2, "iterations": 2, "router": "hard", "select_by": "S"}),
    ("magicore", {"k": 2, "iterations": 2, "router": "hard", "review": "mars"}),
    ("magicore", {"k": 2, "iterations": 1, "router": "hard", "review": "mars", "scores": "hidden"}),
    ("magicore-published", {"k": 2, "iterations": 2}),
    ("mars", {}),
    ("mars", {"max_rounds": 2, "personas": "conservative,aggressive", "answer": "vote"}),
    ("mars", {"confidence": "logprob"}),
    ("peer-review", {}),
    ("peer-review", {"agents": 2, "rounds": 2, "confidence": "none"}),
    ("peer-review", {"exchange": "reviews"}),
    ("peer-review", {"exchange": "solutions"}),
    ("debate", {}),
    ("debate", {"agents": 2, "rounds": 3, "personas": "aggressive"}),
    ("self-reflection", {}),
    ("self-correction", {}),
    ("self-correction", {"agents": 3}),
    ("self-refine", {"iterations": 2}),
    ("self-refine+sc", {"k": 2, "iterations": 1}),
]
IDS = [",".join([name, *(f"{option}={value}" for option, value in options.items())]) for name, options in VARIANTS]
EVERY = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)

PROBLEMS = [Problem(id=f"p{i}", question=f"What is {i} + 3?", kind="number", answer=str(i + 3)) for i in range(3)]


def text(role: str, which: object) -> str:
    """A reply for any role."""
    solution = f"Step 1: 2 + 3 = 5 ({which})\nStep 2: The final answer is 5."
    review = f"Decision: wrong\nConfidence: 4\nJustification: {which}\nSuggestions: again\nAnswer: 5"
    return {"reviewer": review, "meta-reviewer": review, "joint": f"No.\n\nImproved solution:\n{solution}"}.get(
        role, solution
    )


class CountingModel(ScriptedModel):
    """Counts what it serves, by problem and role. ``broken`` calls fail; ``mute`` replies hold no answer."""

    def __init__(self, *, broken: tuple[str, str] | None = None, mute: bool = False) -> None:
        super().__init__(self._reply, name="counting", logprobs=True)
        self.served: dict[tuple[str, str], Usage] = {}
        self._broken = broken
        self._mute = mute

    def _reply(self, request: Request, index: int) -> str:
        key = request.key
        if (key.problem, key.role) == self._broken:
            raise refused()
        if self._mute:
            return "Hm." if key.role != "joint" else "Hm.\n\nImproved solution:\nHm."
        return text(key.role, f"{key.problem}.{key.instance}.{key.round}.{key.parent}.{index}")

    async def generate(self, request: Request) -> Generation:
        generation = await super().generate(request)
        where = (request.key.problem, request.key.role)
        for completion in generation.completions:
            self.served[where] = self.served.get(where, Usage()) + completion.usage
        return generation


def run(name: str, options: Mapping[str, Any], model: Any) -> Run:
    return magicore.solve_batch(
        PROBLEMS, model=model, method=name, orm="random", prm="random", progress=False, **options
    )


def test_every_method_is_here() -> None:
    assert {name for name, _ in VARIANTS} == set(method_names())


@EVERY
def test_it_ends_and_accounts_for_every_token(name: str, options: dict[str, Any]) -> None:
    model = CountingModel()
    finished = run(name, options, model)
    assert [result.id for result in finished.results] == [problem.id for problem in PROBLEMS]
    for result in finished.results:
        assert result.stop in get_args(ResultStop) and result.error is None and result.answer is not None
        booked = {entry.role: entry.usage for entry in result.usage if entry.model == "counting"}
        assert booked == {role: usage for (problem, role), usage in model.served.items() if problem == result.id}


@EVERY
def test_it_takes_no_more_completions_than_it_says(name: str, options: dict[str, Any]) -> None:
    least, most = make_method(name, **options).completions
    for result in run(name, options, CountingModel()).results:
        chains = sum(len(round.chains) for round in result.rounds)
        reviews = sum(len(round.reviews) for round in result.rounds)
        spent = chains + (0 if options.get("review") == "joint" else reviews)
        assert least <= spent <= most


@EVERY
def test_it_repeats(name: str, options: dict[str, Any]) -> None:
    assert run(name, options, CountingModel()).results == run(name, options, CountingModel()).results


@EVERY
def test_a_failing_reviewer_costs_only_itself(name: str, options: dict[str, Any]) -> None:
    whole = run(name, options, CountingModel()).results
    broken = run(name, options, CountingModel(broken=("p1", "reviewer"))).results
    assert broken[1].stop != "failed" and broken[1].answer is not None
    reviewed = any(entry.role == "reviewer" for entry in whole[1].usage)
    assert broken[1].warnings if reviewed else broken[1] == whole[1]
    for mine, theirs in ((broken[0], whole[0]), (broken[2], whole[2])):
        # the statistics of S are over first chains, which no reviewer touches
        assert mine == theirs


@EVERY
def test_a_problem_without_a_chain_fails_alone(name: str, options: dict[str, Any]) -> None:
    role = "author" if name == "mars" else "solver"
    results = run(name, options, CountingModel(broken=("p1", role))).results
    assert results[1].stop == "failed" and results[1].correct is False and results[1].error is not None
    assert all(result.error is None for result in (results[0], results[2]))


@EVERY
def test_no_answer_is_typed(name: str, options: dict[str, Any]) -> None:
    for result in run(name, options, CountingModel(mute=True)).results:
        assert result.answer is None and result.chain is None and result.correct is False
        assert result.stop != "failed" and not result.votes
        assert result.abstained and all(one.reason for one in result.abstained)


@EVERY
def test_every_chain_has_an_id_of_its_own_and_a_parent_that_exists(name: str, options: dict[str, Any]) -> None:
    for result in run(name, options, CountingModel()).results:
        chains = [scored.chain for round in result.rounds for scored in round.chains]
        ids = Counter(chain.id for chain in chains)
        assert max(ids.values()) == 1
        assert all(chain.parent is None or chain.parent in ids for chain in chains)
        assert all(set(round.kept) <= ids.keys() for round in result.rounds)
        assert all(review.chain in ids for round in result.rounds for review in round.reviews)


class Endpoint:
    """An OpenAI-compatible server that counts what it says it served."""

    def __init__(self) -> None:
        self.spent = Usage()
        self._lock = threading.Lock()

    def __call__(self, call: Call) -> Answer:
        body = call.body
        n = body.get("n") or 1
        said = text("reviewer", "x") + "\n\n" + text("joint", "x")  # serves every role
        prompt = sum(len(turn["content"].split()) for turn in body["messages"])
        completion = n * len(said.split())
        with self._lock:
            self.spent += Usage(prompt=prompt, completion=completion, calls=1)
            number = self.spent.calls
        tokens = [{"token": word, "logprob": -0.5, "top_logprobs": []} for word in said.split()]
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": f"{said} {number}.{index}"},
                "finish_reason": "stop",
                "logprobs": {"content": tokens} if body.get("logprobs") else None,
            }
            for index in range(n)
        ]
        return Answer({"choices": choices, "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


@EVERY
def test_over_http_it_books_what_the_server_charged(name: str, options: dict[str, Any]) -> None:
    endpoint = Endpoint()
    with serving(endpoint) as server:
        assert isinstance(server, FakeServer)
        finished = run(name, options, f"openai:m@{server.url}/v1")
    booked = sum((entry.usage for result in finished.results for entry in result.usage), Usage())
    generated = replace(booked, reasoning=0)
    assert generated == endpoint.spent
