"""SGLang as a scoring engine: ``FAMILY[:CHECKPOINT]@sglang+http://host:30000``.

``/v1/score``
    On an ordinary generation server: the probabilities of two tokens after a prefix, one prefix a step (Math-Shepherd,
    RLHFlow and the other families that read two tokens of the vocabulary). Whole prompts are sent as items of an empty
    query; the radix cache shares what steps have in common. The log of their ratio is the difference of the logits.
``/classify``
    On a server started with ``--is-embedding``: the score at the last token (InternLM2-reward, Qwen2.5-Math-RM,
    sequence classifiers). It is raw, no activation is applied.
``/generate``
    With ``return_logprob``: the log-probability of every token (implicit reward models).

Token ids are sent, never text. There is no step pooling for heads of their own, so Qwen2.5-Math-PRM and its like need
vLLM. The self-test sends the first sequences and checks that the answer has one row a step of two probabilities, or one
number a sequence: a server started without a reward head answers with a vector as long as its hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reward_models.families.heads import TokenLogProb, TokenPair
from reward_models.families.reading import Reading
from reward_models.remote.engine import RemoteEngine, Route, columns, is_number, tokens_of
from reward_models.remote.transport import StatusError

_PROBES = 2
_ABSENT = frozenset({404, 405, 501})


class SglangEngine(RemoteEngine):
    """An SGLang server; see the module's text."""

    kind = "sglang"

    async def identify(self) -> None:
        found = [_model(body) for body in await self.transport.get_each("/get_model_info")]
        for url, model in zip(self.transport.urls, found, strict=True):
            if model is None:
                raise self.wrong(f"{url}/get_model_info names no model, so no SGLang server answers there")
            if model != found[0]:
                raise self.wrong(f"{self.transport.urls[0]} and {url} serve different models")
        self._serves(str(found[0]))

    async def _choose(self, readings: Sequence[Reading]) -> Route:
        if self.served is None:
            await self.identify()
        head = self.family.head
        route: Route
        if isinstance(head, TokenPair):
            route = _Score(self, head)
        elif isinstance(head, TokenLogProb):
            route = _Generate(self)
        elif columns(head) == 1 and self.family.kind == "outcome":
            route = _Classify(self)
        else:
            raise self.wrong(
                "SGLang has no pooling at steps for this family's head; serve it with vLLM (vllm+http://...)"
            )
        try:
            await route.raw(readings[:_PROBES])
        except StatusError as error:
            if error.status not in _ABSENT:
                raise
            raise self.wrong(f"the server has no such route; {self.advice(readings)} (it said: {error})") from None
        return route

    def advice(self, readings: Sequence[Reading]) -> str:
        checkpoint = self.name.name or self.family.checkpoint
        embedding = "" if isinstance(self.family.head, TokenPair | TokenLogProb) else " --is-embedding"
        return f"start it with: python -m sglang.launch_server --model-path {checkpoint}{embedding}"


class _Score:
    """``/v1/score``: two probabilities after each prefix."""

    def __init__(self, engine: SglangEngine, head: TokenPair) -> None:
        self.engine = engine
        self.head = head

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.remote.engine.Route`."""
        prefixes = [list(reading.ids[: at + 1]) for reading in readings for at in reading.reads]
        body = {
            "model": self.engine.served,
            "query": [],
            "items": prefixes,
            "label_token_ids": [self.head.good, self.head.bad],
            "apply_softmax": False,
        }
        answer = await self.engine.transport.post("/v1/score", body, weight=tokens_of(readings))
        rows = answer.get("scores") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise self.engine.wrong("the answer to /v1/score has no scores")
        if len(rows) != len(prefixes):
            raise self.engine.miscounted(f"the server answered {len(rows)} scores for {len(prefixes)} steps")
        scores = iter([self._difference(row) for row in rows])
        return [tuple(next(scores) for _ in reading.reads) for reading in readings]

    def _difference(self, row: Any) -> float:
        """log P(good) - log P(bad), the difference of the two logits."""
        if not isinstance(row, list) or len(row) != 2 or not all(map(is_number, row)):
            raise self.engine.wrong("a score of /v1/score is not the two probabilities that were asked for")
        good, bad = row
        if not (0.0 < good <= 1.0 and 0.0 < bad <= 1.0):
            raise self.engine.wrong(f"the server answered {row} where two probabilities above 0 were asked for")
        return math.log(good) - math.log(bad)


class _Classify:
    """``/classify``: one raw score a sequence, at its last token."""

    def __init__(self, engine: SglangEngine) -> None:
        self.engine = engine

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.remote.engine.Route`."""
        for reading in readings:
            if reading.reads != (len(reading.ids) - 1,):
                raise self.engine.wrong("the server classifies at the last token, and this input is read elsewhere")
        body = {"input_ids": [list(reading.ids) for reading in readings]}
        answer = await self.engine.transport.post("/classify", body, weight=tokens_of(readings))
        items = answer if isinstance(answer, list) else [answer]
        if len(items) != len(readings):
            raise self.engine.miscounted(f"the server answered {len(items)} results for {len(readings)} sequences")
        return [(self._score(item, reading),) for item, reading in zip(items, readings, strict=True)]

    def _score(self, item: Any, reading: Reading) -> float:
        vector = item.get("embedding") if isinstance(item, dict) else None
        if not isinstance(vector, list) or not vector or not all(map(is_number, vector)):
            raise self.engine.wrong("the answer to /classify holds no list of finite numbers")
        if len(vector) != 1:
            raise self.engine.wrong(
                f"the server gives a vector of {len(vector)} numbers where one score is needed; "
                f"{self.engine.advice([reading])}"
            )
        return float(vector[0])


class _Generate:
    """``/generate`` with ``return_logprob``: the log-probability of each token that follows a read position."""

    def __init__(self, engine: SglangEngine) -> None:
        self.engine = engine

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.remote.engine.Route`."""
        body = {
            "input_ids": [list(reading.ids) for reading in readings],
            "sampling_params": {"max_new_tokens": 1, "temperature": 0.0},
            "return_logprob": True,
            "logprob_start_len": 0,
        }
        answer = await self.engine.transport.post("/generate", body, weight=tokens_of(readings))
        items = answer if isinstance(answer, list) else [answer]
        if len(items) != len(readings):
            raise self.engine.miscounted(f"the server answered {len(items)} results for {len(readings)} sequences")
        return [self._read(item, reading) for item, reading in zip(items, readings, strict=True)]

    def _read(self, item: Any, reading: Reading) -> tuple[float, ...]:
        told = item.get("meta_info") if isinstance(item, dict) else None
        rows = told.get("input_token_logprobs") if isinstance(told, dict) else None
        if not isinstance(rows, list) or len(rows) != len(reading.ids):
            raise self.engine.wrong("the server gives no log-probability for each token of the prompt (return_logprob)")
        return tuple(self._of(rows[at + 1], reading.ids[at + 1]) for at in reading.reads)

    def _of(self, row: Any, token: int) -> float:
        if not isinstance(row, list) or row[1:2] != [token] or not is_number(row[0]):
            raise self.engine.wrong(f"the server gives no log-probability of token {token}, which was sent")
        return float(row[0])


def _model(body: Any) -> str | None:
    path = body.get("model_path") if isinstance(body, dict) else None
    return path if isinstance(path, str) else None
