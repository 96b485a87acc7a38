"""One call to a model, as it went: what progress bars, logs and traces are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from magicore.errors import LanguageModelError
from magicore.types import CallKey, Usage


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call that has ended. It holds no prompt and no completion, and nothing of a key.

    Attributes:
        model: The model's name.
        key: Which call it was.
        asked, given: Samples.
        cut: Samples that ended at the token limit.
        lost: Replies that never came or could not be read, on the way to these or to the error.
        usage: What it cost, as far as the endpoint said.
        attempt: Counted from 1.
        began: Seconds since the epoch.
        seconds: How long it took.
        queued_s: How long it had waited for its turn.
        error: Why it brought nothing.
        retry_in: Seconds until it is made again; ``None`` if it is not.
    """

    model: str
    key: CallKey
    asked: int
    given: int = 0
    cut: int = 0
    lost: int = 0
    usage: Usage = field(default_factory=Usage)
    attempt: int = 1
    began: float = 0.0
    seconds: float = 0.0
    queued_s: float = 0.0
    error: LanguageModelError | None = None
    retry_in: float | None = None


class CallWatcher(Protocol):
    """Is told of every call when it goes out and when it has ended."""

    def calling(self, model: str, samples: int) -> None: ...

    def called(self, call: Call) -> None: ...
