"""What can go wrong at an endpoint, put as this package's errors: one sentence each, without the key.

The openai SDK's exceptions go in, :class:`~magicore.errors.LanguageModelError` comes out. The sentence says what
happened, where, and what to do; of the endpoint's own words at most a line is quoted.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magicore.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    ContextExceeded,
    LanguageModelError,
    PromptFiltered,
    RateLimited,
    RequestRefused,
    TimedOut,
)
from reward_models.remote.retry_after import retry_after

if TYPE_CHECKING:
    import openai

# Parameters that may be left out when an endpoint refuses them, by the names that its message may use.
DROPPABLE = (
    "temperature",
    "top_p",
    "n",
    "logprobs",
    "top_logprobs",
    "seed",
    "stop",
    "max_tokens",
    "max_completion_tokens",
)

_QUOTE_LENGTH = 240
_CONTEXT = re.compile(
    r"context[ _-]?(length|size|window)|maximum (context|sequence|input) length|max_model_len|too many (input )?tokens"
    r"|prompt is too long|exceeds? the (available )?context|(is|are) too large: \d+",
    re.IGNORECASE,
)
_NOT_TAKEN = re.compile(
    r"unsupported|not (currently )?support|does ?n[o']t support|unrecogni[sz]ed|unknown|unexpected|not permitted"
    r"|not allowed|extra (inputs|fields?)|not available|only the default|only one|not (yet )?implemented|deprecated"
    r"|cannot be used|incompatible|invalid param|at most 1\b|must be 1\b|no such (field|param)",
    re.IGNORECASE,
)
_SPENT = re.compile(r"insufficient_quota|billing|credit|quota exceeded", re.IGNORECASE)
_FILTERED = re.compile(r"content[_ ]filter|content management policy|safety system", re.IGNORECASE)

_REFUSED, _UNAUTHORISED, _FORBIDDEN, _ABSENT, _CONFLICT, _TIMEOUT, _LARGE, _INVALID, _SLOW = (
    400, 401, 403, 404, 409, 408, 413, 422, 429,
)  # fmt: skip


def connection_failed(error: BaseException, *, model: str, url: str, idle_s: float) -> ConnectionFailed:
    """Why nothing came from the address, as far as the chain of exceptions says."""
    causes = list(_chain(error))
    kinds = {type(cause).__name__ for cause in causes}
    sent = False
    if any(isinstance(cause, socket.gaierror) for cause in causes) or "getaddrinfo failed" in str(causes[-1]):
        said = f"the host of {url} is not known; check the address"
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        said = f"{url} refuses the connection; is the server running?"
    elif kinds & {"ConnectTimeout"}:
        said = f"{url} does not answer; check the address and the network"
    elif kinds & {"ReadTimeout", "APITimeoutError", "TimeoutError"}:
        said, sent = f"{url} sent nothing for {idle_s:g} s; a slow server needs a longer idle_timeout", True
    elif "SSL" in "".join(kinds):
        said = f"no secure connection to {url} ({_last(causes)})"
    elif kinds & {"ConnectError"}:
        said = f"no connection to {url} ({_last(causes)})"
    else:
        said, sent = f"the connection to {url} broke ({_last(causes)})", True
    timed_out = bool(kinds & {"ConnectTimeout", "ReadTimeout", "APITimeoutError", "TimeoutError"})
    return (TimedOut if timed_out else ConnectionFailed)(said, model=model, sent=sent)


def status_error(error: openai.APIStatusError, *, model: str, url: str, sent: str, key: str) -> LanguageModelError:
    """What an HTTP status of 400 and above means. ``sent`` is the model id in the request."""
    status, words = error.status_code, quoted(error, key)
    said: LanguageModelError
    if status == _UNAUTHORISED:
        said = AuthenticationFailed(
            f"{url} refuses the API key, or wants one; api_key_env names its variable", model=model
        )
    elif status == _FORBIDDEN:
        said = AuthenticationFailed(f"{url} does not let this API key use {sent!r}", model=model)
    elif status == _ABSENT:
        said = RequestRefused(
            f"{url} knows no model {sent!r}, or serves no chat completions there (most addresses end in /v1){words}",
            model=model,
        )
    elif status == _SLOW and not _SPENT.search(words):
        said = RateLimited(
            f"{url} asks to slow down{words}", model=model, retry_after=retry_after(error.response.headers)
        )
    elif status == _SLOW:
        said = RequestRefused(f"{url} says that the quota is used up{words}", model=model)
    elif status in (_REFUSED, _INVALID, _LARGE) and (status == _LARGE or _CONTEXT.search(words)):
        said = ContextExceeded(f"prompt and answer do not fit the context of {sent!r}{words}", model=model)
    elif status in (_REFUSED, _INVALID) and _FILTERED.search(words):
        said = PromptFiltered(f"{url} filtered the prompt{words}", model=model)
    elif status in (_TIMEOUT, _CONFLICT) or status >= 500:
        said = LanguageModelError(f"{url} failed with status {status}{words}", model=model, retryable=True)
        wait = retry_after(error.response.headers)
        if wait is not None:
            said = RateLimited(f"{url} failed with status {status}{words}", model=model, retry_after=wait)
    else:
        said = RequestRefused(f"{url} refused the request with status {status}{words}", model=model)
    return said


def unreadable(why: str, *, model: str, url: str, prompt: int | None = None, completion: int | None = None) -> BadReply:
    """An answer that is no completion; ``prompt`` and ``completion`` are the tokens that it states."""
    said = f"{url} answered something unreadable ({why})"
    return BadReply(said, model=model, prompt=prompt, completion=completion)


def refused_parameters(error: openai.APIStatusError, sent: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of the parameters sent the endpoint will not take; none where its words say otherwise.

    A value outside a parameter's range is the caller's mistake and no reason to leave the parameter out, with one
    exception: an ``n`` that is too large.
    """
    if error.status_code not in (_REFUSED, _INVALID):
        return ()
    body = _body(error)
    message = json.dumps(body, ensure_ascii=False) if not isinstance(body, str) else body
    named = [str(_param(body))] if _param(body) else []
    named += [
        str(item["loc"][-1])
        for item in _detail(body)
        if isinstance(item, dict) and isinstance(item.get("loc"), list) and item["loc"]
    ]
    candidates = [name for name in DROPPABLE if name in sent]
    if "n" in named and "n" in candidates:
        return ("n",)
    if not _NOT_TAKEN.search(message) or _CONTEXT.search(message):
        return ()
    exact = tuple(name for name in candidates if name in named)
    if exact:
        return exact
    return tuple(
        name
        for name in candidates
        if re.search(rf"(?<![A-Za-z_]){name}(?![A-Za-z_])", message) and _plain(name, message)
    )


