"""The JSON that scoring servers and their clients exchange: version 1 of a plain HTTP contract.

``magicore serve-reward-model`` serves it; ``NAME@http://host:8000`` calls it. Text is JSON in UTF-8, lone surrogates
escaped (``\\udXXX``); numbers are finite. Unknown fields are ignored, so that fields may be added within a version.

``GET /health`` (no key needed)::

    {"status": "ok"}

``GET /v1/model``::

    {"contract": 1, "model": "math-shepherd", "kind": "process", "fingerprint": "...", "aggregation": "product",
     "requires": [], "max_solutions": 1024, "max_bytes": 33554432,
     "usage": {"prompt_tokens": 0, "completion_tokens": 0, "calls": 0}}

``kind`` is ``outcome`` or ``process``; ``aggregation`` is ``null`` for an outcome model. ``fingerprint`` changes
whenever scores may. ``requires`` names optional fields of a solution that must be sent (``token_logprobs``,
``top_logprobs``). ``usage`` is what the model has spent since the server started.

``POST /v1/score``::

    {"contract": 1, "solutions": [
       {"question": "...", "text": "...", "id": "a", "thinking": null, "stop": "stop",
        "steps": [{"text": "...", "start": 0, "end": 12, "part": "text"}],
        "token_logprobs": [-0.1], "top_logprobs": [[-0.1, -2.4]]}]}

Only ``question`` and ``text`` are required. Without ``steps`` a process model splits the text itself. Offsets are
counted in Unicode code points. The answer has one entry a solution, in order::

    {"contract": 1, "model": "math-shepherd", "kind": "process", "usage": {"prompt_tokens": 231},
     "scores": [{"activation": "softmax", "aggregation": "product", "tokens": 231,
       "steps": [{"value": 0.93, "raw": 2.6}, {"unscored": {"code": "empty_step", "reason": "..."}}]}]}

An outcome model's entry is ``{"value": 0.71, "raw": 0.9, "activation": "sigmoid", "tokens": 180}`` or holds
``unscored``. ``value`` lies in [0, 1]; ``raw`` is what the model gave before the activation, or ``null``. If the
solution was sent without steps, the entry of a process model also has ``split``: the steps, as they are sent.

Failures have status 400 (the request is wrong), 401 or 403 (the key), 404, 413 (too large), 415, 422 (the model refuses
these solutions), 429 (too many waiting; ``Retry-After`` is set), 500 (the model failed) or 503 (it is stopping)::

    {"error": {"type": "StepCountError", "message": "one sentence", "retryable": false}}

``type`` is a name from :mod:`reward_models.errors` where the model itself failed. A bearer key goes into
``Authorization`` if the server was given one.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from reward_models.aggregate import AGGREGATIONS
from reward_models.types import (
    Activation,
    OutcomeScore,
    Solution,
    Step,
    StepPart,
    StepScore,
    StepScores,
    Unscored,
    UnscoredCode,
)

VERSION = 1
MAX_SOLUTIONS = 1024
MAX_BYTES = 32 * 1024 * 1024
_LARGEST = sys.float_info.max

Kind = Literal["outcome", "process"]
Score = OutcomeScore | StepScores
Json = dict[str, Any]


class ContractError(ValueError):
    """What came does not follow the contract; one sentence says where."""


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """What a server says of its model; see ``GET /v1/model``."""

    model: str
    kind: Kind
    fingerprint: str
    aggregation: str | None = None
    requires: frozenset[str] = frozenset()
    max_solutions: int = MAX_SOLUTIONS
    max_bytes: int = MAX_BYTES


def dumps(body: Mapping[str, Any]) -> bytes:
    """JSON as it is sent: ASCII, so that any string survives, and without ``NaN``."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def loads(content: bytes) -> Json:
    """A JSON object.

    Raises:
        ContractError: It is none.
    """
    try:
        body = json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise ContractError("the body is no JSON object")
    return body


def model_to_json(served: ServedModel, usage: Mapping[str, int]) -> Json:
    """The answer to ``GET /v1/model``."""
    return {
        "contract": VERSION,
        "model": served.model,
        "kind": served.kind,
        "fingerprint": served.fingerprint,
        "aggregation": served.aggregation,
        "requires": sorted(served.requires),
        "max_solutions": served.max_solutions,
        "max_bytes": served.max_bytes,
        "usage": dict(usage),
    }


