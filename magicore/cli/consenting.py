"""Asking, at the terminal, before a study makes new runs."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from magicore.ablations.options import Budgeted, Consent, refuse
from magicore.errors import InputError


def consent(*, offline: bool, yes: bool) -> Consent:
    """Who is asked: nobody with ``offline`` (no) or ``yes`` (yes), else the terminal; without one the answer is no.

    Raises:
        InputError: both are given.
    """
    if offline and yes:
        raise InputError("--offline draws nothing and --yes draws what is missing: give one of them")
    if offline:
        return refuse

    def ask(cost: Budgeted) -> bool:
        Console(stderr=True, highlight=False).print(f"this study takes {cost}", markup=False)
        if yes:
            return True
        return sys.stdin.isatty() and typer.confirm("go on?", err=True)

    return ask
