"""What a method is.

A method holds configuration only. It is an asynchronous function of one problem, given as a bound
:class:`~magicore.runtime.runtime.Runtime`, to a :class:`~magicore.types.Result`. A calibrated method has two stages,
because its verdicts need statistics over the initial chains of the whole batch: ``prepare`` draws and scores them,
``finish`` goes on once the statistics are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from difficulty import RewardStats
from magicore.errors import InputError
from magicore.roles.solver import solve
from magicore.runtime.runtime import Runtime
from magicore.types import Result, ScoredChain

Need = Literal["orm", "prm"]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The initial chains of one problem, scored.

    ``step_labels`` are what is known of their steps, by chain id: for each step a label from 0 (wrong) to 1 (right),
    or ``None``. Only labelled solutions have any.
    """

    chains: tuple[ScoredChain, ...]
    step_labels: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


@runtime_checkable
class Method(Protocol):
    """One method with its configuration; see the module's docstring."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]:
        """The reward models it cannot do without."""

    @property
    def completions(self) -> tuple[int, int]:
        """Completions that one problem takes, the fewest and the most, without judges: for estimating a run."""

    async def solve(self, rt: Runtime) -> Result:
        """Answer the problem.

        Raises:
            LanguageModelError: not one chain could be had.
        """


@runtime_checkable
class CalibratedMethod(Protocol):
    """A method in two stages."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    @property
    def completions(self) -> tuple[int, int]: ...

    async def prepare(self, rt: Runtime) -> Prepared:
        """Draw and score the initial chains."""

    async def finish(self, prepared: Prepared, stats: RewardStats | None, rt: Runtime) -> Result:
        """Answer the problem, given the batch's statistics (``None``: not one initial chain has both scores)."""


AnyMethod = Method | CalibratedMethod


async def draw_and_score(rt: Runtime, k: int) -> tuple[ScoredChain, ...]:
    """``k`` chains of the solver, scored with the run's reward models."""
    return await rt.score(await solve(rt, k))


def require_least(least: Mapping[str, int], given: object) -> None:
    """Check a method's whole-number options.

    Raises:
        InputError: an option of ``given`` is smaller than ``least`` says.
    """
    for option, minimum in least.items():
        value = getattr(given, option)
        if value < minimum:
            raise InputError(f"{option} must be at least {minimum}, got {value}")
