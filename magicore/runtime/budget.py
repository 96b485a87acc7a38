"""Limits on what a problem and a run may spend: tokens, calls, money and time.

A call is made only if the most it can cost still fits, beside what is in flight; of a request for several samples, as
many are drawn as fit. So a limit on tokens or money is kept, with one exception: an endpoint that counts more prompt
tokens than :func:`prompt_tokens` allows for. A limit on calls counts a request as one call for every
:data:`~magicore.llms.sampler.REMOTE_MAX_N` samples; an endpoint that gives one sample a call needs more, which the next
call then feels. What the store already has is free to use, and counts as spent by the problem that uses it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from magicore.errors import BudgetExceeded, InputError
from magicore.llms.base import Request
from magicore.llms.sampler import REMOTE_MAX_N
from magicore.types import Usage

SCOPES = ("problem", "run")
KINDS = ("tokens", "calls", "money", "seconds")
CHARACTERS_A_TOKEN = 2
"""A prompt is taken to have at most one token for so many characters: more than any common tokenizer makes of text."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """Money per million tokens."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """What ``usage`` costs."""
        return (usage.prompt * self.prompt + usage.completion * self.completion) / 1e6


class Halt:
    """Set once to let a run end early: what is in flight finishes, nothing new is asked for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """End early."""
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()


@dataclass
class Account:
    """What one scope has spent, and what its calls in flight may cost at the most."""

    limits: Mapping[str, float]
    started: float
    tokens: int = 0
    calls: int = 0
    money: float = 0.0
    held: Usage = field(default_factory=Usage)
    held_money: float = 0.0

    def fits(self, usage: Usage, money: float, now: float) -> str | None:
        """The kind of limit that ``usage`` would break; ``None`` if it fits."""
        used = {
            "tokens": self.tokens + self.held.total + usage.total,
            "calls": self.calls + self.held.calls + usage.calls,
            "money": self.money + self.held_money + money,
            "seconds": now - self.started,
        }
        return next((kind for kind in KINDS if kind in self.limits and used[kind] > self.limits[kind]), None)

    def hold(self, usage: Usage, money: float, sign: int) -> None:
        """Set aside, or with ``sign=-1`` let go of, what a call may cost."""
        self.held += replace(
            usage, prompt=sign * usage.prompt, completion=sign * usage.completion, calls=sign * usage.calls
        )
        self.held_money += sign * money


class Budget:
    """The limits of a run. ``limits`` maps ``run.tokens``, ``problem.seconds`` ... to numbers.

    Raises:
        InputError: a limit's name is none, or money is limited without prices.
    """

    def __init__(
        self,
        limits: Mapping[str, Any] | None = None,
        prices: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        halt: Halt | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = {scope: _limits_of(scope, limits or {}) for scope in SCOPES}
        self._prices = {model: _price(model, table) for model, table in (prices or {}).items()}
        self.halt = Halt() if halt is None else halt
        self._clock = clock
        self._run = Account(limits=self._limits["run"], started=clock())
        self._shared: Account | None = None
        self._money = any("money" in limits for limits in self._limits.values())

    def account(self) -> Account:
        """A new problem's account, or the one that all share (see :meth:`shared`)."""
        return self._shared or Account(limits=self._limits["problem"], started=self._clock())

    def shared(self, limits: Mapping[str, float]) -> Budget:
        """This budget with one account for several problems: together they have what one may spend.

        ``limits`` maps kinds (``tokens``, ``seconds`` ...) to numbers; where a problem's limit is lower already, that
        counts.

        Raises:
            InputError: a limit's name is none, its number is not above 0, or money is limited without prices.
        """
        narrower = _limits_of("problem", {f"problem.{kind}": value for kind, value in limits.items()})
        if "money" in narrower and not self._money:
            raise InputError("money is limited, and money is not counted here: limit tokens instead")
        own = self._limits["problem"]
        found = {kind: min(narrower.get(kind, math.inf), own.get(kind, math.inf)) for kind in own.keys() | narrower}
        budget = copy(self)
        budget._shared = Account(limits=found, started=self._clock())
        return budget

    def reserve(self, request: Request, model: str, problem: Account | None) -> Reservation:
        """Set aside what as many of the request's samples as fit may cost.

        Raises:
            BudgetExceeded: not one fits, or the run is ending.
        """
        if self.halt:
            raise BudgetExceeded("interrupted: no further call is made", model=model)
        accounts = [self._run] if problem is None else [problem, self._run]
        broken = None
        for n in range(len(request.indices), 0, -1):
            usage = most(request, n)
            money = self._cost(model, usage)
            found = [(account, account.fits(usage, money, self._clock())) for account in accounts]
            broken = next(((account, kind) for account, kind in found if kind is not None), None)
            if broken is None:
                for account in accounts:
                    account.hold(usage, money, 1)
                return Reservation(n=n, usage=usage, money=money, accounts=accounts)
        assert broken is not None
        account, kind = broken
        scope = "run" if account is self._run else "problem"
        raise BudgetExceeded(f"the budget {scope}.{kind} = {account.limits[kind]:g} is used up", model=model)

    def release(self, reservation: Reservation) -> None:
        """Let go of what was set aside; what was really spent is booked with :meth:`spend`."""
        for account in reservation.accounts:
            account.hold(reservation.usage, reservation.money, -1)

    def spend(self, model: str, usage: Usage, problem: Account | None) -> None:
        """Book what a completion cost."""
        for account in (self._run, problem):
            if account is not None:
                account.tokens += usage.total
                account.calls += usage.calls
                account.money += self._cost(model, usage)

    def _cost(self, model: str, usage: Usage) -> float:
        if not self._money:
            return 0.0
        if model not in self._prices:
            raise InputError(f'money is limited, and {model} has no price: add [prices."{model}"] prompt, completion')
        return self._prices[model].of(usage)


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Room for ``n`` samples, set aside in some accounts."""

    n: int
    usage: Usage
    money: float
    accounts: list[Account]


def most(request: Request, n: int) -> Usage:
    """The most that ``n`` samples of the request can cost."""
    return Usage(prompt=prompt_tokens(request), completion=n * request.sampling.max_tokens, calls=-(-n // REMOTE_MAX_N))


def prompt_tokens(request: Request) -> int:
    """More tokens than the prompt has, as a rule; see :data:`CHARACTERS_A_TOKEN`."""
    characters = sum(len(message["content"]) for message in request.messages) + len(request.prefill or "")
    return -(-characters // CHARACTERS_A_TOKEN) + 8 * (len(request.messages) + 1)


def _limits_of(scope: str, limits: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in limits.items():
        where, _, kind = name.partition(".")
        if where not in SCOPES or kind not in KINDS:
            names = ", ".join(f"{s}.{k}" for s in SCOPES for k in KINDS)
            raise InputError(f"there is no budget {name!r}; budgets: {names}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise InputError(f"the budget {name} is a number above 0, not {value!r}")
        if where == scope:
            found[kind] = value
    return found


def _price(model: str, table: Mapping[str, Any]) -> Price:
    try:
        return Price(prompt=float(table["prompt"]), completion=float(table["completion"]))
    except (KeyError, TypeError, ValueError):
        raise InputError(f'[prices."{model}"] needs prompt and completion, in money per million tokens') from None
