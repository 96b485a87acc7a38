"""vLLM as a scoring engine: ``FAMILY[:CHECKPOINT]@vllm+http://host:8000``.

Which of the server's routes is used depends on the family's head and on how the server was started:

``/pooling`` with the task ``token_classify``
    Rows of logits, from STEP pooling one for each step tag, from ALL pooling one for each token. For heads of their own
    (Qwen2.5-Math-PRM) ``vllm serve CHECKPOINT --runner pooling`` is enough; for two tokens of the vocabulary
    (Math-Shepherd) the server has to build the classifier from them, see below.
``/classify``
    One row a sequence, read at its last token: sequence classifiers.
``/generative_scoring``
    The probability of a token after a prefix, one prefix a step, from an ordinary generation server; its prefix cache
    shares what steps have in common.
``/v1/completions`` with ``prompt_logprobs``
    The log-probability of every token: implicit reward models.

``use_activation`` is always sent, and false. Whether the server heeds it is the self-test: the first sequences are
asked for with and without activation, and the one must be the softmax or the logistic function of the other. That finds
the configuration that vLLM's documentation gives for Math-Shepherd (``"pooling_type": "STEP", "returned_token_ids":
[648, 387]``): since the language-model head is dropped when a model is adapted for pooling, those ids select two of the
hidden state's dimensions, whose numbers look plausible and mean nothing (vLLM issues 13559 and 16545).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from reward_models.families.heads import LinearHead, TokenLogProb, TokenPair
from reward_models.families.reading import Reading
from reward_models.families.scoring import logistic
from reward_models.remote.engine import RemoteEngine, Route, Rows, columns, is_number, parted, step_tag, tokens_of
from reward_models.remote.transport import StatusError

_PROBES = 4
_TOLERANCE = 0.02
"""The two answers are computed apart, and in bfloat16 logits of about 20 differ by 0.1 from run to run."""
_SATURATED = 37.0
"""A probability of 1 in double precision says that the logits differ by at least this much."""
_BAD_REQUEST, _NOT_FOUND, _NOT_ALLOWED, _NOT_IMPLEMENTED = 400, 404, 405, 501


class VllmEngine(RemoteEngine):
    """A vLLM server; see the module's text."""

    kind = "vllm"

    async def identify(self) -> None:
        listed = await self.transport.get_each("/v1/models")
        found = [_first_model(body) for body in listed]
        for url, model in zip(self.transport.urls, found, strict=True):
            if model is None:
                raise self.wrong(f"{url}/v1/models lists no model, so no vLLM server answers there")
            if model.get("id") != (found[0] or {}).get("id"):
                raise self.wrong(f"{self.transport.urls[0]} and {url} serve different models")
        first = found[0] or {}
        self._serves(str(first.get("id")), str(first.get("root") or ""))
        length = first.get("max_model_len")
        self.context = length if isinstance(length, int) else None

    async def _choose(self, readings: Sequence[Reading]) -> Route:
        if self.served is None:
            await self.identify()
        head = self.family.head
        if isinstance(head, TokenLogProb):
            return _Completions(self)
        probes = _probes(readings)
        refusals = []
        routes: list[_Pooled] = [_Pooling(self), _Classify(self)]
        if isinstance(head, LinearHead) and self.family.kind == "outcome":
            routes.reverse()
        for route in routes:
            if not route.can_read(probes):
                continue
            try:
                await route.test(probes)
            except StatusError as error:
                if not _is_absent(error):
                    raise
                refusals.append(error)
                continue
            return route
        if isinstance(head, TokenPair):
            scoring = _GenerativeScoring(self, head)
            try:
                await scoring.raw(probes[:1])
            except StatusError as error:
                if not _is_absent(error):
                    raise
            else:
                return scoring
        raise self.wrong(
            f"the server does not give this family's scores; {self.advice(readings)} (it said: {refusals[0]})"
        )

    def advice(self, readings: Sequence[Reading]) -> str:
        command = f"vllm serve {self.name.name or self.family.checkpoint} --runner pooling"
        pooler: dict[str, Any] = {}
        head = self.family.head
        if isinstance(head, TokenPair):
            names = {token: text for text, token in self.family.tokens.items()}
            pair = [names.get(head.bad, str(head.bad)), names.get(head.good, str(head.good))]
            override = {"method": "from_2_way_softmax", "classifier_from_token": pair}
            command += f" --convert classify --hf-overrides '{json.dumps(override, ensure_ascii=False)}'"
            pooler = {"task": "token_classify", "pooling_type": "ALL"}
            tag = step_tag(readings)
            if tag is not None:
                pooler |= {"pooling_type": "STEP", "step_tag_id": tag}
        if pooler:
            command += f" --pooler-config '{json.dumps(pooler)}'"
        return f"start it with: {command}"


