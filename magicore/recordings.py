"""Recorded runs: a method's own code path over what real models said.

A replay file (:mod:`magicore.replay`) says, question by question, what each role answered. Here its lines become a
recorded model that plays them back role by role, the method that they were recorded with runs on it, and what that
method kept is written as lines of the same form again, so that the same counts can be taken of both.

======================================== ===================
line has                                 method
======================================== ===================
``responses``                            ``self-consistency``
``author``, ``reviews``, ``meta``        ``mars``
``agents`` with a list of two texts      ``debate``
``agents`` with a list of three texts    ``self-correction``
``agents`` with ``reviews_given``        ``peer-review``
``response``, ``reflection``             ``self-reflection``
======================================== ===================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from magicore._sync import run_sync
from magicore.errors import InputError
from magicore.llms.recorded import RecordedResponses
from magicore.methods.base import Method
from magicore.methods.debate import Debate
from magicore.methods.mars import Mars
from magicore.methods.peer_review import PeerReview
from magicore.methods.self_consistency import SelfConsistency
from magicore.methods.self_correction import SelfCorrection
from magicore.methods.self_reflection import SelfReflection
from magicore.prompts import load_prompts
from magicore.replay import KINDS_OF, ReplayReading, Rules, count, option_letters, read_rows, rules_of
from magicore.runtime.observer import RunObserver
from magicore.runtime.run import run_method
from magicore.runtime.runtime import Engine
from magicore.runtime.stored import StoredModel
from magicore.store.run_store import RunStore
from magicore.types import CallKey, Completion, Problem, Result, Round, Usage

Row = Mapping[str, Any]
Response = tuple[CallKey, Completion]

_DEBATE, _CORRECTION = 2, 3


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A replay file after its method ran on it.

    Attributes:
        method: The method.
        results: One result a line, in order, with every round.
        rows: What the method kept, as lines of a replay file.
    """

    method: Method
    results: tuple[Result, ...]
    rows: tuple[dict[str, Any], ...]


def replay_run(
    path: str | Path, *, reading: ReplayReading = "careful", rules: Rules | None = None
) -> tuple[RecordedRun, dict[str, Any]]:
    """Run a replay file's method on its responses, and count as :func:`magicore.replay.replay` does.

    Raises:
        InputError: The file cannot be read, or a line does not fit.
    """
    file = Path(path)
    finished = run_sync(run_recorded(read_rows(file), name=file.name))
    return finished, count(finished.rows, reading=reading, rules=rules or rules_of(file))


async def run_recorded(
    rows: Sequence[Row], *, name: str = "recorded", answer: str = "author", observer: RunObserver | None = None
) -> RecordedRun:
    """Run the method that the lines were recorded with.

    Args:
        rows: The lines of a replay file, all of one kind.
        name: What the recorded model is called.
        answer: For ``mars``: ``author`` or ``vote``.
        observer: Watches the run.

    Raises:
        InputError: A line does not fit the others or the schema.
    """
    try:
        method = _method(rows, answer)
        problems = [_problem(row) for row in rows]
        responses = [each for row in rows for each in _responses(row)]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"{name}: a line does not fit the schema of recorded responses ({error!r})") from error
    store = RunStore()
    model = RecordedResponses(responses, name=name)
    engine = Engine(models={"default": StoredModel(model, store)}, prompts=load_prompts("raw"))
    try:
        outcome = await run_method(method, problems, engine, observer=observer)
    finally:
        await engine.aclose()
        store.close()
    kept = tuple(dict(row) | _kept(row, result) for row, result in zip(rows, outcome.results, strict=True))
    return RecordedRun(method=method, results=outcome.results, rows=kept)


def _method(rows: Sequence[Row], answer: str) -> Method:
    sizes = {_size(row) for row in rows}
    if len(sizes) != 1:
        raise InputError(f"the lines are of different kinds or sizes: {', '.join(sorted(map(str, sizes)))}")
    kind, size = sizes.pop()
    methods: Mapping[str, Method] = {
        "chains": SelfConsistency(k=size),
        "review": Mars(reviewers=size, answer="vote" if answer == "vote" else "author"),
        "debate": Debate(agents=size, rounds=2),
        "self-correction": SelfCorrection(agents=size),
        "peer-review": PeerReview(agents=size),
        "reflection": SelfReflection(),
    }
    return methods[kind]


def _size(row: Row) -> tuple[str, int]:
    """The kind of a line, and how many chains, reviewers or agents it has."""
    if "responses" in row:
        return "chains", len(row["responses"])
    if "author" in row:
        return "review", len(row["reviews"])
    if "reflection" in row:
        return "reflection", 1
    agents = row["agents"]
    if isinstance(agents[0], Mapping):
        return "peer-review", len(agents)
    texts = {len(agent) for agent in agents}
    if texts not in ({_DEBATE}, {_CORRECTION}):
        raise InputError(f"question {row.get('qid')}: an agent has two texts (a debate) or three (self-correction)")
    return "debate" if texts == {_DEBATE} else "self-correction", len(agents)


