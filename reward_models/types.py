"""The values that go into a reward model and come out of it: frozen, plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StepPart = Literal["text", "thinking"]
Activation = Literal["identity", "sigmoid", "softmax", "exp", "saturating"]
"""What was applied to a raw score to get the value: nothing, the logistic function, a softmax over label rows, the
exponential (a log-probability's), or ``raw / (raw + scale)`` (a confidence's, with the model's own scale)."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a solution: ``text`` is ``source[start:end]`` of the part it lies in, white space included."""

    text: str
    start: int
    end: int
    part: StepPart = "text"


@dataclass(frozen=True, kw_only=True)
class Solution:
    """One solution to be scored.

    Attributes:
        question: The question as the solver saw it.
        text: The solution without its thinking part.
        steps: The steps, in order, of ``thinking`` (where split) and of ``text``. Empty means: not yet split; a process
            reward model then splits with :func:`reward_models.steps.split_steps`.
        id: Any name, used in error messages.
        token_logprobs: Natural log-probability of each generated token, where the endpoint gave them.
        top_logprobs: Log-probabilities of the most likely tokens at each position, where given.
        stop: Why generation ended (``stop``, ``length``, ``filter``, ``error``), where known.
        thinking: The reasoning part (``<think>`` block or reasoning field), where there is one.
    """

    question: str
    text: str
    steps: tuple[Step, ...] = ()
    id: str | None = None
    token_logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[tuple[float, ...], ...] | None = None
    stop: str | None = None
    thinking: str | None = None


UnscoredCode = Literal[
    "no_equation",
    "no_steps",
    "empty_step",
    "past_context",
    "no_logprobs",
    "no_truth",
    "thinking_skipped",
    "unreadable",
    "tag_in_text",
    "failed",
]


@dataclass(frozen=True, kw_only=True)
class Unscored:
    """Stands where a score would be, and says why there is none. Never a number in disguise."""

    code: UnscoredCode
    reason: str


@dataclass(frozen=True, kw_only=True)
class OutcomeScore:
    """An outcome reward model's judgement of one whole solution.

    ``value`` lies in [0, 1] or is missing exactly when ``unscored`` is set; ``raw`` is what the model gave before
    ``activation`` was applied. ``tokens`` is the number of tokens the model reads to score this solution alone (what it
    would cost without sharing or a cache); ``None`` for models that read no tokens.
    """

    value: float | None
    raw: float | None = None
    activation: Activation = "identity"
    unscored: Unscored | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.unscored is None):
            raise ValueError("an OutcomeScore has a value or an `unscored` reason, never both and never neither")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"an outcome score lies in [0, 1], got {self.value!r}: declare a mapping (e.g. sigmoid)")


@dataclass(frozen=True, kw_only=True)
class StepScore:
    """A process reward model's judgement of one step; the same rules as :class:`OutcomeScore`."""

    value: float | None
    raw: float | None = None
    unscored: Unscored | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.unscored is None):
            raise ValueError("a StepScore has a value or an `unscored` reason, never both and never neither")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a step score lies in [0, 1], got {self.value!r}: declare a mapping (e.g. sigmoid)")


@dataclass(frozen=True, kw_only=True)
class StepScores:
    """One entry a step, in the order of ``steps``.

    ``aggregation`` is the family's own recommended way to one number (see :mod:`reward_models.aggregate`); a caller may
    choose another. ``tokens`` as in :class:`OutcomeScore`.
    """

    steps: tuple[Step, ...]
    scores: tuple[StepScore, ...]
    activation: Activation = "identity"
    aggregation: str = "product"
    tokens: int | None = None

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.scores):
            raise ValueError(f"{len(self.scores)} step scores for {len(self.steps)} steps: one a step is required")


@dataclass(frozen=True, kw_only=True)
class ScoringUsage:
    """What scoring cost: tokens read by the reward model, tokens it generated (judges), and calls."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