def model_from_json(body: Any) -> ServedModel:
    """The inverse of :func:`model_to_json`.

    Raises:
        ContractError: It is something else, or of another version.
    """
    where = "the server's description"
    body = _object(body, where)
    _check_version(body)
    aggregation = body.get("aggregation")
    return ServedModel(
        model=_text(body, "model", where),
        kind=_one_of(body, "kind", get_args(Kind), where),
        fingerprint=_text(body, "fingerprint", where),
        aggregation=None if aggregation is None else _text(body, "aggregation", where),
        requires=frozenset(str(name) for name in _list(body, "requires", where)),
        max_solutions=_count(body.get("max_solutions", MAX_SOLUTIONS), f"max_solutions of {where}"),
        max_bytes=_count(body.get("max_bytes", MAX_BYTES), f"max_bytes of {where}"),
    )


def request_to_json(solutions: Sequence[Solution], *, requires: frozenset[str] = frozenset()) -> Json:
    """The body of ``POST /v1/score``; log-probabilities are sent only where the model requires them."""
    return {"contract": VERSION, "solutions": [_solution_to_json(solution, requires) for solution in solutions]}


def request_from_json(body: Any) -> list[Solution]:
    """The solutions to score.

    Raises:
        ContractError: The request does not follow the contract.
    """
    body = _object(body, "the request")
    _check_version(body)
    return [
        _solution_from_json(item, f"solution {at}") for at, item in enumerate(_list(body, "solutions", "the request"))
    ]


def answer_to_json(model: str, kind: Kind, solutions: Sequence[Solution], scores: Sequence[Score]) -> Json:
    """The answer to ``POST /v1/score``."""
    return {
        "contract": VERSION,
        "model": model,
        "kind": kind,
        "usage": {"prompt_tokens": sum(score.tokens or 0 for score in scores)},
        "scores": [_score_to_json(score, solution) for score, solution in zip(scores, solutions, strict=True)],
    }


def answer_from_json(body: Any, kind: Kind, solutions: Sequence[Solution]) -> list[Score]:
    """One score a solution, in order.

    Raises:
        ContractError: The answer does not follow the contract, or has another number of scores or steps.
    """
    body = _object(body, "the answer")
    _check_version(body)
    items = _list(body, "scores", "the answer")
    if len(items) != len(solutions):
        raise ContractError(f"the answer has {len(items)} scores for {len(solutions)} solutions")
    read = _outcome_from_json if kind == "outcome" else _steps_from_json
    return [
        read(item, solution, f"score {at}") for at, (item, solution) in enumerate(zip(items, solutions, strict=True))
    ]


def _solution_to_json(solution: Solution, requires: frozenset[str]) -> Json:
    found: Json = {"question": solution.question, "text": solution.text}
    for name in ("id", "stop", "thinking"):
        if (value := getattr(solution, name)) is not None:
            found[name] = value
    if solution.steps:
        found["steps"] = [_step_to_json(step) for step in solution.steps]
    if "token_logprobs" in requires and solution.token_logprobs is not None:
        found["token_logprobs"] = list(solution.token_logprobs)
    if "top_logprobs" in requires and solution.top_logprobs is not None:
        found["top_logprobs"] = [list(row) for row in solution.top_logprobs]
    return found


def _solution_from_json(item: Any, where: str) -> Solution:
    item = _object(item, where)
    optional = {name: _text(item, name, where) for name in ("id", "stop", "thinking") if item.get(name) is not None}
    tokens, top = item.get("token_logprobs"), item.get("top_logprobs")
    return Solution(
        question=_text(item, "question", where),
        text=_text(item, "text", where),
        steps=_steps(item.get("steps"), where),
        token_logprobs=None if tokens is None else _numbers(tokens, f"token_logprobs of {where}"),
        top_logprobs=None
        if top is None
        else tuple(
            _numbers(row, f"top_logprobs of {where}, token {at}")
            for at, row in enumerate(_list(item, "top_logprobs", where))
        ),
        **optional,
    )


def _step_to_json(step: Step) -> Json:
    return {"text": step.text, "start": step.start, "end": step.end, "part": step.part}