def _problem(row: Row) -> Problem:
    kind = KINDS_OF[row["type"]]
    letters = option_letters(row["question"]) if kind == "choice" else None
    return Problem(
        id=str(row["qid"]),
        question=row["question"],
        kind=kind,
        answer=str(row["gold"]),
        options=None if letters is None else tuple(letters.values()),
    )


def _responses(row: Row) -> Iterator[Response]:
    """Every response of a line, under the call that its method makes for it."""
    name = str(row["qid"])
    kind, _ = _size(row)
    if kind == "chains":
        for index, text in enumerate(row["responses"]):
            yield _response(CallKey(problem=name, role="solver"), text, index)
    elif kind == "review":
        yield from _review_responses(name, row)
    elif kind == "reflection":
        yield from _solutions(name, 0, (row["response"], row["reflection"]))
    elif kind == "debate":
        for number, texts in enumerate(row["agents"]):
            yield from _solutions(name, number, texts)
    elif kind == "self-correction":
        for number, (first, critique, final) in enumerate(row["agents"]):
            yield from _solutions(name, number, (first, final))
            yield _response(_about(name, "reviewer", number, _solution(name, number)), critique)
    else:
        for number, agent in enumerate(row["agents"]):
            yield from _solutions(name, number, (agent["answer"], agent["revision"]))
            for review in agent["reviews_given"]:
                call = _about(name, "reviewer", number, _solution(name, review["of"]))
                yield _response(call, review["text"], review["of"])


def _review_responses(name: str, row: Row) -> Iterator[Response]:
    author = CallKey(problem=name, role="author")
    yield _response(author, row["author"])
    judged = author.chain_id(0)
    for number, text in enumerate(row["reviews"]):
        yield _response(_about(name, "reviewer", number, judged), text)
    yield _response(_about(name, "meta-reviewer", 0, judged), row["meta"])
    if row["rebuttal"] is not None:
        yield _response(_about(name, "author", 0, judged), row["rebuttal"])


def _solutions(name: str, number: int, texts: Sequence[str]) -> Iterator[Response]:
    """An agent's first solution and its revisions."""
    call = CallKey(problem=name, role="solver", instance=number)
    for round_number, text in enumerate(texts):
        yield _response(call, text)
        call = replace(call, round=round_number + 1, parent=call.chain_id(0))


def _solution(name: str, number: int) -> str:
    return CallKey(problem=name, role="solver", instance=number).chain_id(0)


def _about(name: str, role: str, number: int, chain: str) -> CallKey:
    return CallKey(problem=name, role=role, instance=number, round=1, parent=chain)


def _response(call: CallKey, text: str, index: int = 0) -> Response:
    return call, Completion(index=index, text=text, stop="stop", usage=Usage(calls=1, unmetered=1))


def _kept(row: Row, result: Result) -> dict[str, Any]:
    """The parts of a line that the method wrote, out of its rounds."""
    if result.error is not None:
        raise InputError(f"question {result.id}: {result.error.message}")
    kind, _ = _size(row)
    first = [scored.chain.text for scored in result.rounds[0].chains]
    if kind == "chains":
        return {"responses": first}
    last = result.rounds[-1]
    reviews = [review.text for review in last.reviews]
    if kind == "review":
        rebuttal = [scored.chain.text for scored in last.chains]
        meta = last.reviews[-1]
        if meta.role != "meta-reviewer":
            raise InputError(f"question {result.id}: there is no meta-review")
        return {
            "author": first[0],
            "reviews": reviews[:-1],
            "meta": meta.text,
            "rebuttal": rebuttal[0] if rebuttal else None,
        }
    latest = _latest(result.rounds)
    if kind == "reflection":
        return {"response": first[0], "reflection": latest[0]}
    if kind == "debate":
        return {"agents": [list(texts) for texts in zip(first, latest, strict=True)]}
    if kind == "self-correction":
        return {"agents": [list(texts) for texts in zip(first, reviews, latest, strict=True)]}
    return {
        "agents": [
            {
                "answer": answer,
                "reviews_given": [
                    {"of": int(review.chain.split("/")[-3]), "text": review.text}
                    for review in last.reviews
                    if review.instance == number
                ],
                "revision": revision,
            }
            for number, (answer, revision) in enumerate(zip(first, latest, strict=True))
        ]
    }


def _latest(rounds: Sequence[Round]) -> list[str]:
    """The texts of the chains that the last round kept."""
    texts = {scored.chain.id: scored.chain.text for round in rounds for scored in round.chains}
    return [texts[name] for name in rounds[-1].kept]
