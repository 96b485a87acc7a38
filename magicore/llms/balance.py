"""Several servers of one model behind one name: each request goes to the one with the fewest tokens outstanding."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from magicore.errors import ConnectionFailed, LanguageModelError
from magicore.llms.base import Generation, LanguageModel, Request, Traits, traits
from magicore.llms.profile import EndpointProfile

_FIRST_REST_S = 1.0
_LONGEST_REST_S = 60.0


@dataclass
class _Replica:
    """One server: what it is working on, and until when it is left alone after it did not answer."""

    model: LanguageModel
    outstanding: int = 0
    rests_until: float = 0.0
    rest_s: float = 0.0


class Balanced:
    """Replicas of one model. A server that does not answer is left alone, for longer each time, and then tried again.

    A request that finds its server dead goes to another at once. When every server is resting, the one whose rest ends
    first is tried.
    """

    def __init__(self, replicas: Sequence[LanguageModel], *, clock: Callable[[], float] = time.monotonic) -> None:
        if not replicas:
            raise ValueError("a balanced model needs at least one replica")
        self.name = replicas[0].name
        self.fingerprint = replicas[0].fingerprint
        self.profile: EndpointProfile = getattr(replicas[0], "profile", None) or EndpointProfile()
        self._replicas = [_Replica(model) for model in replicas]
        self._clock = clock

    @property
    def traits(self) -> Traits:
        """Those of the first replica."""
        return traits(self._replicas[0].model)

    async def generate(self, request: Request) -> Generation:
        """What the least busy server generates.

        Raises:
            ConnectionFailed: No server answered.
            LanguageModelError: As the server's model.
        """
        weight = request.sampling.max_tokens * len(request.indices)
        tried: list[_Replica] = []
        lost = 0
        while True:
            replica = self._pick(tried)
            tried.append(replica)
            replica.outstanding += weight
            try:
                generation = await replica.model.generate(request)
            except ConnectionFailed as error:
                lost += error.lost
                replica.rest_s = min(_LONGEST_REST_S, replica.rest_s * 2 or _FIRST_REST_S)
                replica.rests_until = self._clock() + replica.rest_s
                if len(tried) == len(self._replicas):
                    error.lost = lost
                    raise
            except LanguageModelError as error:
                error.lost += lost
                raise
            else:
                replica.rest_s = replica.rests_until = 0.0
                return replace(generation, lost=generation.lost + lost)
            finally:
                replica.outstanding -= weight

    async def aclose(self) -> None:
        """Close every replica."""
        for replica in self._replicas:
            await replica.model.aclose()

    def _pick(self, tried: Sequence[_Replica]) -> _Replica:
        now = self._clock()
        left = [replica for replica in self._replicas if replica not in tried]
        awake = [replica for replica in left if replica.rests_until <= now]
        if awake:
            return min(awake, key=lambda replica: replica.outstanding)
        return min(left, key=lambda replica: replica.rests_until)
