"""From a request to what becomes of it: a refusal, or samples with their true tokens and whatever goes wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicore.testing.hostile.faults import LOSING, FaultKind, Faults
from magicore.testing.hostile.habits import Habits
from magicore.testing.hostile.ledger import Entry
from magicore.testing.hostile.replies import Answer, Choice, error_response
from magicore.testing.hostile.writing import Writer, Written, count_tokens, cut_to, filler

_BAD_REQUEST, _UNAUTHORISED, _NOT_FOUND = 400, 401, 404


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request asks for."""

    body: Mapping[str, Any]
    digest: int

    @property
    def n(self) -> int:
        n = self.body.get("n")
        return n if isinstance(n, int) and n > 0 else 1

    @property
    def limit(self) -> int | None:
        limit = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return limit if isinstance(limit, int) else None

    @property
    def prompt(self) -> int:
        return sum(count_tokens(str(message.get("content") or "")) + 4 for message in self.body["messages"])


def read_request(raw: bytes) -> Asked | None:
    """A request's body; ``None`` if it is no chat."""
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return None
    return Asked(body=body, digest=int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest()))


def refusal(asked: Asked, habits: Habits, model: str, authorisation: str) -> bytes | None:
    """The error that an endpoint with these habits answers before it generates anything."""
    key = authorisation.removeprefix("Bearer ").strip()
    if habits.key is not None and key != habits.key:
        return error_response(_UNAUTHORISED, f"Incorrect API key provided: {key}.", code="invalid_api_key")
    if asked.body.get("model") != model:
        return error_response(_NOT_FOUND, f"The model {asked.body.get('model')!r} does not exist.")
    if (refused := habits.refusal(asked.body)) is not None:
        name, message = refused
        return error_response(_BAD_REQUEST, message, param=name, code="unsupported_parameter")
    needed = asked.prompt + (asked.limit or 0)
    if habits.context is not None and needed > habits.context:
        message = f"This model's maximum context length is {habits.context} tokens; you requested {needed}."
        return error_response(_BAD_REQUEST, message, code="context_length_exceeded")
    return None


def fault_response(fault: FaultKind, faults: Faults, authorisation: str) -> bytes:
    """The error status of a refusing fault; its message quotes the key."""
    status, message = {
        "rate-limit": (429, "Rate limit reached"),
        "rate-limit-after": (429, "Rate limit reached"),
        "server-error": (500, "The server had an error"),
        "unavailable": (503, "The server is overloaded"),
    }[fault]
    headers = [f"retry-after: {faults.retry_after_s:g}"] if fault == "rate-limit-after" else []
    return error_response(status, f"{message} (request with {authorisation or 'no key'}).", headers=headers)


def generate(
    asked: Asked, entry: Entry, fault: FaultKind | None, *, writer: Writer, habits: Habits, model: str
) -> Answer:
    """The samples of a request; true and stated tokens go into its entry."""
    given = habits.choices(asked.n)
    if fault == "fewer":
        given = max(1, given // 2)
    seed = asked.body.get("seed") if habits.seed == "honoured" else None
    base = asked.digest ^ (0 if isinstance(seed, int) else entry.attempt + 1)
    same = fault == "duplicates" or not habits.distinct or asked.body.get("temperature") == 0
    choices = [_choice(asked, base if same else base + at * 7919, fault, writer, habits) for at in range(given)]
    entry.given = 0 if fault in LOSING else len(choices)
    entry.fault = fault
    entry.prompt = asked.prompt
    entry.completion = sum(choice.written.tokens for choice in choices)
    usage = None if fault == "empty" or not habits.usage else (entry.prompt, entry.completion)
    if usage is not None and fault == "wrong-usage":
        usage = usage[0], usage[1] * 2 + 1
    if usage is not None and fault not in LOSING:
        entry.stated_prompt, entry.stated_completion = usage
    return Answer(
        number=entry.number,
        model=model,
        choices=choices,
        usage=usage,
        habits=habits,
        logprobs=bool(asked.body.get("logprobs")) and habits.logprobs == "honoured",
        fault=fault,
    )


def _choice(asked: Asked, draw: int, fault: FaultKind | None, writer: Writer, habits: Habits) -> Choice:
    written = writer(asked.body["messages"], draw)
    stop, limit = "stop", asked.limit
    if habits.reasoning is None and written.thinking is not None:
        written = Written(written.text, written.tokens - count_tokens(written.thinking))
    if fault == "length-as-stop" and limit is not None:
        written = filler(limit)
    elif limit is not None and written.tokens > limit:
        written = Written(cut_to(written.text, limit), limit)
        stop = "length"
    return Choice(written=written, stop=stop if habits.stop_reasons else None, null=fault == "null")
