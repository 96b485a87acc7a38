"""Small servers that answer as vLLM and SGLang document, over a model that is one function, and wrongly on request."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from fake_servers import Answer, Call

Row = list[float]
HIDDEN = 16


def number(ids: Sequence[int], salt: str = "") -> float:
    """The model: any prefix gives a number between -4 and 4."""
    digest = hashlib.sha256(f"{salt}{list(ids)}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 * 8 - 4


def logits(ids: Sequence[int], columns: int) -> Row:
    """A head's row after a prefix."""
    return [number(ids, f"label {at} ") for at in range(columns)]


def hidden(ids: Sequence[int], dimensions: Sequence[int] = tuple(range(HIDDEN))) -> Row:
    """Some dimensions of the hidden state after a prefix."""
    return [number(ids, f"dimension {at} ") / 4 for at in dimensions]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def activated(row: Row) -> Row:
    if len(row) == 1:
        return [sigmoid(row[0])]
    powers = [math.exp(value) for value in row]
    return [power / sum(powers) for power in powers]


def normalised(row: Row) -> Row:
    length = math.sqrt(sum(value * value for value in row))
    return [value / length for value in row]


class FakeVllm:
    """A vLLM pooling server.

    Args:
        task: The one pooling task it serves; others are refused as vLLM 0.32 does.
        pooling: STEP or ALL, for the token-wise tasks.
        columns: Labels of the classifier.
        tag: STEP's step tag.
        fault: hidden-dimensions, ignores-activation, always-activated, short, wide, nan, flat, one-result, regression.
    """

    def __init__(
        self,
        *,
        task: str = "token_classify",
        pooling: str = "STEP",
        columns: int = 1,
        tag: int = 99,
        fault: str | None = None,
        limit: int = 4096,
    ) -> None:
        self.task = task
        self.pooling = pooling
        self.columns = columns
        self.tag = tag
        self.fault = fault
        self.limit = limit

    def __call__(self, call: Call) -> Answer:
        if call.path == "/v1/models":
            return Answer(
                {"object": "list", "data": [{"id": "served", "root": "org/checkpoint", "max_model_len": self.limit}]}
            )
        if call.path == "/pooling":
            return self.pool(call.body)
        if call.path == "/classify" and self.task == "classify":
            return self.classify(call.body)
        if call.path == "/score" and self.task == "classify":
            return self.score(call.body)
        return Answer({"detail": "Not Found"}, status=404)

    def refuse(self, message: str) -> Answer:
        error = {"message": message, "type": "BadRequestError", "param": "task", "code": 400}
        return Answer({"error": error}, status=400)

    def pool(self, body: dict[str, Any]) -> Answer:
        task = body.get("task")
        if task not in (None, self.task):
            return self.refuse(f"Unsupported task: {task!r} Supported tasks: ({self.task!r},)")
        assert all(isinstance(ids, list) for ids in body["input"]), "text was sent"
        if any(len(ids) > self.limit for ids in body["input"]):
            return self.refuse(f"This model's maximum context length is {self.limit} tokens.")
        data: list[Any] = [self.rows(ids, body["use_activation"]) for ids in body["input"]]
        if self.fault == "flat":
            data = [hidden(ids) for ids in body["input"]]
        if self.fault == "one-result":
            data = data[:1]
        items = [{"index": at, "object": "pooling", "data": rows} for at, rows in enumerate(data)]
        return Answer({"id": "pool-1", "object": "list", "model": "served", "data": items[::-1], "usage": {}})

    def rows(self, ids: list[int], use_activation: bool) -> list[Row]:
        positions = [at for at, token in enumerate(ids) if token == self.tag or self.pooling == "ALL"]
        prefixes = [ids[: at + 1] for at in positions]
        if self.fault == "hidden-dimensions":
            rows = [hidden(prefix, (6, 3)) for prefix in prefixes]
            return [normalised(row) for row in rows] if use_activation else rows
        rows = [logits(prefix, self.columns) for prefix in prefixes]
        if self.fault == "regression":
            return rows
        if self.fault == "always-activated" or (use_activation and self.fault != "ignores-activation"):
            rows = [activated(row) for row in rows]
        if self.fault == "short":
            return rows[:-1]
        if self.fault == "wide":
            return [[*row, 0.0] for row in rows]
        if self.fault == "nan":
            return [[math.nan] * len(row) for row in rows]
        return rows

    def classify(self, body: dict[str, Any]) -> Answer:
        rows = [logits(ids, self.columns) for ids in body["input"]]
        if self.fault == "always-activated" or (body["use_activation"] and self.fault != "regression"):
            rows = [activated(row) for row in rows]
        items = [
            {"index": at, "label": "LABEL_0", "probs": row, "num_classes": len(row)} for at, row in enumerate(rows)
        ]
        return Answer({"id": "classify-1", "object": "list", "model": "served", "data": items, "usage": {}})

    def score(self, body: dict[str, Any]) -> Answer:
        pairs = list(zip(body["text_1"], body["text_2"], strict=True))
        if any(len(text) > self.limit for _, text in pairs):
            return self.refuse(f"This model's maximum context length is {self.limit} tokens.")
        scores = [pair_logit(*pair) for pair in pairs]
        if self.fault == "always-activated" or (body["use_activation"] and self.fault != "regression"):
            scores = [sigmoid(score) for score in scores]
        items = [{"index": at, "object": "score", "score": score} for at, score in enumerate(scores)]
        if self.fault == "short":
            items = items[:-1]
        usage = {"prompt_tokens": 5 * len(pairs)}
        return Answer({"object": "list", "model": "served", "data": items[::-1], "usage": usage})


