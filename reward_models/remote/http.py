"""Clients of ``magicore serve-reward-model``: ``NAME@http://host:8000[,http://other:8000]``.

The contract is in :mod:`reward_models.contract`. Opening a model asks every server what it serves, so a wrong address,
a server of another model, and replicas that differ are refused before anything is spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from reward_models import errors
from reward_models._sync import run_sync
from reward_models.contract import (
    ContractError,
    Kind,
    Score,
    ServedModel,
    answer_from_json,
    dumps,
    model_from_json,
    request_to_json,
)
from reward_models.errors import RewardModelError, ScoringServerError
from reward_models.names import ModelName, parse_model_name
from reward_models.remote.transport import StatusError, Transport
from reward_models.types import OutcomeScore, ScoringUsage, Solution, StepScores

_SOLUTIONS_A_REQUEST = 32
"""Small enough that several servers share a batch and that a retry repeats little."""
_NOT_FOUND = 404
_SCORES: Mapping[Kind, str] = {
    "outcome": "whole solutions (an ORM), not steps",
    "process": "steps (a PRM), not whole solutions",
}


class _HttpModel:
    """What both kinds share: the handshake, requests in parts, the price."""

    def __init__(self, name: ModelName, kind: Kind, transport: Transport, served: ServedModel) -> None:
        self.name = str(name)
        self.fingerprint = f"{served.model} {served.fingerprint}"
        self.requires = served.requires - {"generate"}
        self._kind = kind
        self._transport = transport
        self._served = served
        self._tokens = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def usage(self) -> ScoringUsage:
        """Tokens that the servers' model read for this client, and the calls made."""
        return ScoringUsage(prompt_tokens=self._tokens, calls=self._transport.calls)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._transport.aclose()

    def close(self) -> None:
        """Close the connections of every event loop."""
        self._transport.close()

    async def _ask(self, solutions: Sequence[Solution]) -> list[Score]:
        """Every part is awaited, also when one has failed, and the first failure is raised."""
        parts = [self._score_part(part) for part in self._parts(solutions)]
        answers = await asyncio.gather(*parts, return_exceptions=True)
        scores: list[Score] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            scores.extend(answer)
        return scores

    def _parts(self, solutions: Sequence[Solution]) -> Iterator[list[Solution]]:
        """The solutions in requests that the server takes, in order."""
        most = min(_SOLUTIONS_A_REQUEST, self._served.max_solutions)
        part: list[Solution] = []
        size = 0
        for solution in solutions:
            length = len(dumps(request_to_json([solution], requires=self.requires)))
            if length > self._served.max_bytes:
                raise RewardModelError(
                    f"{length} bytes long as JSON, and the server takes at most {self._served.max_bytes}",
                    model=self.name,
                    solution=solution.id,
                )
            if part and (len(part) == most or size + length > self._served.max_bytes):
                yield part
                part, size = [], 0
            part.append(solution)
            size += length
        if part:
            yield part

    async def _score_part(self, solutions: list[Solution]) -> list[Score]:
        body = request_to_json(solutions, requires=self.requires)
        weight = sum(len(solution.question) + len(solution.text) for solution in solutions)
        try:
            answer = await self._transport.post("/v1/score", body, weight=weight)
        except StatusError as error:
            raise _told(error, self.name) from None
        try:
            scores = answer_from_json(answer, self._kind, solutions)
        except ContractError as error:
            raise ScoringServerError(f"the scoring server's answer is wrong: {error}", model=self.name) from None
        self._tokens += sum(score.tokens or 0 for score in scores)
        return scores


class HttpOutcomeModel(_HttpModel):
    """An outcome reward model on another machine."""

    async def ascore(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """One score a solution, in order; see :class:`~reward_models.base.OutcomeRewardModel`."""
        return cast("list[OutcomeScore]", await self._ask(solutions))

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))


class HttpProcessModel(_HttpModel):
    """A process reward model on another machine."""

    @property
    def aggregation(self) -> str:
        """What the served model recommends."""
        return self._served.aggregation or "product"

    async def ascore(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """One entry a step, in order; see :class:`~reward_models.base.ProcessRewardModel`."""
        return cast("list[StepScores]", await self._ask(solutions))

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))


def orm(name: ModelName, *, api_key_env: str | None = None) -> HttpOutcomeModel:
    """The outcome model behind ``NAME@http://...``.

    Args:
        name: The model's name with its URLs.
        api_key_env: The environment variable that holds the servers' key; none is sent without it.

    Raises:
        ScoringServerError: No server answers, or what it says cannot be read.
        RewardModelError: It serves another model or another kind, or the servers differ.
    """
    transport = Transport(name.endpoints, model=str(name), api_key_env=api_key_env)
    return HttpOutcomeModel(name, "outcome", transport, _handshake(name, "outcome", transport))


def prm(name: ModelName, *, api_key_env: str | None = None) -> HttpProcessModel:
    """The process model behind ``NAME@http://...``; as :func:`orm`."""
    transport = Transport(name.endpoints, model=str(name), api_key_env=api_key_env)
    return HttpProcessModel(name, "process", transport, _handshake(name, "process", transport))


def _handshake(name: ModelName, kind: Kind, transport: Transport) -> ServedModel:
    """What the servers serve, which must be the same model and the one that was asked for."""
    try:
        served = [model_from_json(body) for body in run_sync(transport.get_each("/v1/model"))]
    except ContractError as error:
        raise ScoringServerError(f"no scoring server of this package answers there: {error}", model=str(name)) from None
    except StatusError as error:
        if error.status != _NOT_FOUND:
            raise
        raise ScoringServerError(
            f"{transport.urls[0]} is no scoring server of this package; after a reward model's name, a vLLM server is "
            "written vllm+http://... and an SGLang server sglang+http://...",
            model=str(name),
        ) from None
    first = served[0]
    for url, other in zip(transport.urls, served, strict=True):
        if other.kind != kind:
            raise RewardModelError(f"{url} serves {other.model}, which scores {_SCORES[other.kind]}", model=str(name))
        if not _is_meant(name, other.model):
            raise RewardModelError(f"{url} serves {other.model}; write that name before the URL", model=str(name))
        if (other.model, other.fingerprint) != (first.model, first.fingerprint):
            raise RewardModelError(
                f"{transport.urls[0]} and {url} serve different models or weights, so their scores cannot be mixed",
                model=str(name),
            )
    return first


def _is_meant(name: ModelName, served: str) -> bool:
    """The same family, and the same checkpoint and revision where the name says which."""
    theirs = parse_model_name(served)
    return (
        theirs.provider == name.provider and name.name in ("", theirs.name) and name.revision in (None, theirs.revision)
    )


def _told(error: StatusError, model: str) -> RewardModelError:
    """The reward model's own error, raised there and told here, as the same kind of error."""
    told: Any = error.body.get("error") if isinstance(error.body, Mapping) else None
    if isinstance(told, Mapping):
        kind = getattr(errors, str(told.get("type")), None)
        if isinstance(kind, type) and issubclass(kind, RewardModelError) and kind is not ScoringServerError:
            return kind(str(told.get("message")), model=model)
    return error
