"""Read the JSON of a chat completion as typed completions: what is there, what is missing, what it cost.

Endpoints differ in everything but the outline, so the JSON is read field by field and nothing is taken for granted: a
null text with the answer in a reasoning field, no usage, no stop reason, fewer choices than asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from magicore.llms.base import Request
from magicore.llms.profile import EndpointProfile
from magicore.types import Completion, StopReason, Usage
from reward_models.steps import split_thinking

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop_str": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "safety": "filter",
    "recitation": "filter",
    "refusal": "filter",
}


class UnreadableReply(ValueError):
    """The JSON is no chat completion; says why, and what it was charged where it says so."""

    def __init__(self, message: str, charged: Usage | None = None) -> None:
        super().__init__(message)
        self.charged = charged


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """One choice as it was sent."""

    text: str
    thinking: str | None
    stop: StopReason
    stated: bool
    scores: tuple[tuple[str, float], ...] | None
    alternatives: tuple[tuple[tuple[str, float], ...], ...] | None


def read_reply(body: Any, request: Request, profile: EndpointProfile) -> tuple[Completion, ...]:
    """The completions of a reply, one for each choice, up to as many as were asked for.

    What the reply shows of the endpoint is noted in ``profile``. Stop strings are applied here too, for endpoints that
    do not take them or leave them in.

    Raises:
        UnreadableReply: It holds no choice that can be read.
    """
    if not isinstance(body, Mapping):
        raise UnreadableReply("no JSON object")
    if body.get("error") and not body.get("choices"):
        raise UnreadableReply(f"an error instead of choices: {str(body['error'])[:120]}")
    listed = body.get("choices")
    if not isinstance(listed, list):
        raise UnreadableReply("no list of choices")
    choices = [_choice(item, profile) for item in listed if isinstance(item, Mapping)]
    charged, reported = _usage(body.get("usage"), profile)
    if not choices:
        raise UnreadableReply("no choices", charged if reported else None)
    choices = choices[: len(request.indices)]
    counts = _token_counts(choices, charged.completion if reported else None)
    choices = [_stopped(choice, request.sampling.stop) for choice in choices]
    shares = _shares(charged, choices, counts)
    limit = request.sampling.max_tokens
    all_cut = reported and charged.completion >= limit * len(listed)
    cut = [all_cut or (count is not None and count >= limit) for count in counts]
    if any(cut):
        profile.honest_stops = all(choice.stop != "stop" for choice, ended in zip(choices, cut, strict=True) if ended)
    return tuple(
        _completion(index, choice, count, share, cut=ended, request=request)
        for index, choice, count, share, ended in zip(request.indices, choices, counts, shares, cut, strict=False)
    )


def _completion(
    index: int, choice: _Choice, tokens: int | None, usage: Usage, *, cut: bool, request: Request
) -> Completion:
    scores = choice.scores
    return Completion(
        index=index,
        text=choice.text,
        thinking=choice.thinking,
        # Some endpoints call every end a stop; one that reached the limit was cut.
        stop="length" if cut and choice.stop == "stop" else choice.stop,
        tokens=tokens,
        token_logprobs=tuple(value for _, value in scores) if scores is not None and request.logprobs else None,
        top_logprobs=choice.alternatives if request.top_logprobs else None,
        usage=usage,
    )


def _choice(item: Mapping[str, Any], profile: EndpointProfile) -> _Choice:
    message = item.get("message")
    message = message if isinstance(message, Mapping) else {}
    text, thinking = _content(message.get("content"))
    for field in REASONING_FIELDS:
        if isinstance(message.get(field), str) and message[field].strip():
            thinking, profile.reasoning = message[field], field
            break
    if thinking is None and text:
        thinking, text = split_thinking(text)
        if thinking is not None:
            profile.reasoning = "inline"
    stop, stated = _stop(item.get("finish_reason"))
    profile.stop_reasons = profile.stop_reasons or stated
    refusal = message.get("refusal")
    if text is None and isinstance(refusal, str) and refusal:
        text, stop = refusal, "filter"
    if text is None and thinking is None and stop == "stop" and message.get("content") is None:
        stop = "error"
    scores, alternatives = _log_probabilities(item.get("logprobs"))
    return _Choice(
        text=text or "", thinking=thinking, stop=stop, stated=stated, scores=scores, alternatives=alternatives
    )


def _content(content: Any) -> tuple[str | None, str | None]:
    """Text and thinking of a message's content, which is a string, null, or a list of typed parts."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    parts = [part for part in content if isinstance(part, Mapping)]
    text = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    thought = "".join(str(part["thinking"]) for part in parts if isinstance(part.get("thinking"), str))
    return text, thought or None


def _stop(reason: Any) -> tuple[StopReason, bool]:
    """The stop reason and whether one was stated. None stated counts as a stop; a strange one as an error."""
    if reason is None:
        return "stop", False
    return _STOPS.get(str(reason).lower(), "error"), True


