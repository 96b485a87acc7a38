"""Errors of the difficulty package.

DifficultyError
├── EvidenceError            a class, score or draw that cannot be: wrong length, not finite, out of range
├── MissingEvidenceError     the router needs something the evidence does not hold; says what
├── UnknownRouterError       no router has this name; says what is near
├── RouterOptionError        a router does not take this option, or not this value
└── CalibrationError         no statistics can be had: no scored chain, or a calibration file that is missing or damaged
"""

from __future__ import annotations


class DifficultyError(Exception):
    """Anything that went wrong while deciding easy or hard."""


class EvidenceError(DifficultyError, ValueError):
    """The evidence contradicts its own definition, so no router may read it."""


class MissingEvidenceError(DifficultyError):
    """A router was asked without what it declares in ``needs``.

    Attributes:
        router: The router's name.
        field: The field of :class:`difficulty.Evidence` that is ``None``.
    """

    def __init__(self, *, router: str, field: str, remedy: str) -> None:
        super().__init__(f"router {router!r} needs the evidence field {field!r}, which is missing: {remedy}")
        self.router = router
        self.field = field


class UnknownRouterError(DifficultyError, LookupError):
    """No router has this name, or the object named by ``module:attribute`` is not there."""


class RouterOptionError(DifficultyError, ValueError):
    """An option the router does not have, or a value out of its range."""


class CalibrationError(DifficultyError, ValueError):
    """Mean and standard deviation of S cannot be computed, read or written."""
