"""Shorten a conversation that does not fit a model's context, by rule: what is asked stays, the oldest goes first."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from magicore.llms.base import Message

SHORTEST = 400
"""Characters of a message that is not cut any further."""

_GAP = "\n[... left out ...]\n"


def shortened(messages: Sequence[Message], exemplars: Container[tuple[str, str]]) -> Iterator[tuple[Message, ...]]:
    """Ever shorter forms of a conversation, the one that loses least first.

    1. Worked examples go, the oldest first.
    2. The turns between the first user message (the question) and the last go, a reply with the message after it, the
       oldest first; without any, question and last message become one, so that the roles still alternate.
    3. The middle of the last message goes, half of it at a time, until 400 characters are left.

    System message, question, and the beginning and end of the last message always stay.
    """
    turns = list(messages)
    while (at := _oldest_exemplar(turns, exemplars)) is not None:
        del turns[at : at + 2]
        yield tuple(turns)
    first = next((at for at, turn in enumerate(turns) if turn["role"] == "user"), len(turns))
    while len(turns) - first > _QUESTION_REPLY_LAST:
        del turns[first + 1 : first + 3]
        yield tuple(turns)
    if len(turns) - first == _QUESTION_REPLY_LAST:
        question, last = turns[first]["content"], turns[-1]["content"]
        turns[first:] = [Message(role="user", content=f"{question}\n\n{last}")]
        yield tuple(turns)
    while turns and len(text := turns[-1]["content"]) > SHORTEST:
        keep = max(SHORTEST, len(text) // 2) - len(_GAP)
        turns[-1] = Message(
            role=turns[-1]["role"], content=text[: (keep + 1) // 2] + _GAP + text[len(text) - keep // 2 :]
        )
        yield tuple(turns)


_QUESTION_REPLY_LAST = 3


def _oldest_exemplar(turns: Sequence[Message], exemplars: Container[tuple[str, str]]) -> int | None:
    """Where the oldest pair of turns begins that is a worked example, never the last message."""
    for at in range(len(turns) - 2):
        pair = (turns[at], turns[at + 1])
        if all((turn["role"], turn["content"]) in exemplars for turn in pair) and pair[0]["role"] == "user":
            return at
    return None
