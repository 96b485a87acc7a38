"""What becomes of a request's calls while it is in work: told to its stream, and added up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from magicore.errors import BadReply
from magicore.llms.calls import Call
from magicore.runtime.ledger import current_ledger
from magicore.runtime.observer import RunObserver
from magicore.serve.metrics import Metrics
from magicore.types import Problem, Usage


class Note(NamedTuple):
    """A line of progress on one of a request's answers."""

    choice: int
    text: str


@dataclass
class Account:
    """One request's calls.

    Attributes:
        notes: Lines of progress, in the order things happened.
        paid: What replies cost that came.
        unreadable: What replies say they cost that could not be read.
        lost: Replies that may have been charged for and never came.
    """

    notes: asyncio.Queue[Note] = field(default_factory=asyncio.Queue)
    paid: Usage = field(default_factory=Usage)
    unreadable: Usage = field(default_factory=Usage)
    lost: int = 0

    def called(self, call: Call, choice: int) -> None:
        """A call has ended."""
        self.paid += call.usage
        self.lost += call.lost
        if isinstance(call.error, BadReply) and call.error.completion is not None:
            self.unreadable += Usage(prompt=call.error.prompt or 0, completion=call.error.completion)
        if call.error is None or call.retry_in is not None:  # a failure for good is the request's answer, or none
            self.notes.put_nowait(Note(choice, _line(call)))


def _line(call: Call) -> str:
    role = call.key.role + (f", round {call.key.round}" if call.key.round else "")
    if call.error is None:
        samples = "1 sample" if call.given == 1 else f"{call.given} samples"
        return f"{role}: {samples}, {call.usage.completion} tokens\n"
    return f"{role}: a call failed ({type(call.error).__name__}); again in {call.retry_in or 0.0:.1f} s\n"


class Watcher(RunObserver):
    """Is told of every call of the engine, and passes it on to the account of the request it is for.

    A judge's calls belong to the problem whose ledger is current.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._problems: dict[str, tuple[Account, int]] = {}

    def opened(self, problem: str, account: Account, choice: int) -> None:
        """A request begins to work on a problem."""
        self._problems[problem] = (account, choice)

    def closed(self, problem: str) -> None:
        """It has ended."""
        self._problems.pop(problem, None)

    def calling(self, model: str, samples: int) -> None:
        self._metrics.calling()

    def called(self, call: Call) -> None:
        self._metrics.called(call)
        ledger = current_ledger.get()
        found = self._problems.get(call.key.problem if ledger is None else ledger.problem)
        if found is not None:
            account, choice = found
            account.called(call, choice)

    def prepared(self, problem: Problem) -> None:
        if (found := self._problems.get(problem.id)) is not None:
            account, choice = found
            account.notes.put_nowait(Note(choice, "the first chains are scored\n"))
