"""The bytes of a reply, whole or as a stream."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from magicore.testing.hostile.faults import FaultKind
from magicore.testing.hostile.habits import Habits
from magicore.testing.hostile.writing import Written

_PIECES = 8
_SPLIT = 2  # a reply that breaks off breaks off in the middle


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One sample as it is sent."""

    written: Written
    stop: str | None
    null: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A generated reply before it becomes bytes."""

    number: int
    model: str
    choices: Sequence[Choice]
    usage: tuple[int, int] | None
    habits: Habits
    logprobs: bool = False
    fault: FaultKind | None = None


def response(status: int, body: bytes, *, headers: Sequence[str] = (), length: int | None = None) -> bytes:
    """A whole HTTP response; ``length`` is what it claims, where that is not the truth."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body) if length is None else length}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def error_response(
    status: int, message: str, *, headers: Sequence[str] = (), code: str = "", param: str | None = None
) -> bytes:
    """An error in OpenAI's shape."""
    body = {"error": {"message": message, "type": "error", "param": param, "code": code or None}}
    return response(status, json.dumps(body).encode(), headers=headers)


def json_response(value: Any) -> bytes:
    """A value as a response."""
    return response(200, json.dumps(value).encode())


def whole_reply(answer: Answer) -> bytes:
    """The reply in one piece; one that breaks off claims its full length and ends in the middle."""
    choices = [] if answer.fault == "empty" else [_choice(at, one, answer) for at, one in enumerate(answer.choices)]
    text = json.dumps(
        {
            "id": f"chatcmpl-{answer.number}",
            "object": "chat.completion",
            "created": 0,
            "model": answer.model,
            "choices": choices,
            "usage": _usage(answer),
        }
    ).encode()
    if answer.fault == "malformed":
        text = text[: len(text) // _SPLIT]
    if answer.fault in ("reset", "stall"):
        return response(200, text[: len(text) // _SPLIT], length=len(text))
    return response(200, text)


def streamed_reply(answer: Answer) -> list[bytes]:
    """The reply in pieces, the first to be sent at the first token and the last at the last."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    events = [head]
    if answer.fault != "empty":
        parts = [_parts(at, one, answer) for at, one in enumerate(answer.choices)]
        for step in range(_PIECES):
            events.append(b"".join(_event({"choices": [part[step]]}, answer) for part in parts))
        ends: list[dict[str, Any]] = [
            {"index": at, "delta": {}, "finish_reason": one.stop} for at, one in enumerate(answer.choices)
        ]
        events.append(b"".join(_event({"choices": [end]}, answer) for end in ends))
    if (usage := _usage(answer)) is not None:
        events.append(_event({"choices": [], "usage": usage}, answer))
    events.append(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    if answer.fault == "malformed":
        events[len(events) // _SPLIT] = _chunk(b'data: {"choices": [{"index"\n\n')
    if answer.fault in ("reset", "stall"):
        events = events[: len(events) // _SPLIT]
    return events


def _choice(at: int, choice: Choice, answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = {"index": at, "message": _message(choice, answer.habits), "finish_reason": choice.stop}
    if answer.logprobs:
        body["logprobs"] = {"content": _logprobs(choice)}
    return body


def _message(choice: Choice, habits: Habits) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if choice.null else choice.written.text}
    thinking = choice.written.thinking
    if thinking is not None and not choice.null and habits.reasoning is not None:
        if habits.reasoning == "inline":
            message["content"] = f"<think>\n{thinking}\n</think>\n{choice.written.text}"
        else:
            message[habits.reasoning] = thinking
    return message


def _logprobs(choice: Choice) -> list[dict[str, Any]]:
    draw = random.Random(choice.written.text)
    words = [f" {word}" for word in choice.written.text.split(" ")]
    rows = [{"token": word, "logprob": -draw.random()} for word in words]
    return [{**row, "top_logprobs": [row]} for row in rows]


def _usage(answer: Answer) -> dict[str, Any] | None:
    if answer.usage is None:
        return None
    prompt, completion = answer.usage
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return usage


def _parts(at: int, choice: Choice, answer: Answer) -> list[Mapping[str, Any]]:
    """A choice in pieces: its reasoning comes first."""
    message = _message(choice, answer.habits)
    pieces: list[Mapping[str, Any]] = []
    for step in range(_PIECES):
        delta: dict[str, Any] = {"role": "assistant"} if step == 0 else {}
        for field, value in message.items():
            if field != "role" and isinstance(value, str):
                delta[field] = value[len(value) * step // _PIECES : len(value) * (step + 1) // _PIECES]
        piece: dict[str, Any] = {"index": at, "delta": delta, "finish_reason": None}
        if answer.logprobs and step == 0:
            piece["logprobs"] = {"content": _logprobs(choice)}
        pieces.append(piece)
    return pieces


def _event(body: dict[str, Any], answer: Answer) -> bytes:
    row = {"id": f"chatcmpl-{answer.number}", "object": "chat.completion.chunk", "model": answer.model, **body}
    return _chunk(b"data: " + json.dumps(row).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
