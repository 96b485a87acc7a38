"""Read what a judge replies: a verdict with its probability, or scores of steps as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reward_models.base import Reply
from reward_models.steps import split_thinking
from reward_models.types import Activation

_MOST_JSON_STARTS = 64
_VERDICT = re.compile(r"\b(?P<yes>yes|right|correct)\b|\b(?P<no>no|wrong|incorrect)\b", re.IGNORECASE)
_ECHO = re.compile(r"\W*yes\W{0,4}(?:or|/|\|)\W{0,4}no\b\W*", re.IGNORECASE)
_STATED = re.compile(
    r"[^\w.+-]{0,16}(?:\(?confidence\W{0,4})?(?P<number>\d{1,3}(?:\.\d{1,4})?)(?!\d|\.\d)\s?(?P<of>/\s?10(?!0))?"
)
_SCORE = re.compile(r"\s*(\d{1,2}(?:\.\d{1,4})?)\s*(?:/\s*10\s*)?\Z")
_LETTERS = re.compile(r"[^a-z]+")


class Unclear(Exception):
    """A reply that cannot be read, and why; ``spent`` counts the tokens that went into asking."""

    def __init__(self, reason: str, spent: int = 0) -> None:
        super().__init__(reason)
        self.spent = spent


class Verdict(NamedTuple):
    """How likely what was asked about is right, in [0, 1], and where that comes from."""

    value: float
    raw: float | None
    activation: Activation


def read_verdict(reply: Reply) -> Verdict:
    """A reply that says ``yes`` or ``no`` and perhaps how sure it is (50 to 100).

    The probability of the verdict's token is taken where the reply has log-probabilities, else what the reply states; a
    bare ``yes`` or ``no`` is 1 or 0. Thinking is passed over.

    Raises:
        Unclear: There is no verdict, or its confidence makes no sense.
    """
    if reply.logprobs is not None and (verdict := _verdict_from_tokens(reply)) is not None:
        return verdict
    text = split_thinking(reply.text)[1]
    found = _find_verdict(text, 0)
    if found is None:
        raise Unclear("it says neither `yes` nor `no`")
    stated = _STATED.match(text, found.end())
    sure = 1.0
    if stated is not None:
        number = float(stated["number"])
        sure = number / 10 if stated["of"] else number if number <= 1 and "." in stated["number"] else number / 100
        if not 0.5 <= sure <= 1:
            raise Unclear(f"the confidence {stated['number']} is not between 50 and 100")
    value = sure if found["yes"] else 1.0 - sure
    return Verdict(value, value, "identity")


def _find_verdict(text: str, start: int) -> re.Match[str] | None:
    if echo := _ECHO.match(text, start):
        start = echo.end()
    return _VERDICT.search(text, start)


def _verdict_from_tokens(reply: Reply) -> Verdict | None:
    """From the alternatives at the verdict's token; ``None`` where they are not given or do not show it."""
    rows = reply.logprobs or ()
    pieces = (
        reply.tokens if reply.tokens is not None else [max(row, key=row.__getitem__) if row else "" for row in rows]
    )
    if len(pieces) != len(rows):
        return None
    text, said = "".join(pieces), split_thinking(reply.text)[1].strip()
    start = text.rfind(said) if said else -1  # the rows may begin with reasoning that the text leaves out
    found = _find_verdict(text, start) if start >= 0 else None
    if found is None:
        return None
    end, at = 0, 0
    for at, piece in enumerate(pieces):  # noqa: B007 - the index is what is looked for
        end += len(piece)
        if end > found.start():
            break
    return _weighed(rows[at])


def _weighed(row: Mapping[str, float]) -> Verdict | None:
    yes, no = (
        math.fsum(math.exp(min(0.0, value)) for token, value in row.items() if _means(token, words))
        for words in (("yes", "right", "correct"), ("no", "wrong", "incorrect"))
    )
    if len(row) < 2 or yes + no == 0:
        return None
    value = yes / (yes + no)
    odds = math.log(yes) - math.log(no) if yes and no else None
    return Verdict(value, odds, "softmax")


def _means(token: str, words: Sequence[str]) -> bool:
    """Whether a token is one of the words or its beginning, dressed in white space and marks as tokens are."""
    letters = _LETTERS.sub("", token.lower())
    return bool(letters) and any(word.startswith(letters) for word in words)


def read_step_scores(text: str, numbers: Sequence[int]) -> list[float]:
    """A JSON reply with one score from 0 to 10 for each of the step ``numbers``, in their order.

    Reads ``{"scores": {"1": 9, ...}}``, the same without ``scores``, a list of numbers, or a list of objects with
    ``step`` and ``score``; surrounding prose, code fences and thinking are passed over; the last JSON value counts.

    Raises:
        Unclear: There is no such JSON, its scores are not those of the steps, or one is out of range.
    """
    reasons: list[str] = []
    for value in reversed(list(_json_values(split_thinking(text)[1]))):
        found = _by_number(value, numbers)
        if found is None:
            continue
        if sorted(found) == sorted(numbers):
            scores = [_number(found[number]) for number in numbers]
            if all(score is not None for score in scores):
                return [score for score in scores if score is not None]
            reasons.append("a score is not a number from 0 to 10")
        else:
            reasons.append(f"it scores {len(found)} steps, but {len(numbers)} were asked for")
    raise Unclear(reasons[0] if reasons else "it holds no JSON with scores")


def _json_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MOST_JSON_STARTS):
        start = min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
        if start < 0:
            return
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # not JSON, or nested beyond reason
            position = start + 1
        else:
            yield value


def _by_number(value: Any, numbers: Sequence[int]) -> dict[int, Any] | None:
    """Scores by step number from any of the accepted shapes; ``None`` if it is none of them."""
    if isinstance(value, dict) and "scores" in value:
        value = value["scores"]
    if isinstance(value, dict):
        pairs = [(_step_number(key), score) for key, score in value.items()]
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        pairs = [(_step_number(item.get("step")), item.get("score")) for item in value]
    elif isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
        first = numbers[0] if numbers else 1
        pairs = list(enumerate(value, start=first))
    else:
        return None
    found = {number: score for number, score in pairs if number is not None}
    return found if pairs and len(found) == len(pairs) else None


def _step_number(key: object) -> int | None:
    match = re.fullmatch(r"(?:step[ _]?)?(\d{1,6})", str(key).strip(), re.IGNORECASE)
    return int(match[1]) if match else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        match = _SCORE.match(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10:
        return None
    return float(value)
