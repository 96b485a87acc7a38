"""Errors that cross from one process to another: by type and sentence, so that any of them arrives."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from magicore import errors
from magicore.errors import MagicoreError, RewardModelError
from reward_models import errors as reward_errors


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """An error of another process: its type's name and its sentence, or for a fault of the program its traceback."""

    type: str
    message: str

    def error(self) -> Exception:
        """The error as it would have been raised here."""
        for module in (errors, reward_errors):
            found = getattr(module, self.type, None)
            if isinstance(found, type) and issubclass(found, Exception):
                made: Exception = found(self.message)
                return made
        return RuntimeError(self.message)


def troubled(error: Exception) -> Trouble:
    """What is told of an error."""
    if isinstance(error, MagicoreError | RewardModelError):
        return Trouble(type=type(error).__name__, message=str(error))
    return Trouble(type=type(error).__name__, message="".join(traceback.format_exception(error)).strip())