def _steps(items: Any, where: str) -> tuple[Step, ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise ContractError(f"steps of {where} are no list")
    return tuple(_step(item, f"step {at} of {where}") for at, item in enumerate(items))


def _step(item: Any, where: str) -> Step:
    item = _object(item, where)
    part: StepPart = _one_of({"part": "text"} | item, "part", get_args(StepPart), where)
    start, end = (_count(item.get(name), f"{name} of {where}", least=0) for name in ("start", "end"))
    return Step(text=_text(item, "text", where), start=start, end=end, part=part)


def _score_to_json(score: Score, solution: Solution) -> Json:
    if isinstance(score, OutcomeScore):
        return {**_entry_to_json(score), "activation": score.activation, "tokens": score.tokens}
    found: Json = {
        "activation": score.activation,
        "aggregation": score.aggregation,
        "tokens": score.tokens,
        "steps": [_entry_to_json(entry) for entry in score.scores],
    }
    if not solution.steps:
        found["split"] = [_step_to_json(step) for step in score.steps]
    return found


def _entry_to_json(entry: OutcomeScore | StepScore) -> Json:
    if entry.unscored is not None:
        found: Json = {"unscored": {"code": entry.unscored.code, "reason": entry.unscored.reason}}
        return found if entry.raw is None else {**found, "raw": entry.raw}
    return {"value": entry.value, "raw": entry.raw}


def _entry(item: Json, where: str) -> tuple[float | None, float | None, Unscored | None]:
    value, raw = (
        None if item.get(name) is None else _number(item[name], f"{name} of {where}") for name in ("value", "raw")
    )
    told = item.get("unscored")
    if (value is None) == (told is None):
        raise ContractError(f"{where} must have a value or say why it is unscored, and not both")
    if value is not None and not 0.0 <= value <= 1.0:
        raise ContractError(f"the value of {where} is {value!r}, not within [0, 1]")
    if told is None:
        return value, raw, None
    told = _object(told, f"unscored of {where}")
    code: UnscoredCode = _one_of(told, "code", get_args(UnscoredCode), f"unscored of {where}")
    return None, raw, Unscored(code=code, reason=_text(told, "reason", f"unscored of {where}"))


def _outcome_from_json(item: Any, solution: Solution, where: str) -> OutcomeScore:
    item = _object(item, where)
    value, raw, unscored = _entry(item, where)
    activation: Activation = _one_of(item, "activation", get_args(Activation), where)
    return OutcomeScore(value=value, raw=raw, unscored=unscored, activation=activation, tokens=_tokens(item, where))


def _steps_from_json(item: Any, solution: Solution, where: str) -> StepScores:
    item = _object(item, where)
    steps = solution.steps or _steps(item.get("split", []), where)
    entries = _list(item, "steps", where)
    if len(entries) != len(steps):
        raise ContractError(f"{where} has {len(entries)} entries for {len(steps)} steps")
    scores = []
    for at, entry in enumerate(entries):
        value, raw, unscored = _entry(_object(entry, f"step {at} of {where}"), f"step {at} of {where}")
        scores.append(StepScore(value=value, raw=raw, unscored=unscored))
    return StepScores(
        steps=steps,
        scores=tuple(scores),
        activation=_one_of(item, "activation", get_args(Activation), where),
        aggregation=_one_of(item, "aggregation", tuple(AGGREGATIONS), where),
        tokens=_tokens(item, where),
    )


def _tokens(item: Json, where: str) -> int | None:
    found = item.get("tokens")
    return None if found is None else _count(found, f"tokens of {where}", least=0)


def _check_version(body: Json) -> None:
    if body.get("contract") != VERSION:
        raise ContractError(
            f"this is not version {VERSION} of the scoring contract (contract is {body.get('contract')!r})"
        )


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise ContractError(f"{where} is no JSON object")
    return value


def _list(body: Json, name: str, where: str) -> list[Any]:
    value = body.get(name)
    if not isinstance(value, list):
        raise ContractError(f"{name} of {where} is no list" if name in body else f"{where} has no {name}")
    return value


def _text(body: Json, name: str, where: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ContractError(f"{name} of {where} is no string" if name in body else f"{where} has no {name}")
    return value


def _one_of(body: Mapping[str, Any], name: str, known: Sequence[str], where: str) -> Any:
    value = body.get(name)
    if value not in known:
        raise ContractError(f"{name} of {where} is {value!r}, none of {', '.join(known)}")
    return value


def _count(value: Any, what: str, *, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ContractError(f"{what} is no whole number of at least {least}")
    return value


def _number(value: Any, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > _LARGEST or math.isnan(value):
        raise ContractError(f"{what} is no finite number")
    return float(value)


def _numbers(values: Any, what: str) -> tuple[float, ...]:
    if not isinstance(values, list):
        raise ContractError(f"{what} are no list")
    return tuple(_number(value, what) for value in values)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
