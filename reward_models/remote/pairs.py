"""``cross-encoder[:NAME]@vllm+http://host:8000``: a sequence classifier that reads question and solution as a pair.

vLLM's ``/score`` joins the two texts by the model's own score template or as a sentence pair, and gives one logit. It
is the one route that takes text and not token ids, so what the model reads is the server's choice. A reward model that
was trained on chats belongs to the family ``sequence-classification``, which writes the chat itself and asks
``/classify``.

``use_activation`` is always sent, and false: the value is the logistic function of the raw score, taken here. The first
pairs are also asked for with activation, which must be that function of the raw score, or the raw score itself where
the model was trained for regression and exceeds [0, 1].
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from reward_models._sync import run_sync
from reward_models.errors import CapabilityError, ScoringServerError, StepCountError
from reward_models.families.scoring import logistic
from reward_models.names import ModelName
from reward_models.remote.engine import is_number
from reward_models.remote.transport import StatusError, Transport
from reward_models.types import OutcomeScore, ScoringUsage, Solution, Unscored

_PAIRS_A_REQUEST = 16
_PROBES = 4
_TOLERANCE = 0.02
_BAD_REQUEST = 400
_TOO_LONG = re.compile(r"context length|too (?:long|large)|max_model_len|longer than", re.IGNORECASE)


class PairModel:
    """An outcome reward model over ``/score``; see the module's text."""

    def __init__(self, name: ModelName, transport: Transport) -> None:
        """Ask what is served.

        Raises:
            ScoringServerError: No vLLM server answers, or the servers serve different models.
        """
        self.name = str(name)
        self._transport = transport
        self._tokens = 0
        self._tested = False
        served = {_model(body) for body in run_sync(transport.get_each("/v1/models"))}
        if None in served or len(served) != 1:
            what = "lists no model" if None in served else f"differ: {', '.join(sorted(map(str, served)))}"
            raise ScoringServerError(f"/v1/models of {', '.join(transport.urls)}: {what}", model=self.name)
        self._served = served.pop()
        self.fingerprint = f"vllm {name} {self._served}"

    @property
    def usage(self) -> ScoringUsage:
        """Tokens that the server counted, and the calls made."""
        return ScoringUsage(prompt_tokens=self._tokens, calls=self._transport.calls)

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))

    async def ascore(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """One score a solution, in order."""
        known = {at: reason for at, solution in enumerate(solutions) if (reason := _unreadable(solution)) is not None}
        shown = [solution for at, solution in enumerate(solutions) if at not in known]
        if shown and not self._tested:
            await self._test(sorted(shown, key=lambda solution: len(solution.question) + len(solution.text))[:_PROBES])
        parts = [shown[at : at + _PAIRS_A_REQUEST] for at in range(0, len(shown), _PAIRS_A_REQUEST)]
        answers = await asyncio.gather(*map(self._part, parts), return_exceptions=True)
        found: list[OutcomeScore] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.extend(answer)
        scores = iter(found)
        return [_unscored(known[at]) if at in known else next(scores) for at in range(len(solutions))]

    def close(self) -> None:
        """Close the connections of every event loop."""
        self._transport.close()

    async def _test(self, solutions: Sequence[Solution]) -> None:
        """The self-test, put off while even the shortest pairs are too long."""
        try:
            raw = await self._ask(solutions, use_activation=False)
        except StatusError as error:
            if _is_too_long(error):
                return
            raise
        activated = await self._ask(solutions, use_activation=True)
        heeded = all(abs(after - logistic(before)) <= _TOLERANCE for before, after in zip(raw, activated, strict=True))
        regression = raw == activated and not all(0.0 <= number <= 1.0 for number in raw)
        if not heeded and not regression:
            raise ScoringServerError(
                "the server's scores with use_activation are not the logistic function of those without, so what they "
                "are cannot be told; it must be a recent vLLM that serves a sequence classifier with one label",
                model=self.name,
            )
        self._tested = True

    async def _part(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        try:
            raw = await self._ask(solutions, use_activation=False)
        except StatusError as error:
            if not _is_too_long(error):
                raise
            if len(solutions) == 1:
                reason = "question and solution are longer than the server takes"
                return [_unscored(Unscored(code="past_context", reason=reason))]
            return [score for solution in solutions for score in await self._part([solution])]
        return [OutcomeScore(value=logistic(number), raw=number, activation="sigmoid") for number in raw]

    async def _ask(self, solutions: Sequence[Solution], *, use_activation: bool) -> list[float]:
        body = {
            "model": self._served,
            "text_1": [solution.question.strip() for solution in solutions],
            "text_2": [solution.text.strip() for solution in solutions],
            "use_activation": use_activation,
        }
        weight = sum(len(solution.question) + len(solution.text) for solution in solutions)
        answer = await self._transport.post("/score", body, weight=weight)
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ScoringServerError("the answer to /score has no data", model=self.name)
        if len(items) != len(solutions):
            raise StepCountError(f"the server answered {len(items)} scores for {len(solutions)} pairs", model=self.name)
        numbers = [item.get("score") for item in sorted(items, key=lambda item: item.get("index", 0))]
        if not all(map(is_number, numbers)):
            raise ScoringServerError("a score of /score is no finite number", model=self.name)
        spent = answer.get("usage", {}).get("prompt_tokens", 0) if isinstance(answer.get("usage"), dict) else 0
        self._tokens += spent if isinstance(spent, int) else 0
        return [float(number) for number in numbers if number is not None]


def load(name: ModelName, *, api_key_env: str | None = None) -> PairModel:
    """A cross-encoder on a vLLM server, cross-encoder@vllm+http://..."""
    if name.engine != "vllm":
        raise CapabilityError("it is scored by a vLLM server: cross-encoder@vllm+http://host:8000", model=str(name))
    return PairModel(name, Transport(name.endpoints, model=str(name), api_key_env=api_key_env))


def _model(body: Any) -> str | None:
    models = body.get("data") if isinstance(body, dict) else None
    first = models[0] if isinstance(models, list) and models else None
    found = first.get("id") if isinstance(first, dict) else None
    return found if isinstance(found, str) else None


def _is_too_long(error: StatusError) -> bool:
    return error.status == _BAD_REQUEST and _TOO_LONG.search(str(error)) is not None


def _unreadable(solution: Solution) -> Unscored | None:
    """Why a pair cannot be sent, if it cannot."""
    if not solution.text.strip():
        return Unscored(code="empty_step", reason="the solution is empty")
    try:
        f"{solution.question}{solution.text}".encode()
    except UnicodeEncodeError:
        return Unscored(code="unreadable", reason="it holds half of a surrogate pair")
    return None


def _unscored(reason: Unscored) -> OutcomeScore:
    return OutcomeScore(value=None, activation="sigmoid", unscored=reason)
