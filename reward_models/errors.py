"""Errors of the reward models.

RewardModelError
├── UnknownRewardModelError     no such name; says what is near
├── MissingExtraError           an optional package is absent; says how to install it
├── CheckpointError             a checkpoint folder or file is missing, damaged, or unsafe to load
├── StepCountError              the scores do not match the steps; always a defect, never papered over
├── TagInTextError              the question or solution contains the model's own step tag
├── ScaleError                  an unbounded score without a declared mapping to [0, 1]
├── CapabilityError             the model needs something (log-probabilities, generation) that is not there
└── ScoringServerError          a scoring server could not be reached or answered nonsense
"""

from __future__ import annotations


class RewardModelError(Exception):
    """Anything that went wrong in a reward model; names the model and, where there is one, the solution."""

    def __init__(self, message: str, *, model: str | None = None, solution: str | None = None) -> None:
        named = (("reward model", model), ("solution", solution))
        where = ", ".join(f"{what} {name!r}" for what, name in named if name)
        super().__init__(f"{where}: {message}" if where else message)
        self.model = model
        self.solution = solution


class UnknownRewardModelError(RewardModelError):
    """No reward model has this name."""


class MissingExtraError(RewardModelError):
    """A package needed for this model is not installed."""


class CheckpointError(RewardModelError):
    """A checkpoint is incomplete, damaged, of another architecture, or only available in an unsafe format."""


class StepCountError(RewardModelError):
    """The number of scores does not equal the number of steps."""


class TagInTextError(RewardModelError):
    """The text holds the model's step tag, so positions would be wrong."""


class ScaleError(RewardModelError):
    """A score lies outside [0, 1] and no mapping is declared."""


class CapabilityError(RewardModelError):
    """The model asks for something that the run cannot provide, such as token log-probabilities."""


class ScoringServerError(RewardModelError):
    """A scoring server failed; ``retryable`` says whether trying again can help."""

    def __init__(
        self, message: str, *, model: str | None = None, solution: str | None = None, retryable: bool = False
    ) -> None:
        super().__init__(message, model=model, solution=solution)
        self.retryable = retryable
