"""A model's response made ready for reading: what is not its final say is blanked out, and nothing moves."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from magicore.answers.characters import plain

MOST_SENTENCES: Final = 200
"""How many closing sentences are read where nothing marks an answer."""

_THINKING: Final = "think|thinking|thought|reasoning|scratchpad"
_THINK_CLOSE: Final = re.compile(rf"</(?:{_THINKING})>|<\|end_of_thought\|>", re.IGNORECASE)
_THINK_OPEN: Final = re.compile(rf"<(?:{_THINKING})>|<\|begin_of_thought\|>", re.IGNORECASE)
_LEADING_HEADER: Final = re.compile(
    r"\s*+(?:<\|im_start\|>|<\|start_header_id\|>)?\s*+(?:assistant\b)?\s*+(?:<\|end_header_id\|>)?"
)
_ROLE_TOKEN: Final = re.compile(
    r"<\|(?:im_start|im_end|endoftext|end_of_text|eot_id|start_header_id|user|assistant|system|end)\|>|</s>"
    r"|<end_of_turn>"
)
_NEXT_QUESTION: Final = re.compile(r"\n[ \t]*+(?:Human|User|Question|Problem|Q)\s?\d{0,3}\s?:", re.IGNORECASE)
_ANSWERED: Final = re.compile(r"\\boxed|answer\W{0,4}\s?(?:is|:)|####", re.IGNORECASE)
_CALCULATOR: Final = re.compile(r"<<[^<>\n]{0,200}>>")
_ABBREVIATIONS: Final = ("Mr", "Ms", "Dr", "Rs", "vs", "St", "No", "no", "Jr", "Mrs", "e.g", "i.e", "etc", "approx")
_NOT_ABBREVIATED: Final = "".join(rf"(?<!\b{re.escape(word)}\.)" for word in _ABBREVIATIONS)
_SENTENCE_END: Final = re.compile(
    rf"[.!?]{_NOT_ABBREVIATED}(?<![\s(][A-Z]\.)(?<!^\d\.)(?<!\n\d\.)(?<!\n\d\d\.)[\"')\]*_]{{0,4}}(?=\s)"
    r"|[\u3002\uff01\uff1f]|\n"
)
"""A mark that ends a sentence, or a line's end; not after an abbreviation, an initial or a list number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What can be read for an answer.

    Attributes:
        raw: The response as written.
        text: The same length, in plain characters, with thinking, calculator notes and other speakers' turns blanked.
    """

    raw: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A stretch of `Response.text` that ends a sentence or a line; `start` and `end` exclude outer spaces."""

    text: str
    start: int
    end: int


def prepare(raw: str, *, cut: bool) -> Response:
    """Blanks what is not the response's final say.

    Args:
        raw: The response as written.
        cut: Whether the chain was cut by length; then thinking that never closed hides everything after it.
    """
    text = plain(raw)
    text = _CALCULATOR.sub(_blank, text)
    start = max((match.end() for match in _THINK_CLOSE.finditer(text)), default=0)
    if cut:
        opened = _THINK_OPEN.search(text, start)
        text = text[: opened.start()] if opened else text
    header = _LEADING_HEADER.match(text, start)
    start = header.end() if header else start
    end = _end_of_turn(text, start)
    return Response(raw=raw, text=" " * start + text[start:end] + " " * (len(raw) - end if end > start else 0))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _end_of_turn(text: str, start: int) -> int:
    token = _ROLE_TOKEN.search(text, start)
    end = token.start() if token else len(text)
    answered = _ANSWERED.search(text, start, end)
    question = _NEXT_QUESTION.search(text, answered.end(), end) if answered else None
    return question.start() if question else end


def sentences(text: str, start: int, end: int) -> Iterator[Sentence]:
    """The sentences and lines of `text[start:end]`, in order, without empty ones."""
    begin = start
    for match in _SENTENCE_END.finditer(text, start, end):
        sentence = _trimmed(text, begin, match.end())
        if sentence:
            yield sentence
        begin = match.end()
    last = _trimmed(text, begin, end)
    if last:
        yield last


def closing_sentences(text: str) -> list[Sentence]:
    """The last sentences of `text`, at most `MOST_SENTENCES`, in order."""
    return list(deque(sentences(text, 0, len(text)), maxlen=MOST_SENTENCES))


def _trimmed(text: str, start: int, end: int) -> Sentence | None:
    body = text[start:end]
    lead = len(body) - len(body.lstrip())
    body = body.strip()
    return Sentence(text=body, start=start + lead, end=start + lead + len(body)) if body else None
