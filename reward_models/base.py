"""The two protocols every reward model follows, and the generation callable that judges are given.

A model is synchronous and takes a flat batch: ``score(solutions)`` returns one outcome for each solution, in order, the
empty list for an empty batch. It raises a :class:`~reward_models.errors.RewardModelError` or returns typed ``unscored``
entries; it never invents a number. A model that does I/O may add ``async def ascore`` with the same contract.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from reward_models.types import OutcomeScore, ScoringUsage, Solution, StepScores

Requirement = Literal["token_logprobs", "top_logprobs", "generate"]
Message = dict[str, str]


@runtime_checkable
class OutcomeRewardModel(Protocol):
    """Judges a whole solution.

    Optional attributes, read with a default: ``requires`` (frozenset of :data:`Requirement`), ``fingerprint`` (str that
    changes whenever scores may), ``usage`` (:class:`ScoringUsage` so far).
    """

    name: str

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]: ...


@runtime_checkable
class ProcessRewardModel(Protocol):
    """Judges every step of a solution. Optional attributes as above, and ``aggregation`` (recommended, str)."""

    name: str

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]: ...


RewardModel = OutcomeRewardModel | ProcessRewardModel


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One generated reply as a judge sees it.

    ``logprobs`` holds, for each generated token, its most likely alternatives as ``{token text: log-probability}``,
    the sampled token included, where they were asked for and given.
    """

    text: str
    tokens: tuple[str, ...] | None = None
    logprobs: tuple[dict[str, float], ...] | None = None
    stop: str | None = None
    usage: ScoringUsage = field(default_factory=ScoringUsage)


class Generate(Protocol):
    """How a generative reward model talks to a language model: it is given this callable, not a model class."""

    def __call__(
        self,
        messages: Sequence[Message],
        *,
        prefill: str | None = None,
        stop: Sequence[str] = (),
        max_tokens: int = 1024,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        n: int = 1,
    ) -> Awaitable[list[Reply]]: ...


OutcomeFactory = Callable[..., OutcomeRewardModel]
ProcessFactory = Callable[..., ProcessRewardModel]


def requirements(model: RewardModel) -> frozenset[Requirement]:
    """What the model needs from the run; nothing unless it says so."""
    found: frozenset[Requirement] = getattr(model, "requires", frozenset())
    return found


def fingerprint(model: RewardModel) -> str:
    """A string that changes whenever the model's scores may change: its name unless it says more."""
    found: str = getattr(model, "fingerprint", model.name)
    return found


def usage(model: RewardModel) -> ScoringUsage:
    """Tokens and calls the model has spent so far; zero for models that read no tokens."""
    found: ScoringUsage = getattr(model, "usage", ScoringUsage())
    return found
