"""What a run paid for, by role and model, and whether the servers' counts can be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from magicore.store.files import read_results
from magicore.store.run_store import FailedCall, RunStore, StoredCompletion
from magicore.types import Completion, Usage

REWARD_ROLES = ("orm", "prm")
_ENDING = 4
"""Tokens that a choice may have beside its text: its end, a call for an answer, the tags around its thinking."""
_REMADE = 0.05
"""A text cut into tokens again may give so much more or less: tokens need not come back as they were sampled."""


@dataclass(frozen=True, kw_only=True)
class RoleAccount:
    """What one role spent on one model.

    Attributes:
        role, model: Whose account it is.
        usage: What the replies that came say they cost, and what unreadable ones say.
        failed: Calls that brought nothing.
        retries: Those that were made again.
        waited_s: Seconds put off before that.
        unknown: Replies that may have been charged for and never came.
    """

    role: str
    model: str
    usage: Usage = field(default_factory=Usage)
    failed: int = 0
    retries: int = 0
    waited_s: float = 0.0
    unknown: int = 0


def role_accounts(completions: Iterable[StoredCompletion], failures: Iterable[FailedCall]) -> list[RoleAccount]:
    """Add up a run's calls, sorted by role and model."""
    found: dict[tuple[str, str], RoleAccount] = {}

    def account(role: str, model: str) -> RoleAccount:
        return found.setdefault((role, model), RoleAccount(role=role, model=model))

    for row in completions:
        old = account(row.role, row.model)
        found[row.role, row.model] = replace(old, usage=old.usage + row.completion.usage)
    for call in failures:
        old = account(call.role, call.model)
        stated = Usage() if call.completion is None else Usage(prompt=call.prompt or 0, completion=call.completion)
        found[call.role, call.model] = replace(
            old,
            usage=old.usage + stated,
            failed=old.failed + 1,
            retries=old.retries + (call.waited_s > 0),
            waited_s=old.waited_s + call.waited_s,
            unknown=old.unknown + call.lost,
        )
    return [found[key] for key in sorted(found)]


def reward_accounts(results: Path) -> list[RoleAccount]:
    """What reward models read, as the results of a finished run say.

    Raises:
        InputError: The file cannot be read.
    """
    found: dict[tuple[str, str], Usage] = {}
    for record in read_results(results):
        for spent in record.result.usage:
            if spent.role in REWARD_ROLES:
                key = (spent.role, spent.model)
                found[key] = found.get(key, Usage()) + spent.usage
    return [RoleAccount(role=role, model=model, usage=found[role, model]) for role, model in sorted(found)]


def run_remarks(store: RunStore) -> dict[str, Any]:
    """What a summary says of a run as a whole, where there is something to say.

    ``unknown_calls``: replies that may have been charged for and are in no other number. ``warnings``: what the
    endpoints would not do.
    """
    remarks = {"unknown_calls": store.lost_replies(), "warnings": store.get_notes()}
    return {name: value for name, value in remarks.items() if value}


@dataclass(frozen=True, kw_only=True)
class Recounted:
    """One reply, counted again.

    Attributes:
        problem, role, model: Which call it answered.
        choices: Samples in it.
        stated: Tokens that the server says it generated, hidden reasoning left out.
        counted: Tokens of the texts.
    """

    problem: str
    role: str
    model: str
    choices: int
    stated: int
    counted: int

    @property
    def plausible(self) -> bool:
        """Whether the two agree, but for ends of texts and tokens that do not come back as they were sampled."""
        return abs(self.stated - self.counted) <= _ENDING * self.choices + _REMADE * self.counted


def recounted_with(
    completions: Iterable[StoredCompletion], counters: Mapping[str, Callable[[str], int]]
) -> Iterator[Recounted]:
    """Count the tokens of every reply again; ``counters`` count a text's tokens, by model.

    Replies of other models, without usage, and with a choice that shows nothing (null content) are left out: there is
    nothing to compare.
    """
    for reply in _replies(completions):
        first = reply[0]
        count = counters.get(first.model)
        shown = all(row.completion.text or row.completion.thinking for row in reply)
        metered = not any(row.completion.usage.unmetered for row in reply)
        if count is not None and shown and metered:
            yield Recounted(
                problem=first.problem,
                role=first.role,
                model=first.model,
                choices=len(reply),
                stated=sum(_visible(row.completion) for row in reply),
                counted=sum(count(row.completion.text) + count(row.completion.thinking or "") for row in reply),
            )


def _visible(completion: Completion) -> int:
    """Tokens charged for what can be seen."""
    hidden = completion.usage.reasoning if completion.thinking is None else 0
    return completion.usage.completion - hidden


def _replies(completions: Iterable[StoredCompletion]) -> Iterator[list[StoredCompletion]]:
    """The completions of each reply together: they are stored together, and the first bears the call."""
    reply: list[StoredCompletion] = []
    for row in completions:
        if reply and row.completion.usage.calls:
            yield reply
            reply = []
        reply.append(row)
    if reply:
        yield reply
