"""What an endpoint has shown of itself. Learned from its replies, remembered for the rest of the run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class EndpointProfile:
    """One endpoint's habits; ``None`` is not known yet. The replicas of one model share a profile.

    Attributes:
        limit: The parameter that takes the token limit, ``max_tokens`` or ``max_completion_tokens``.
        refused: Parameters it answers with an error, and are therefore left out, with its words.
        max_n: The most samples it gives in one reply.
        distinct: Whether several samples of one reply differ.
        logprobs: Whether log-probabilities come when they are asked for.
        usage: Whether it says what it charges.
        reasoning: The field in which reasoning comes, ``inline`` for a ``<think>`` block in the text.
        stop_reasons: Whether it says why a completion ended.
        answered: Whether it has ever answered.
    """

    limit: str | None = None
    refused: dict[str, str] = field(default_factory=dict)
    max_n: int | None = None
    distinct: bool | None = None
    logprobs: bool | None = None
    usage: bool | None = None
    reasoning: str | None = None
    stop_reasons: bool | None = None
    answered: bool = False
