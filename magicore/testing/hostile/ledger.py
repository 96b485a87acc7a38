"""What an endpoint knows of every request it was sent: what it generated, what arrived, what it said it charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from magicore.testing.hostile.faults import FaultKind

Outcome = Literal["pending", "delivered", "undelivered", "refused", "gone"]


@dataclass(kw_only=True, slots=True)
class Entry:
    """One request.

    Attributes:
        number: Counted from 1, in the order of arrival.
        replica: Which replica got it.
        request: A hash of the request's body: equal requests have equal ones.
        attempt: How often the same request had come before.
        repeated: Whether a reply to the same request had been delivered before, so that this one was not needed.
        asked: Samples asked for.
        outcome: ``delivered``: a readable reply was written whole; ``undelivered``: tokens were generated and no choice
            arrived; ``refused``: an error status, nothing generated; ``gone``: the client left before the reply;
            ``pending``: not answered yet.
        given: Choices in the reply.
        prompt, completion: Tokens in truth.
        stated_prompt, stated_completion: Tokens as the reply states them; ``None`` where it states none.
        fault: What was done wrong.
    """

    number: int
    replica: int
    request: str
    attempt: int
    repeated: bool
    asked: int
    outcome: Outcome = "pending"
    given: int = 0
    prompt: int = 0
    completion: int = 0
    stated_prompt: int | None = None
    stated_completion: int | None = None
    fault: FaultKind | None = None


class Ledger:
    """Every request of an endpoint and its replicas."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._came: Counter[str] = Counter()
        self._delivered: set[str] = set()

    def open(self, *, request: str, replica: int, asked: int) -> Entry:
        """A new request."""
        entry = Entry(
            number=len(self.entries) + 1,
            replica=replica,
            request=request,
            attempt=self._came[request],
            repeated=request in self._delivered,
            asked=asked,
        )
        self._came[request] += 1
        self.entries.append(entry)
        return entry

    def settle(self, entry: Entry, outcome: Outcome) -> None:
        """How it ended."""
        entry.outcome = outcome
        if outcome == "delivered":
            self._delivered.add(entry.request)

    def clear(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self._came.clear()
        self._delivered.clear()

    def where(self, outcome: Outcome) -> Iterator[Entry]:
        """The entries that ended so."""
        return (entry for entry in self.entries if entry.outcome == outcome)

    def totals(self) -> dict[str, Any]:
        """Counts of everything: what ``GET /ledger`` answers.

        Tokens under ``delivered`` and ``undelivered`` are true ones; ``stated`` are those that delivered replies state.
        """
        faults = Counter(entry.fault for entry in self.entries if entry.fault is not None)
        delivered = list(self.where("delivered"))
        return {
            "requests": len(self.entries),
            "delivered": _tokens(delivered),
            "stated": {
                "replies": sum(entry.stated_completion is not None for entry in delivered),
                "prompt": sum(entry.stated_prompt or 0 for entry in delivered),
                "completion": sum(entry.stated_completion or 0 for entry in delivered),
            },
            "undelivered": _tokens(list(self.where("undelivered"))),
            "gone": _tokens(list(self.where("gone"))),
            "refused": sum(1 for _ in self.where("refused")),
            "pending": sum(1 for _ in self.where("pending")),
            "repeated": sum(entry.repeated for entry in self.entries),
            "faults": dict(sorted(faults.items())),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Every entry: what ``GET /ledger/entries`` answers."""
        return [asdict(entry) for entry in self.entries]


def _tokens(entries: list[Entry]) -> dict[str, int]:
    return {
        "replies": len(entries),
        "choices": sum(entry.given for entry in entries),
        "prompt": sum(entry.prompt for entry in entries),
        "completion": sum(entry.completion for entry in entries),
    }
