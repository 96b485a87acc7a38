"""What one problem has spent and what was said about it: the only mutable thing behind a method's runtime."""

from __future__ import annotations

from contextvars import ContextVar

from magicore.runtime.budget import Account
from magicore.types import RoleUsage, Usage


class Ledger:
    """Usage by role and model, warnings, and seconds by stage, of one problem under one method.

    ``account`` is what its budget counts; ``over_budget`` says that a call was not made for want of it.
    """

    def __init__(self, problem: str, account: Account | None = None) -> None:
        self.problem = problem
        self.account = account
        self.over_budget = False
        self.seconds: dict[str, float] = {}
        self._usage: dict[tuple[str, str], Usage] = {}
        self._warnings: dict[str, None] = {}

    def book(self, role: str, model: str, usage: Usage) -> None:
        """Add to what ``role`` spent on ``model``."""
        key = (role, model)
        self._usage[key] = self._usage.get(key, Usage()) + usage

    def warn(self, text: str) -> None:
        """Say something once."""
        self._warnings.setdefault(text)

    def took(self, stage: str, seconds: float) -> None:
        """Add to the seconds of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @property
    def usage(self) -> tuple[RoleUsage, ...]:
        """Usage by role and model, in order of first use."""
        return tuple(RoleUsage(role=role, model=model, usage=u) for (role, model), u in self._usage.items())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning once, in order."""
        return tuple(self._warnings)


current_ledger: ContextVar[Ledger | None] = ContextVar("current_ledger", default=None)
"""The ledger of the problem being worked on in this task: a judge's calls are booked there."""
