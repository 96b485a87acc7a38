"""An OpenAI-compatible endpoint that behaves as real ones do on a bad day, and keeps a ledger of what it delivered.

::

    with running(HostileEndpoint(faults=Faults(rate=0.2, seed=7))) as endpoint:
        magicore.solve_batch(problems, model=endpoint.name, ...)
        endpoint.ledger.totals()

``python -m magicore.testing.hostile`` (or ``magicore hostile-endpoint``) runs it as a process of its own.
"""

from __future__ import annotations

from magicore.testing.hostile.faults import KINDS, LOSING, MARRING, REFUSING, FaultKind, Faults
from magicore.testing.hostile.habits import Habits
from magicore.testing.hostile.ledger import Entry, Ledger
from magicore.testing.hostile.process import EndpointProcess, endpoint_process, running
from magicore.testing.hostile.server import HostileEndpoint
from magicore.testing.hostile.service import Service
from magicore.testing.hostile.writing import Made, Recorded, Written, by_rule, count_tokens

__all__ = [
    "KINDS",
    "LOSING",
    "MARRING",
    "REFUSING",
    "EndpointProcess",
    "Entry",
    "FaultKind",
    "Faults",
    "Habits",
    "HostileEndpoint",
    "Ledger",
    "Made",
    "Recorded",
    "Service",
    "Written",
    "by_rule",
    "count_tokens",
    "endpoint_process",
    "running",
]
