"""What a study is asked with, whichever it is."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from magicore.ablations.statistics import Luck
from magicore.errors import InputError, UnknownNameError


@dataclass(frozen=True, kw_only=True)
class Budgeted:
    """What new runs would take, told before anything is spent.

    Attributes:
        runs: Their names.
        problems: How many each goes over.
        least, most: Completions in all, if every question is easy and if every one is hard; what the store has is not
            paid again, so they bound what is new from above only.
        tokens: At the tokens that a completion of the finished run took, for ``most``; ``None`` where that is unknown.
        scores: Chains that reward models score anew.
        model: The language model.
    """

    runs: tuple[str, ...]
    problems: int
    least: int
    most: int
    tokens: int | None
    scores: int = 0
    model: str = ""

    def __str__(self) -> str:
        many = "run" if len(self.runs) == 1 else "runs"
        parts = [f"{len(self.runs)} new {many} over {self.problems:,} problems ({', '.join(self.runs)})"]
        if self.most:
            parts.append(f"between {self.least:,} and {self.most:,} completions of {self.model} less what is stored")
        if self.tokens is not None and self.most:
            parts.append(f"about {self.tokens:,} tokens at the most")
        if self.scores:
            parts.append(f"{self.scores:,} chains scored anew")
        return ", ".join(parts)


Consent = Callable[[Budgeted], bool]
"""Asked before new runs are made: true to go on, false to do without them."""


def refuse(_: Budgeted) -> bool:
    """The consent that is never given: the study uses what is there."""
    return False


def agree(_: Budgeted) -> bool:
    """The consent that is always given."""
    return True


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a study is to be made.

    Attributes:
        luck: How chance is judged.
        baseline: The arm that the others are compared with; the study's own where ``None``.
        limit: Take the run's first so many problems only.
        settings: Settings and method options that every new run has over the finished run's, such as ``k``.
        values: The study's own options; see its function.
        consent: Asked before anything new is drawn or scored.
    """

    luck: Luck = field(default_factory=Luck)
    baseline: str | None = None
    limit: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    consent: Consent = refuse

    def taking(self, study: str, *names: str) -> Mapping[str, Any]:
        """The study's own options, checked to be ``names``.

        Raises:
            UnknownNameError: there is another one.
        """
        for name in self.values:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                has = f"it has {', '.join(names)}" if names else "it has none"
                hint = f"did you mean {near[0]!r}?" if near else has
                raise UnknownNameError(f"the study {study} has no option {name!r}; {hint}")
        return self.values


def whole(value: Any, name: str) -> int:
    """A whole number of at least 1, also from its text.

    Raises:
        InputError: it is none.
    """
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise InputError(f"{name} takes whole numbers of at least 1, not {value!r}")
    return number
