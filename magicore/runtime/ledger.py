"""What one problem has spent and what was said about it: the only mutable thing behind a method's runtime."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from magicore.runtime.budget import Account
from magicore.types import RoleUsage, Usage


@dataclass
class Trials:
    """What calls took beside what they brought, for one role and model.

    Attributes:
        retries: Calls that were made again.
        waited_s: Seconds put off before them.
        unknown: Replies that may have been charged for and never came.
    """

    retries: int = 0
    waited_s: float = 0.0
    unknown: int = 0


class Ledger:
    """Usage by role and model, warnings, and seconds by stage, of one problem under one method.

    ``account`` is what its budget counts; ``over_budget`` says that a call was not made for want of it. ``seed`` is the
    run's, which judges' calls go by too.
    """

    def __init__(self, problem: str, account: Account | None = None, *, seed: int = 0) -> None:
        self.problem = problem
        self.seed = seed
        self.account = account
        self.over_budget = False
        self.seconds: dict[str, float] = {}
        self._usage: dict[tuple[str, str], Usage] = {}
        self._order: dict[tuple[str, str], None] = {}
        self._trials: dict[tuple[str, str], Trials] = {}
        self._warnings: dict[str, None] = {}

    def expect(self, role: str, model: str) -> None:
        """Give a role its place in the order of usage, whichever of several that work side by side is done first."""
        self._order.setdefault((role, model))

    def book(self, role: str, model: str, usage: Usage) -> None:
        """Add to what ``role`` spent on ``model``."""
        key = (role, model)
        self._order.setdefault(key)
        self._usage[key] = self._usage.get(key, Usage()) + usage

    def tried(self, role: str, model: str, retries: int, waited_s: float, unknown: int) -> None:
        """Add to what calls of ``role`` took on ``model``; see :class:`Trials`."""
        trials = self._trials.setdefault((role, model), Trials())
        trials.retries += retries
        trials.waited_s += waited_s
        trials.unknown += unknown

    def warn(self, text: str) -> None:
        """Say something once."""
        self._warnings.setdefault(text)

    def took(self, stage: str, seconds: float) -> None:
        """Add to the seconds of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @property
    def usage(self) -> tuple[RoleUsage, ...]:
        """Usage by role and model, in order of first use."""
        return tuple(
            RoleUsage(role=role, model=model, usage=self._usage[role, model])
            for role, model in self._order
            if (role, model) in self._usage
        )

    @property
    def timings(self) -> dict[str, Any]:
        """What may differ between two equal runs: seconds by stage; calls, retries and cached tokens by role."""
        calls = []
        for role, model in self._usage.keys() | self._trials.keys():
            usage = self._usage.get((role, model), Usage())
            trials = self._trials.get((role, model), Trials())
            calls.append(
                {
                    "role": role,
                    "model": model,
                    "cached": usage.cached,
                    "retries": trials.retries,
                    "waited_s": round(trials.waited_s, 6),
                    "unknown": trials.unknown,
                }
            )
        return {
            "seconds": {name: round(seconds, 6) for name, seconds in self.seconds.items()},
            "calls": sorted(calls, key=lambda row: (row["role"], row["model"])),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning once, in order."""
        return tuple(self._warnings)


current_ledger: ContextVar[Ledger | None] = ContextVar("current_ledger", default=None)
"""The ledger of the problem being worked on in this task: a judge's calls are booked there."""
