"""What a run may cost, told before it is spent."""

from __future__ import annotations

from dataclasses import dataclass

from magicore.config import RunConfig
from magicore.llms.base import traits
from magicore.llms.sampler import REMOTE_MAX_N
from magicore.methods.base import AnyMethod
from magicore.runtime.runtime import Engine
from magicore.runtime.source import Survey
from magicore.runtime.stages import Stage

CHARACTERS_A_TOKEN = 4
ASK_ABOVE_CALLS = 2000
"""A run that may take more calls to remote models asks first."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Bounds on a run's remote spending.

    Attributes:
        least_calls: If every question is easy and the endpoint gives many samples a call.
        most_calls: If every question is hard and each sample takes a call of its own, judges included.
        most_tokens: Prompt and completion tokens at the most, every completion at its limit.
    """

    least_calls: int
    most_calls: int
    most_tokens: int

    def __str__(self) -> str:
        return (
            f"between {self.least_calls:,} and {self.most_calls:,} calls, at most {self.most_tokens:,} tokens "
            "(every completion at its limit)"
        )


def estimate(
    method: AnyMethod, survey: Survey, engine: Engine, config: RunConfig, stage: Stage = "all"
) -> Estimate | None:
    """Estimate a run, or one stage of it; ``None`` when no remote language model takes part."""
    if not any(traits(model.model).remote for model in engine.models.values()):
        return None
    least, most = method.completions
    least, most = {"all": (least, most), "prepare": (least, least), "finish": (0, most - least)}[stage]
    judges = sum("generate" in service.requires for service in (engine.orm, engine.prm) if service is not None)
    n = survey.n
    prompt = survey.characters // max(1, n) // CHARACTERS_A_TOKEN + config.max_tokens
    return Estimate(
        least_calls=n * (-(-least // REMOTE_MAX_N) + judges * least),
        most_calls=n * most * (1 + judges),
        most_tokens=n * most * (1 + judges) * (prompt + config.max_tokens),
    )
