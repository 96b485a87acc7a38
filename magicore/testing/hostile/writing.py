"""What an endpoint writes: by rule, from recorded responses, or made to length."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from magicore.llms.base import Message, Request
from magicore.llms.rules import answer_by_rule
from magicore.types import CallKey

_TOKEN = re.compile(r"\w+|[^\w\s]")
_DIGIT = re.compile(r"\d")
_ROLES = {
    "refiner": re.compile(r"\bFeedback:|\bimproved solution\b", re.IGNORECASE),
    "reviewer": re.compile(r"\breview the solution\b", re.IGNORECASE),
}


class Written(NamedTuple):
    """One sample. ``tokens`` counts those of text and thinking."""

    text: str
    tokens: int
    thinking: str | None = None


Writer = Callable[[Sequence[Message], int], Written]
"""Writes one sample to a conversation; the number decides which of the many it could write."""


@lru_cache(maxsize=4096)
def count_tokens(text: str) -> int:
    """Tokens of this endpoint: words, and every other character that is not white space."""
    return len(_TOKEN.findall(text))


def cut_to(text: str, tokens: int) -> str:
    """The first ``tokens`` tokens of a text."""
    for number, match in enumerate(_TOKEN.finditer(text), 1):
        if number == tokens:
            return text[: match.end()]
    return text


def role_of(messages: Sequence[Message]) -> str:
    """The role a conversation asks for, judged by its last message: reviewer, refiner or solver."""
    last = messages[-1]["content"] if messages else ""
    return next((role for role, pattern in _ROLES.items() if pattern.search(last)), "solver")


def by_rule(messages: Sequence[Message], draw: int) -> Written:
    """Works a sum out, with slips, reviews and refines (:mod:`magicore.llms.rules`); without numbers, :class:`Made`."""
    if not any(_DIGIT.search(message["content"]) for message in messages):
        return Made()(messages, draw)
    request = Request(messages=tuple(messages), key=CallKey(problem="", role=role_of(messages)), seed=draw)
    text = answer_by_rule(request, 0)
    return Written(text, count_tokens(text))


@dataclass(frozen=True, kw_only=True)
class Made:
    """Samples of a fixed length, which say nothing and end in an answer: for measuring clients.

    Attributes:
        tokens: Tokens of a sample.
        spread: Each sample's length is drawn from ``tokens`` ± ``spread``.
        answers: The answers, each as likely as the others.
    """

    tokens: int = 100
    spread: int = 0
    answers: tuple[str, ...] = ("42", "42", "42", "41", "43")

    def __call__(self, messages: Sequence[Message], draw: int) -> Written:
        number = random.Random(draw).randrange(2**32)
        length = self.tokens + number % (2 * self.spread + 1) - self.spread
        return _made(max(8, length), self.answers[number // 1024 % len(self.answers)], number % 97)


@cache
def _made(tokens: int, answer: str, number: int) -> Written:
    ending = f"The final answer is {answer}."
    words, line = [f"Step 1: Trial {number}."], 1
    used = count_tokens(words[0]) + count_tokens(ending)
    while used < tokens:
        if (used + 1) % 40 == 0 and used + 3 < tokens:
            line += 1
            words.append(f"\nStep {line}:")
            used += 3
        else:
            words.append(" so")
            used += 1
    text = "".join(words) + "\n" + ending
    return Written(text, count_tokens(text))


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Samples that a model once wrote: rows of a recorded-responses file, found by the question in the conversation.

    A conversation that holds none of the questions, or for whose role nothing was recorded, is answered by rule.

    Attributes:
        rows: Objects with ``problem``, ``text``, and where known ``role``, ``thinking`` and ``tokens``.
        questions: Each problem's question.
    """

    rows: Sequence[Mapping[str, Any]]
    questions: Mapping[str, str]
    _found: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    _by_call: dict[tuple[str, str], list[Written]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for row in self.rows:
            text, thinking = str(row["text"]), row.get("thinking")
            tokens = row.get("tokens") or count_tokens(text) + count_tokens(thinking or "")
            key = (str(row["problem"]), str(row.get("role") or "solver"))
            self._by_call.setdefault(key, []).append(Written(text, tokens, thinking))

    def __call__(self, messages: Sequence[Message], draw: int) -> Written:
        last = messages[-1]["content"] if messages else ""
        if last not in self._found:
            self._found[last] = next((name for name, asked in self.questions.items() if asked in last), None)
        problem = self._found[last]
        written = None if problem is None else self._by_call.get((problem, role_of(messages)))
        return random.Random(draw).choice(written) if written else by_rule(messages, draw)


@cache
def filler(tokens: int) -> Written:
    """A text of so many tokens that comes to no end."""
    return Written(" ".join(["and"] * tokens), tokens)