def _usage(body: Any, profile: EndpointProfile) -> tuple[Usage, bool]:
    """What the request was charged, and whether the endpoint said so."""
    completion = _count(body.get("completion_tokens")) if isinstance(body, Mapping) else None
    if completion is None:
        profile.usage = profile.usage or False
        return Usage(calls=1, unmetered=1), False
    profile.usage = True
    details = body.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, Mapping) else body.get("reasoning_tokens")
    return (
        Usage(
            prompt=_count(body.get("prompt_tokens")) or 0,
            completion=completion,
            reasoning=_count(reasoning) or 0,
            calls=1,
            cached=_cached(body),
        ),
        True,
    )


def _cached(body: Mapping[str, Any]) -> int:
    """Prompt tokens that the server had read before, in OpenAI's place or DeepSeek's."""
    details = body.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, Mapping) else body.get("prompt_cache_hit_tokens")
    return _count(found) or 0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _token_counts(choices: Sequence[_Choice], total: int | None) -> list[int | None]:
    """The tokens of each choice: from the usage if there is one choice, else from the log-probabilities."""
    if len(choices) == 1 and total is not None:
        return [total]
    return [None if choice.scores is None else len(choice.scores) for choice in choices]


def _shares(charged: Usage, choices: Sequence[_Choice], counts: Sequence[int | None]) -> list[Usage]:
    """Each choice's share of the charge. The prompt and the call go to the first; completion tokens by their count,
    or in proportion to the length of the texts where the counts are not known. Shares add up to the charge.
    """
    weights = [float(count) for count in counts if count is not None]
    if len(weights) < len(choices):
        weights = [float(len(choice.text) + len(choice.thinking or "") + 1) for choice in choices]
    completion = apportion(charged.completion, weights)
    thoughts = [float(len(choice.thinking or "")) for choice in choices]
    reasoning = apportion(charged.reasoning, thoughts if sum(thoughts) else weights)
    rest = replace(charged, completion=0, reasoning=0)
    return [
        (rest if position == 0 else Usage()) + Usage(completion=tokens, reasoning=thought)
        for position, (tokens, thought) in enumerate(zip(completion, reasoning, strict=True))
    ]


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Split a whole number in proportion to weights by the largest remainder; the parts add up to it."""
    whole = sum(weights)
    exact = [total * weight / whole if whole else total / len(weights) for weight in weights]
    parts = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(weights)), key=lambda at: (parts[at] - exact[at], at))
    for at in by_remainder[: total - sum(parts)]:
        parts[at] += 1
    return parts


Alternatives = tuple[tuple[tuple[str, float], ...], ...]


def _log_probabilities(body: Any) -> tuple[tuple[tuple[str, float], ...] | None, Alternatives | None]:
    """Token and log-probability of each generated token, and its alternatives, the token itself included."""
    if not isinstance(body, Mapping):
        return None, None
    content = body.get("content")
    if not isinstance(content, list):
        return _old_log_probabilities(body)
    scores: list[tuple[str, float]] = []
    alternatives: list[tuple[tuple[str, float], ...]] = []
    for item in content:
        own = _pair(item)
        if own is None:
            return None, None
        listed = item.get("top_logprobs") or ()
        row = tuple(pair for pair in map(_pair, listed) if pair is not None)
        scores.append(own)
        alternatives.append(row if any(token == own[0] for token, _ in row) else (*row, own))
    return tuple(scores), tuple(alternatives)


def _old_log_probabilities(body: Mapping[str, Any]) -> tuple[tuple[tuple[str, float], ...] | None, Alternatives | None]:
    """The layout of the older completions API: parallel lists ``tokens``, ``token_logprobs``, ``top_logprobs``."""
    tokens, values = body.get("tokens"), body.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        return None, None
    pairs = [_pair({"token": token, "logprob": value}) for token, value in zip(tokens, values, strict=True)]
    scores = tuple(pair for pair in pairs if pair is not None)
    if len(scores) != len(pairs):
        return None, None
    rows = body.get("top_logprobs")
    rows = rows if isinstance(rows, list) and len(rows) == len(scores) else [{}] * len(scores)
    alternatives = tuple(
        tuple({own[0]: own[1], **{str(token): float(value) for token, value in (row or {}).items()}}.items())
        for own, row in zip(scores, rows, strict=True)
    )
    return scores, alternatives


def _pair(item: Any) -> tuple[str, float] | None:
    if not isinstance(item, Mapping):
        return None
    value = item.get("logprob")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return str(item.get("token", "")), float(value)


def _stopped(choice: _Choice, stops: Sequence[str]) -> _Choice:
    """The choice up to the first stop string; its log-probabilities up to the token in which that begins."""
    found = [at for stop in stops if stop and (at := choice.text.find(stop)) >= 0]
    if not found:
        return choice
    end = min(found)
    scores, alternatives = choice.scores, choice.alternatives
    if scores is not None and choice.thinking is None:
        kept, length = 0, 0
        while kept < len(scores) and length + len(scores[kept][0]) <= end:
            length += len(scores[kept][0])
            kept += 1
        scores, alternatives = scores[:kept], None if alternatives is None else alternatives[:kept]
    return replace(choice, text=choice.text[:end], stop="stop", scores=scores, alternatives=alternatives)
