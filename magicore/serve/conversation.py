"""What the client's messages mean to a method: what the solver is sent, and which question it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from magicore.answers.kinds import Kind
from magicore.datasets import read_problem
from magicore.errors import InputError
from magicore.llms.base import Message
from magicore.prompts import PromptSet
from magicore.types import Problem

READ_CHARACTERS = 20_000
"""Of a longer message only the end is looked at for its kind and its listed options."""
_OPENING = frozenset({"solver", "author"})
_SPEAKERS = {"system": "System", "developer": "System", "user": "User", "assistant": "Assistant"}


@dataclass(frozen=True, kw_only=True)
class Conversation(PromptSet):
    """A prompt set whose solver is sent the client's messages as they are; the other roles keep their wording."""

    opening: tuple[Message, ...] = ()

    def messages(self, template: str, kind: Kind, *, persona: str = "", **values: str) -> tuple[Message, ...]:
        """As :meth:`PromptSet.messages`. A persona, where a method gives its solvers one, ends the system message."""
        if template not in _OPENING:
            return super().messages(template, kind, persona=persona, **values)
        if not persona:
            return self.opening
        first, *rest = self.opening
        if first["role"] == "system":
            return (Message(role="system", content=f"{first['content']}\n\n{persona}"), *rest)
        return (Message(role="system", content=persona), *self.opening)


def conversation(prompts: PromptSet, opening: Sequence[Message]) -> Conversation:
    """``prompts`` with the client's messages as the solver's. Nothing is known of the answer format they ask for."""
    return Conversation(
        name=prompts.name,
        roles=prompts.roles,
        formats=prompts.formats,
        asked={},
        personas=prompts.personas,
        phrases=prompts.phrases,
        opening=tuple(opening),
    )


def check_turns(messages: Sequence[Message]) -> None:
    """Refuse a conversation that ends on nothing to answer.

    Raises:
        InputError: The last message is not a user's, or is empty.
    """
    last = messages[-1]
    if last["role"] != "user":
        raise InputError(f"the last message must be the user's; this is the {last['role']}'s")
    if not last["content"].strip():
        raise InputError("the last message is empty")


def problem_of(
    messages: Sequence[Message],
    name: str,
    *,
    kind: Kind | None = None,
    choices: Sequence[str] | None = None,
    question: str | None = None,
) -> Problem:
    """The question that a conversation asks, as reviewers and reward models read it.

    Kind and options that are not given are read from ``question``, or from the last message.

    Raises:
        InputError: What was given does not fit.
    """
    last = messages[-1]["content"] if question is None else question
    row = {"question": last[-READ_CHARACTERS:], "options": None if choices is None else list(choices)}
    read = read_problem(row, "magicore", name, kind=kind)
    return replace(read, question=shown(messages) if question is None else question, extra={})


def shown(messages: Sequence[Message]) -> str:
    """A conversation as one text: a lone message as it is, else every turn under its speaker's name.

    >>> shown([Message(role="user", content="2 + 2?")])
    '2 + 2?'
    """
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{_SPEAKERS[message['role']]}: {message['content']}" for message in messages)
