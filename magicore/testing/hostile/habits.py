"""What an endpoint always does, as opposed to what goes wrong at times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Treatment = Literal["honoured", "ignored", "refused"]


@dataclass(frozen=True, kw_only=True)
class Habits:
    """An endpoint's habits; the default ones are good.

    Attributes:
        n: What becomes of ``n``; where it is ignored, one choice comes.
        max_n: The most choices a reply ever has.
        seed: What becomes of ``seed``. Where it is honoured, equal requests with equal seeds get equal samples.
        distinct: Whether the samples of one reply differ at a temperature above 0.
        logprobs: What becomes of ``logprobs``.
        usage: Whether usage is stated.
        reasoning: Where reasoning goes: ``reasoning_content``, ``reasoning``, ``inline`` (a ``<think>`` block), or
            ``None`` for a model without.
        stop_reasons: Whether ``finish_reason`` is stated.
        limit: The token-limit parameter it takes; the other is refused. ``None``: both.
        refused: Further parameters that are refused.
        context: Tokens of prompt and limit together; more is refused.
        owner: ``owned_by`` in the list of models.
        key: The API key that is wanted, if any. Error messages quote the key that was sent, as careless servers do.
    """

    n: Treatment = "honoured"
    max_n: int | None = None
    seed: Treatment = "honoured"
    distinct: bool = True
    logprobs: Treatment = "honoured"
    usage: bool = True
    reasoning: Literal["reasoning_content", "reasoning", "inline"] | None = None
    stop_reasons: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    refused: tuple[str, ...] = ()
    context: int | None = None
    owner: str = "magicore-testing"
    key: str | None = None

    def refusal(self, body: Mapping[str, Any]) -> tuple[str, str] | None:
        """The parameter that is refused, and the message."""
        unwanted = list(self.refused)
        unwanted += [name for name in ("n", "seed", "logprobs") if getattr(self, name) == "refused"]
        if self.limit is not None:
            unwanted += [name for name in ("max_tokens", "max_completion_tokens") if name != self.limit]
        for name in unwanted:
            if name in body:
                return name, f"Unsupported parameter: '{name}' is not supported with this model."
        return None

    def choices(self, asked: int) -> int:
        """How many choices a request for ``asked`` gets."""
        given = asked if self.n == "honoured" else 1
        return given if self.max_n is None else min(given, self.max_n)