class _Pooled:
    """Rows of logits from ``/pooling`` or ``/classify``."""

    path = ""
    field = ""

    def __init__(self, engine: VllmEngine) -> None:
        self.engine = engine
        self.columns = columns(engine.family.head)

    def can_read(self, readings: Sequence[Reading]) -> bool:
        """Whether the route gives rows at the positions that are read."""
        return True

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.remote.engine.Route`."""
        rows = await self.rows(readings, use_activation=False)
        return [tuple(row[-1] - row[0] if self.columns == _PAIR else row[0] for row in found) for found in rows]

    async def test(self, readings: Sequence[Reading]) -> None:
        """The self-test: activated rows must be the softmax or the logistic function of the raw ones.

        Raises:
            ScoringServerError: They are not, so these are no logits of this family's head.
        """
        raw = await self.rows(readings, use_activation=False)
        activated = await self.rows(readings, use_activation=True)
        pairs = [pair for some, others in zip(raw, activated, strict=True) for pair in zip(some, others, strict=True)]
        already = self.columns > 1 and all(_is_distribution(before) for before, _ in pairs)
        if not already and all(_close(after, _activated(before)) for before, after in pairs):
            return
        same = all(before == after for before, after in pairs)
        unbounded = any(not 0.0 <= number <= 1.0 for before, _ in pairs for number in before)
        if same and unbounded and self.engine.family.activation != "softmax":
            return  # a regression head, which has no activation
        if same or already:
            why = "the server ignores use_activation, so what its numbers are cannot be told; a newer vLLM heeds it"
        else:
            why = "the server's numbers are no logits of this model's head, more likely dimensions of its hidden state"
        raise self.engine.wrong(f"{why}; {self.engine.advice(readings)}")

    async def rows(self, readings: Sequence[Reading], *, use_activation: bool) -> list[Rows]:
        """For each reading, one row for each read.

        Raises:
            StepCountError: The number of rows is neither that of the reads nor that of the tokens.
            ScoringServerError: The answer has another shape.
        """
        body = {
            "model": self.engine.served,
            "input": [list(reading.ids) for reading in readings],
            "add_special_tokens": False,
            "use_activation": use_activation,
            **self.extra(),
        }
        answer = await self.engine.transport.post(self.path, body, weight=tokens_of(readings))
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self.engine.wrong(f"the answer to {self.path} has no data")
        if len(items) != len(readings):
            raise self.engine.miscounted(f"the server answered {len(items)} results for {len(readings)} sequences")
        items = sorted(items, key=lambda item: item.get("index", 0))
        return [
            self.select(self.table(item.get(self.field), reading), reading)
            for item, reading in zip(items, readings, strict=True)
        ]

    def extra(self) -> dict[str, Any]:
        """Further fields of the request."""
        return {}

    def table(self, data: Any, reading: Reading) -> Rows:
        """The rows in one result, their width and numbers checked."""
        if not isinstance(data, list) or not data:
            raise self.engine.wrong(f"the answer to {self.path} holds no rows")
        if all(is_number(value) for value in data):
            raise self.engine.wrong(
                f"the server gives one vector of {len(data)} numbers a sequence, not rows of {self.columns} a step; "
                f"{self.engine.advice([reading])}"
            )
        for row in data:
            if not isinstance(row, list) or not all(is_number(value) for value in row):
                raise self.engine.wrong(f"the answer to {self.path} holds a row that is no list of finite numbers")
            if len(row) != self.columns:
                raise self.engine.wrong(
                    f"the server's rows have {len(row)} numbers where this family's head gives {self.columns}; "
                    f"{self.engine.advice([reading])}"
                )
        return data

    def select(self, table: Rows, reading: Reading) -> Rows:
        """The rows at the positions that are read."""
        if len(table) == len(reading.ids):
            return [table[at] for at in reading.reads]
        if len(table) != len(reading.reads):
            raise self.engine.miscounted(
                f"the server answered {len(table)} rows for {len(reading.reads)} steps ({len(reading.ids)} tokens); "
                f"{self.engine.advice([reading])}"
            )
        if step_tag([reading]) is None:
            raise self.engine.wrong(
                f"the server pools at other positions than are read; {self.engine.advice([reading])}"
            )
        return table


class _Pooling(_Pooled):
    """``/pooling``, one row a step tag or a token."""

    path = "/pooling"
    field = "data"

    def extra(self) -> dict[str, Any]:
        return {"task": "token_classify", "encoding_format": "float"}


class _Classify(_Pooled):
    """``/classify``, one row a sequence."""

    path = "/classify"
    field = "probs"

    def can_read(self, readings: Sequence[Reading]) -> bool:
        return all(reading.reads == (len(reading.ids) - 1,) for reading in readings)

    def table(self, data: Any, reading: Reading) -> Rows:
        return super().table([data] if isinstance(data, list) else data, reading)

    def select(self, table: Rows, reading: Reading) -> Rows:
        if not self.can_read([reading]):
            raise self.engine.wrong("the server classifies at the last token, and this input is read elsewhere")
        return table


class _GenerativeScoring:
    """``/generative_scoring`` of a generation server: P(good) against P(bad) after each prefix."""

    def __init__(self, engine: VllmEngine, head: TokenPair) -> None:
        self.engine = engine
        self.head = head

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """The logit of the probability; where that is 0 or 1 in double precision, the least it can be."""
        prefixes = [list(reading.ids[: at + 1]) for reading in readings for at in reading.reads]
        limit = self.engine.context
        if limit is not None and any(len(prefix) >= limit for prefix in prefixes):
            raise self.engine.wrong(f"an input has more than the {limit - 1} tokens that the server takes")
        body = {
            "model": self.engine.served,
            "query": [],
            "items": prefixes,
            "label_token_ids": [self.head.good, self.head.bad],
            "apply_softmax": True,
            "add_special_tokens": False,
        }
        answer = await self.engine.transport.post("/generative_scoring", body, weight=tokens_of(readings))
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self.engine.wrong("the answer to /generative_scoring has no data")
        if len(items) != len(prefixes):
            raise self.engine.miscounted(f"the server answered {len(items)} scores for {len(prefixes)} steps")
        items = sorted(items, key=lambda item: item.get("index", 0))
        scores = iter([self._logit(item.get("score")) for item in items])
        return [tuple(next(scores) for _ in reading.reads) for reading in readings]

    def _logit(self, probability: Any) -> float:
        if not is_number(probability) or not 0.0 <= probability <= 1.0:
            raise self.engine.wrong(f"the server answered {probability!r} where a probability was asked for")
        if probability in (0.0, 1.0):
            return _SATURATED if probability else -_SATURATED
        return math.log(probability) - math.log1p(-probability)


class _Completions:
    """``/v1/completions`` with ``prompt_logprobs``: the log-probability of each token that follows a read position."""

    def __init__(self, engine: VllmEngine) -> None:
        self.engine = engine

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.remote.engine.Route`."""
        body = {
            "model": self.engine.served,
            "prompt": [list(reading.ids) for reading in readings],
            "max_tokens": 1,
            "temperature": 0.0,
            "prompt_logprobs": 0,
            "add_special_tokens": False,
        }
        answer = await self.engine.transport.post("/v1/completions", body, weight=tokens_of(readings))
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list) or len(choices) != len(readings):
            raise self.engine.miscounted("the server did not answer one choice a sequence")
        choices = sorted(choices, key=lambda choice: choice.get("index", 0))
        return [
            self._read(choice.get("prompt_logprobs"), reading)
            for choice, reading in zip(choices, readings, strict=True)
        ]

    def _read(self, rows: Any, reading: Reading) -> tuple[float, ...]:
        if not isinstance(rows, list) or len(rows) != len(reading.ids):
            raise self.engine.wrong(
                "the server gives no log-probability for each token of the prompt (prompt_logprobs)"
            )
        return tuple(self._of(rows[at + 1], reading.ids[at + 1]) for at in reading.reads)

    def _of(self, row: Any, token: int) -> float:
        entry = row.get(str(token)) if isinstance(row, dict) else None
        number = entry.get("logprob") if isinstance(entry, dict) else None
        if number is None or not is_number(number):
            raise self.engine.wrong(f"the server gives no log-probability of token {token}, which was sent")
        return float(number)


_PAIR = 2


def _first_model(body: Any) -> dict[str, Any] | None:
    models = body.get("data") if isinstance(body, dict) else None
    return models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else None


def _probes(readings: Sequence[Reading]) -> list[Reading]:
    """A few of the first readings, in one request; a lone read is also taken from shortened inputs, for more rows."""
    some = next(parted(readings[:_PROBES]))
    first = some[0]
    if sum(len(reading.reads) for reading in some) > 1 or len(first.ids) < _PROBES or step_tag(some) is not None:
        return some
    lengths = (len(first.ids) // 2, len(first.ids) * 3 // 4)
    return some + [Reading(ids=first.ids[:length], reads=(length - 1,)) for length in lengths]


def _activated(row: Sequence[float]) -> list[float]:
    """What vLLM's classifier activation makes of logits: softmax of several, the logistic function of one."""
    if len(row) == 1:
        return [logistic(row[0])]
    top = max(row)
    powers = [math.exp(number - top) for number in row]
    return [power / math.fsum(powers) for power in powers]


def _close(left: Sequence[float], right: Sequence[float]) -> bool:
    return all(abs(a - b) <= _TOLERANCE for a, b in zip(left, right, strict=True))


def _is_distribution(row: Sequence[float]) -> bool:
    return min(row) >= 0.0 and math.isclose(math.fsum(row), 1.0, abs_tol=1e-3)


def _is_absent(error: StatusError) -> bool:
    """Whether the server has no such route, or not this task on it."""
    unsupported = re.search(r"task|support", str(error), re.IGNORECASE) is not None
    return error.status in (_NOT_FOUND, _NOT_ALLOWED, _NOT_IMPLEMENTED) or (
        error.status == _BAD_REQUEST and unsupported
    )
