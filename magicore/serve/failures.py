"""Whatever goes wrong, as OpenAI's clients read it: a status, and ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from difficulty.errors import DifficultyError
from magicore import errors
from magicore.errors import InputError, LanguageModelError, MagicoreError
from magicore.types import Result
from reward_models.errors import RewardModelError

RETRY_AFTER_S = 1
CLIENT_GONE = 499
"""What metrics count a request as whose client left before its answer; no one receives it."""

_INVALID = "invalid_request_error"
_SERVER = "server_error"
_REFUSED_AS_IT_IS = re.compile(r"refused the request with status 4(?:00|22)\b")
_OF_THE_SERVER = re.compile(r"the budget run\.")
_INTERRUPTED = re.compile(r"interrupted: ")


class Refusal(Exception):
    """A request that is answered with an error.

    Attributes:
        status: The HTTP status.
        kind: OpenAI's error type, such as ``invalid_request_error``.
        code: What happened, in one word for programs.
        param: The field of the request that is wrong, where it is one.
        retry_after: Seconds after which it may be tried again; ``None`` where trying again cannot help.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        kind: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind or (_INVALID if status < 500 else _SERVER)
        self.code = code
        self.param = param
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body."""
        told = {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}
        return {"error": told}

    @property
    def headers(self) -> dict[str, str]:
        """``Retry-After``, and what keeps OpenAI's clients from trying again in vain."""
        if self.retry_after is not None:
            return {"retry-after": f"{self.retry_after:g}"}
        return {"x-should-retry": "false"} if self.status >= 500 or self.status == 429 else {}


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> Refusal:
    """The request is wrong."""
    return Refusal(400, message, code=code, param=param)


def not_found(message: str, *, param: str | None = None, code: str = "model_not_found") -> Refusal:
    """There is no such model, or no such address."""
    return Refusal(404, message, code=code, param=param)


def busy(message: str) -> Refusal:
    """Too many requests are waiting."""
    return Refusal(429, message, code="rate_limit_exceeded", kind="rate_limit_error", retry_after=RETRY_AFTER_S)


def stopping() -> Refusal:
    """The server is being stopped."""
    return Refusal(503, "the server is stopping", code="server_stopping", retry_after=RETRY_AFTER_S)


_BY_NAME: Mapping[str, tuple[int, str, bool]] = {
    "AuthenticationFailed": (502, "upstream_authentication_failed", False),
    "BadReply": (502, "upstream_bad_reply", True),
    "CapabilityError": (502, "upstream_incapable", False),
    "ConnectionFailed": (503, "upstream_unavailable", True),
    "ContextExceeded": (400, "context_length_exceeded", False),
    "PromptFiltered": (400, "content_filter", False),
    "RateLimited": (429, "rate_limit_exceeded", True),
    "StoreError": (503, "store_unavailable", True),
    "TimedOut": (504, "upstream_timeout", True),
}
"""What an error of a model means for the client: status, code, and whether the same request may succeed later."""


def failure(name: str, message: str) -> Refusal:
    """The answer to a request that failed with an error of the class ``name``."""
    if name in _BY_NAME:
        status, code, again = _BY_NAME[name]
        kind = "rate_limit_error" if status == 429 else None
        return Refusal(status, message, code=code, kind=kind, retry_after=RETRY_AFTER_S if again else None)
    if name == "RequestRefused":
        status = 400 if _REFUSED_AS_IT_IS.search(message) else 502
        return Refusal(status, message, code="upstream_refused")
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, LanguageModelError):
        return Refusal(502, message, code="upstream_error", retry_after=RETRY_AFTER_S)
    if isinstance(known, type) and issubclass(known, InputError | DifficultyError):
        return invalid(message)
    return Refusal(500, message, code="internal_error")


def out_of_budget(message: str) -> Refusal:
    """A limit left nothing to answer with: the request's own is the client's matter, the server's is not."""
    if _INTERRUPTED.search(message):
        return stopping()
    if _OF_THE_SERVER.search(message):
        return Refusal(429, message, code="insufficient_quota", kind="insufficient_quota")
    return Refusal(400, message, code="budget_exceeded")


def refusal_of(error: Exception) -> Refusal:
    """The answer to a request that ended with an exception."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RewardModelError):
        return Refusal(502, str(error), code="reward_model_failed", retry_after=RETRY_AFTER_S)
    if isinstance(error, DifficultyError):
        return invalid(str(error))
    if isinstance(error, MagicoreError):
        return failure(type(error).__name__, str(error))
    return Refusal(500, f"the server failed with {type(error).__name__}; its log says more", code="internal_error")


def failed_result(result: Result) -> Refusal | None:
    """Why a result has nothing to show, or ``None`` if it has."""
    if result.error is not None:
        name, message = result.error.type, result.error.message
        if name == "RewardModelError" or not hasattr(errors, name):  # one of reward_models' own
            return Refusal(502, message, code="reward_model_failed", retry_after=RETRY_AFTER_S)
        return failure(name, message)
    if result.stop == "budget" and not any(round.chains for round in result.rounds):
        return out_of_budget(result.warnings[-1] if result.warnings else "the budget is used up")
    return None
