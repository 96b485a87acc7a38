"""What the scoring servers' clients have in common: each is an :class:`~reward_models.families.reading.Engine`.

A client sends token ids, never text, so no server's template or tokenizer can change what is scored, and it checks the
shape of every answer: one row a position, of the width that the family's head has, finite numbers only. Before it
believes the first scores, it asks for something whose answer gives a wrong configuration away (see each client).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from reward_models._sync import run_sync
from reward_models.errors import ScoringServerError, StepCountError
from reward_models.families.family import Family
from reward_models.families.heads import Head, LinearHead, MlpHead
from reward_models.families.reading import Engine, Reading
from reward_models.names import ModelName
from reward_models.remote.transport import Transport

_READINGS_A_REQUEST = 16
_TOKENS_A_REQUEST = 32_768
Rows = list[list[float]]


class Route(Protocol):
    """One way to ask a server for raw scores."""

    async def raw(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """One number for each read of each reading; the caller keeps requests small."""
        ...


class AsyncEngine(Engine, Protocol):
    """An engine that also scores without holding up an event loop."""

    async def araw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """As ``raw_scores``."""
        ...


class RemoteEngine:
    """A scoring server as an engine. Subclasses choose the route and test it when it is first needed.

    Attributes:
        fingerprint: The kind of server, the name with its URLs, and the model that is served there.
        served: The model id that the server knows.
        context: The most tokens the server takes, where it says so.
    """

    kind = ""

    def __init__(self, name: ModelName, family: Family, transport: Transport) -> None:
        self.name = name
        self.family = family
        self.transport = transport
        self.fingerprint = f"{self.kind} {name}"
        self.served: str | None = None
        self.context: int | None = None
        self._route: Route | None = None
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.name)!r})"

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """:meth:`araw_scores` for callers without an event loop."""
        return run_sync(self.araw_scores(readings))

    async def araw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """One number for each read of each reading, in order.

        Raises:
            ScoringServerError: The server cannot be reached, is configured wrongly, or answered something else.
        """
        if not readings:
            return []
        route = await self._open(readings)
        parts = await asyncio.gather(*(route.raw(part) for part in parted(readings)), return_exceptions=True)
        scores: list[tuple[float, ...]] = []
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            scores.extend(part)
        return scores

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.transport.aclose()

    def advice(self, readings: Sequence[Reading]) -> str:
        """How the server has to be started for this family; what is sent decides where it has to pool."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections of every event loop."""
        self.transport.close()

    async def _open(self, readings: Sequence[Reading]) -> Route:
        """The route, found and tested by the first caller while the others wait."""
        if self._route is None:
            lock = self._opening.setdefault(asyncio.get_running_loop(), asyncio.Lock())
            async with lock:
                if self._route is None:
                    self._route = await self._choose(readings)
        return self._route

    async def identify(self) -> None:
        """Ask every server which model it serves.

        Raises:
            ScoringServerError: No such server answers there, or the servers serve different models.
        """
        raise NotImplementedError

    async def _choose(self, readings: Sequence[Reading]) -> Route:
        """Find a route and test it on some of the first readings."""
        raise NotImplementedError

    def _serves(self, model: str, checkpoint: str = "") -> None:
        self.served = model
        self.fingerprint = " ".join(part for part in (self.kind, str(self.name), model, checkpoint) if part)

    def wrong(self, what: str) -> ScoringServerError:
        """An error of the server's, not worth trying again."""
        return ScoringServerError(what, model=str(self.name))

    def miscounted(self, what: str) -> StepCountError:
        """Another number of results than were asked for."""
        return StepCountError(what, model=str(self.name))


def parted(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """The readings in parts small enough to balance and to repeat."""
    part: list[Reading] = []
    tokens = 0
    for reading in readings:
        if part and (len(part) == _READINGS_A_REQUEST or tokens + len(reading.ids) > _TOKENS_A_REQUEST):
            yield part
            part, tokens = [], 0
        part.append(reading)
        tokens += len(reading.ids)
    if part:
        yield part


def tokens_of(readings: Sequence[Reading]) -> int:
    """How many tokens a request holds."""
    return sum(len(reading.ids) for reading in readings)


def columns(head: Head) -> int:
    """How many numbers a row has: one logit, or the two of (bad, good)."""
    return head.outputs if isinstance(head, LinearHead | MlpHead) else 1


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def step_tag(readings: Sequence[Reading]) -> int | None:
    """The token that stands at every read position and nowhere else, if there is one: a server can pool there."""
    tags = {reading.ids[at] for reading in readings for at in reading.reads}
    if len(tags) != 1:
        return None
    tag = tags.pop()
    return tag if all(reading.ids.count(tag) == len(reading.reads) for reading in readings) else None
