"""What an endpoint has shown of itself. Learned from its replies, remembered for the rest of the run and the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

_TELLING_REPLIES = 2
"""So many replies must show a shortcoming before it is believed: one may be an accident."""
_TELLING_LENGTH = 32
"""Characters below which equal samples say nothing: short answers may well be equal."""
_OF_THE_MOMENT = ("answered", "most_given", "short", "alike")


@dataclass(kw_only=True)
class EndpointProfile:
    """One endpoint's habits; ``None`` is not known yet. The replicas of one model share a profile.

    Attributes:
        limit: The parameter that takes the token limit, ``max_tokens`` or ``max_completion_tokens``.
        refused: Parameters it answers with an error, and are therefore left out, with its words.
        n: Whether it gives as many samples as it is asked for in one request.
        max_n: The most samples it gives in one reply, where that is fewer than it was asked for.
        distinct: Whether several samples of one reply differ.
        seeds: Whether equal seeds give equal samples and different ones different samples; found out by a probe only.
        logprobs: Whether log-probabilities come when they are asked for.
        usage: Whether it says what it charges.
        reasoning: The field in which reasoning comes, ``inline`` for a ``<think>`` block in the text.
        stop_reasons: Whether it says why a completion ended.
        honest_stops: Whether a completion that fills the token limit is said to be cut.
        answered: Whether it has ever answered, in this process.
        most_given: The most samples that one reply to a request for several has brought.
        short: Replies that brought no more than that, and fewer than were asked for.
        alike: Replies whose samples were all equal.
    """

    limit: str | None = None
    refused: dict[str, str] = field(default_factory=dict)
    n: bool | None = None
    max_n: int | None = None
    distinct: bool | None = None
    seeds: bool | None = None
    logprobs: bool | None = None
    usage: bool | None = None
    reasoning: str | None = None
    stop_reasons: bool | None = None
    honest_stops: bool | None = None
    answered: bool = False
    most_given: int = 0
    short: int = 0
    alike: int = 0

    def learn_count(self, asked: int, given: int) -> None:
        """A reply brought ``given`` of ``asked`` samples.

        An endpoint is believed to have a limit when two replies stop at the same number, and none has brought more.
        """
        if asked == 1:
            return
        if given > self.most_given:
            self.most_given, self.short = given, 0
        if given == asked:
            self.n = True
        elif given == self.most_given:
            self.short += 1
            if self.short >= _TELLING_REPLIES and self.max_n is None:
                self.max_n, self.n = given, False

    def learn_samples(self, texts: Sequence[str]) -> None:
        """A reply to a request at a temperature above 0 brought several samples."""
        if len(texts) > 1 and len(set(texts)) > 1:
            self.distinct = True
        elif len(texts) > 1 and len(texts[0]) >= _TELLING_LENGTH and self.distinct is None:
            self.alike += 1
            if self.alike >= _TELLING_REPLIES:
                self.distinct = False

    def known(self) -> dict[str, Any]:
        """What is worth remembering, as a JSON value."""
        return {name: value for name, value in asdict(self).items() if name not in _OF_THE_MOMENT}

    def recall(self, known: Mapping[str, Any]) -> None:
        """Take over what was remembered of the same endpoint.

        That it gave no log-probabilities is found out anew: the server may have learned to.
        """
        for spec in fields(self):
            if spec.name in known and spec.name not in _OF_THE_MOMENT:
                setattr(self, spec.name, known[spec.name])
        self.logprobs = self.logprobs or None
        for name in ("logprobs", "top_logprobs"):
            self.refused.pop(name, None)
