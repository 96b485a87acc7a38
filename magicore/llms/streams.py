"""A streamed chat completion, gathered into the JSON that an unstreamed one would have been.

Streaming keeps a long chain alive: the idle timeout starts anew with every piece.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from magicore.llms.replies import REASONING_FIELDS, UnreadableReply


async def gather_stream(lines: AsyncIterator[str]) -> dict[str, Any]:
    """Read server-sent events up to ``[DONE]``.

    Raises:
        UnreadableReply: A piece is not JSON, or the stream ended before every choice had its stop reason.
    """
    choices: dict[int, dict[str, Any]] = {}
    usage: Any = None
    done = False
    async for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            done = True
            break
        try:
            piece = json.loads(data)
        except ValueError:
            raise UnreadableReply("a piece of the stream is not JSON") from None
        if not isinstance(piece, Mapping):
            raise UnreadableReply("a piece of the stream is no object")
        if piece.get("error"):
            raise UnreadableReply(f"the stream broke off with an error: {str(piece['error'])[:120]}")
        usage = piece.get("usage") or usage
        for part in piece.get("choices") or ():
            _add(choices.setdefault(int(part.get("index") or 0), _empty()), part)
    listed = [choices[at] for at in sorted(choices)]
    if not done and not (listed and all(choice["finish_reason"] for choice in listed)):
        raise UnreadableReply("the stream broke off")
    return {"choices": listed, "usage": usage}


def _empty() -> dict[str, Any]:
    return {"message": {"content": None}, "finish_reason": None, "logprobs": None}


def _add(choice: dict[str, Any], part: Mapping[str, Any]) -> None:
    delta = part.get("delta") or {}
    message = choice["message"]
    for field in ("content", "refusal", *REASONING_FIELDS):
        if isinstance(delta.get(field), str):
            message[field] = (message.get(field) or "") + delta[field]
    scores = part.get("logprobs")
    if isinstance(scores, Mapping) and isinstance(scores.get("content"), list):
        choice["logprobs"] = choice["logprobs"] or {"content": []}
        choice["logprobs"]["content"] += scores["content"]
    choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