def pair_logit(question: str, text: str) -> float:
    return number([len(question), *text.encode()], "pair ")


def probabilities(ids: Sequence[int], labels: Sequence[int]) -> Row:
    """A generation server's full-vocabulary probabilities of some next tokens."""
    return [0.2 * sigmoid(number(ids, f"token {label} ")) for label in labels]


def pair(ids: Sequence[int], good: int, bad: int) -> float:
    """The difference of two tokens' logits."""
    high, low = probabilities(ids, (good, bad))
    return math.log(high / low)


class FakeGeneration:
    """A vLLM generation server: generative scoring, and log-probabilities of the prompt."""

    def __init__(self, *, limit: int = 4096, fault: str | None = None) -> None:
        self.limit = limit
        self.fault = fault

    def __call__(self, call: Call) -> Answer:
        body = call.body
        if call.path == "/v1/models":
            return Answer({"data": [{"id": "served", "max_model_len": self.limit}]})
        if call.path == "/generative_scoring":
            assert body["query"] == []
            rows = [probabilities(ids, body["label_token_ids"]) for ids in body["items"]]
            scores = [row[0] / sum(row) for row in rows]
            if self.fault == "certain":
                scores = [float(at % 2) for at in range(len(scores))]
            if self.fault == "short":
                scores = scores[:-1]
            if self.fault == "above":
                scores = [score + 1 for score in scores]
            items = [{"index": at, "object": "score", "score": score} for at, score in enumerate(scores)]
            return Answer({"object": "list", "model": "served", "data": items, "usage": {}})
        if call.path == "/v1/completions":
            choices = [
                {"index": at, "text": "x", "prompt_logprobs": self.prompt(ids)} for at, ids in enumerate(body["prompt"])
            ]
            return Answer({"choices": choices})
        return Answer({"detail": "Not Found"}, status=404)

    def prompt(self, ids: list[int]) -> list[Any] | None:
        if self.fault == "no-prompt-logprobs":
            return None
        rows: list[Any] = [None]
        for at in range(1, len(ids)):
            rows.append({str(ids[at]): {"logprob": log_probability(ids, at), "rank": 3, "decoded_token": "x"}})
        return rows


def log_probability(ids: Sequence[int], at: int) -> float:
    """Of the token at a position, given what stands before it."""
    return number(ids[: at + 1], "next ") - 5


class FakeSglang:
    """An SGLang server, of generations or (``embedding``) of scores at the last token."""

    def __init__(self, *, embedding: bool = False, fault: str | None = None) -> None:
        self.embedding = embedding
        self.fault = fault

    def __call__(self, call: Call) -> Answer:
        body = call.body
        if call.path == "/get_model_info":
            return Answer({"model_path": "served", "is_generation": not self.embedding})
        if call.path == "/v1/score" and not self.embedding:
            assert body["query"] == [] and body["apply_softmax"] is False
            rows = [probabilities(ids, body["label_token_ids"]) for ids in body["items"]]
            if self.fault == "short":
                rows = rows[:-1]
            if self.fault == "zero":
                rows = [[0.0, row[1]] for row in rows]
            return Answer({"scores": rows, "model": "served", "object": "scoring"})
        if call.path == "/classify" and self.embedding:
            vectors = [hidden(ids) if self.fault == "hidden" else logits(ids, 1) for ids in body["input_ids"]]
            found: list[Any] = [{"embedding": vector, "meta_info": {}} for vector in vectors]
            return Answer(found[:-1] if self.fault == "short" else found)
        if call.path == "/generate" and not self.embedding:
            return Answer(
                [{"text": "x", "meta_info": {"input_token_logprobs": sglang_prompt(ids)}} for ids in body["input_ids"]]
            )
        return Answer({"detail": "Not Found"}, status=404)


def sglang_prompt(ids: Sequence[int]) -> list[Any]:
    first: list[Any] = [[None, ids[0], None]]
    return first + [[log_probability(ids, at), ids[at], None] for at in range(1, len(ids))]
