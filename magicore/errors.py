"""The error tree. The command line prints a :class:`MagicoreError` as one sentence and exits non-zero::

    MagicoreError
    ├── InputError                 a file, a line, an option or a value that the user gave is wrong
    │   ├── UnknownNameError       no such model, method, router, reward model or prompt set; says what is near
    │   └── CapabilityError        what was asked cannot be done with this model or method
    ├── MissingExtraError          an optional package is absent; says how to install it
    ├── StoreError                 a run directory cannot be read, written, or belongs to another run
    ├── WorkerError                processes that parse mathematical answers cannot be started
    └── LanguageModelError         a language model failed; ``retryable`` says whether trying again can help
        ├── ConnectionFailed       nothing answered at the address
        │   └── TimedOut           nothing came in time
        ├── AuthenticationFailed   the key was refused or is missing
        ├── RateLimited            the endpoint asks to slow down; ``retry_after`` in seconds where it said
        ├── RequestRefused         the endpoint refused the request as it is
        │   └── PromptFiltered     a content filter refused the prompt
        ├── ContextExceeded        prompt and answer do not fit the model's context
        ├── BadReply               the endpoint answered something unreadable
        └── BudgetExceeded         a call was not made: a limit is reached; methods answer with what they have

The leaves' errors are re-exported: :class:`RewardModelError` and :class:`DifficultyError`.
"""

from __future__ import annotations

from difficulty.errors import DifficultyError
from reward_models.errors import RewardModelError

__all__ = [
    "AuthenticationFailed",
    "BadReply",
    "BudgetExceeded",
    "CapabilityError",
    "ConnectionFailed",
    "ContextExceeded",
    "DifficultyError",
    "InputError",
    "LanguageModelError",
    "MagicoreError",
    "MissingExtraError",
    "PromptFiltered",
    "RateLimited",
    "RequestRefused",
    "RewardModelError",
    "StoreError",
    "TimedOut",
    "UnknownNameError",
    "WorkerError",
]


class MagicoreError(Exception):
    """Base of everything magicore raises on purpose; its text is one clear sentence for the user."""


class InputError(MagicoreError):
    """Something the user gave is wrong: what, where, and how to mend it."""


class UnknownNameError(InputError):
    """A name that is not registered; the sentence suggests near ones."""


class CapabilityError(InputError):
    """The chosen model or method cannot do what was asked."""


class MissingExtraError(MagicoreError):
    """An optional package is not installed; the sentence holds the install command."""


class StoreError(MagicoreError):
    """A run directory or its store cannot be used."""


class WorkerError(MagicoreError):
    """The processes in which mathematical answers are parsed cannot be started, so that none can be compared."""


class LanguageModelError(MagicoreError):
    """A language model failed. ``retryable``: trying the same call again may succeed.

    ``lost`` counts the replies that were asked for and never came, or could not be read: what they cost is not known.
    """

    retryable: bool = False
    lost: int = 0

    def __init__(self, message: str, *, model: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(f"{model}: {message}" if model else message)
        self.model = model
        if retryable is not None:
            self.retryable = retryable


class ConnectionFailed(LanguageModelError):
    """Nothing answered at the address, or the connection broke; ``sent`` says whether the request had gone out."""

    retryable = True

    def __init__(
        self, message: str, *, model: str | None = None, retryable: bool | None = None, sent: bool = True
    ) -> None:
        super().__init__(message, model=model, retryable=retryable)
        self.lost = int(sent)


class TimedOut(ConnectionFailed):
    """Nothing came from the address in time."""


class AuthenticationFailed(LanguageModelError):
    """The endpoint refused the key, or no key was given."""


class RateLimited(LanguageModelError):
    """The endpoint asks to slow down."""

    retryable = True

    def __init__(self, message: str, *, model: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, model=model)
        self.retry_after = retry_after


class RequestRefused(LanguageModelError):
    """The endpoint refused the request as it is (a parameter, the model's name, a filter)."""


class PromptFiltered(RequestRefused):
    """A content filter of the endpoint's refused the prompt."""


class ContextExceeded(LanguageModelError):
    """Prompt and answer together do not fit the model's context."""


class BadReply(LanguageModelError):
    """The endpoint answered something that cannot be read as a completion.

    ``prompt`` and ``completion`` are the tokens it says it charged all the same; ``None`` where it does not say.
    """

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        retryable: bool | None = None,
        prompt: int | None = None,
        completion: int | None = None,
    ) -> None:
        super().__init__(message, model=model, retryable=retryable)
        self.prompt = prompt
        self.completion = completion
        self.lost = int(completion is None)


class BudgetExceeded(LanguageModelError):
    """A call was not made, because a limit on tokens, calls, money or time is reached, or the run is ending early."""