def quoted(error: openai.APIStatusError, key: str) -> str:
    """The endpoint's own words, in brackets, shortened, without the key; nothing if it said nothing."""
    body = _body(error)
    message: Any = body
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        message = message or body.get("message") or body.get("detail") or body
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    code = getattr(error, "code", None)
    text = " ".join(text.split())
    if key:
        text = text.replace(key, "***")
    text = re.sub(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9*_\-]{6,}", "***", text)
    if code and code not in text:
        text = f"{code}: {text}"
    shown = text if len(text) <= _QUOTE_LENGTH else text[: _QUOTE_LENGTH - 1] + "…"
    return f" ({shown})" if shown else ""


def _plain(name: str, message: str) -> bool:
    """A one-letter name is only meant where it is set off: 'n', `n`, "n" or n=."""
    return len(name) > 1 or re.search(rf"['\"`]{name}['\"`\\]|\b{name}\s*[=>]", message) is not None


def _body(error: openai.APIStatusError) -> Any:
    text = error.response.text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _param(body: Any) -> Any:
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner.get("param") if isinstance(inner, dict) else None


def _detail(body: Any) -> list[Any]:
    """The entries of a FastAPI validation error."""
    found = body.get("detail") if isinstance(body, dict) else None
    return found if isinstance(found, list) else []


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _last(causes: list[BaseException]) -> str:
    said = next((str(cause) for cause in reversed(causes) if str(cause)), "")
    return " ".join(said.split())[:120] or type(causes[-1]).__name__
