"""A language model that answers by rule: for tests, examples and dry runs. It counts tokens by white space.

model = ScriptedModel({"What is 2 + 3?": "Step 1: 2 + 3 = 5\\nThe answer is 5."})
model = ScriptedModel(lambda request, index: f"The answer is {index}.")
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from magicore.errors import CapabilityError, LanguageModelError, RequestRefused
from magicore.llms.base import Generation, Request, last_user_text
from magicore.llms.identity import content_key, sample_seed
from magicore.types import Completion, StopReason, Usage

_TOKEN = re.compile(r"\s*\S+(?:\s+$)?")

Alternatives = tuple[tuple[tuple[str, float], ...], ...]


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """One reply, where a plain string does not say enough. Log-probabilities have one entry a white-space token."""

    text: str
    thinking: str | None = None
    stop: StopReason = "stop"
    token_logprobs: tuple[float, ...] | None = None
    top_logprobs: Alternatives | None = None


Reply = str | ScriptedReply
Script = Callable[[Request, int], Reply | Awaitable[Reply]]
"""Gives the reply to one sample of a request; may raise a LanguageModelError, which fails that sample only."""


class ScriptedModel:
    """A deterministic model behind a function, which may be async, or a table of replies.

    A table maps a text to its reply, or to several that the sample indices take in turn. The key that equals the last
    user message is used, else the longest one that it contains.

    ``max_tokens`` and stop strings are honoured. Usage is exact in white-space tokens, and the prompt is counted once a
    request. Log-probabilities are those of the reply; with ``logprobs=True`` a reply without any gets made-up ones, the
    same for the same content key.
    """

    def __init__(
        self,
        script: Script | Mapping[str, str | Sequence[str]],
        *,
        name: str = "scripted",
        fingerprint: str = "",
        logprobs: bool = False,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint or name
        self._script: Script = _table(script, name) if isinstance(script, Mapping) else script
        self._logprobs = logprobs

    async def generate(self, request: Request) -> Generation:
        """Every sample whose script gave a reply.

        Raises:
            LanguageModelError: The script failed for every sample.
            CapabilityError: Log-probabilities are required and the script gives none.
        """
        completions: list[Completion] = []
        failure: LanguageModelError | None = None
        texts = [message["content"] for message in request.messages]
        head = Usage(prompt=sum(map(count_tokens, [*texts, request.prefill or ""])), calls=1)
        for index in request.indices:
            try:
                reply = self._script(request, index)
                if inspect.isawaitable(reply):
                    reply = await reply
            except LanguageModelError as error:
                failure = error
                continue
            completions.append(self._completion(request, index, reply, Usage() if completions else head))
        if failure is not None and not completions:
            raise failure
        return Generation(completions=tuple(completions))

    async def aclose(self) -> None:
        """Nothing to close."""

    def _completion(self, request: Request, index: int, reply: Reply, head: Usage) -> Completion:
        if isinstance(reply, str):
            reply = ScriptedReply(text=reply)
        text, stop = _stopped(reply, request.sampling.stop)
        thought = split_tokens(reply.thinking or "")
        tokens = thought + split_tokens(text)
        if len(tokens) > request.sampling.max_tokens:
            tokens, stop = tokens[: request.sampling.max_tokens], "length"
        reasoning = min(len(thought), len(tokens))
        logprobs, alternatives = self._scores(request, index, reply, tokens)
        return Completion(
            index=index,
            text="".join(tokens[reasoning:]),
            thinking=None if reply.thinking is None else "".join(tokens[:reasoning]),
            stop=stop,
            tokens=len(tokens),
            token_logprobs=logprobs,
            top_logprobs=alternatives,
            usage=head + Usage(completion=len(tokens), reasoning=reasoning),
        )

    def _scores(
        self, request: Request, index: int, reply: ScriptedReply, tokens: Sequence[str]
    ) -> tuple[tuple[float, ...] | None, Alternatives | None]:
        """The log-probabilities that were asked for, for the tokens that were kept."""
        if not request.wants_logprobs:
            return None, None
        logprobs, alternatives = reply.token_logprobs, reply.top_logprobs
        if logprobs is None and self._logprobs:
            draw = random.Random(sample_seed(content_key(self.name, self.fingerprint, request, index)))
            logprobs = tuple(-draw.expovariate(4.0) for _ in tokens)
        if alternatives is None and logprobs is not None:
            alternatives = tuple(((token.strip(), value),) for token, value in zip(tokens, logprobs, strict=False))
        asked = ((request.logprobs, logprobs), (request.top_logprobs > 0, alternatives))
        if request.logprobs_required and any(wanted and values is None for wanted, values in asked):
            raise CapabilityError(f"{self.name}: this script gives no log-probabilities; make it with logprobs=True")
        return (
            logprobs[: len(tokens)] if request.logprobs and logprobs is not None else None,
            alternatives[: len(tokens)] if request.top_logprobs and alternatives is not None else None,
        )


def split_tokens(text: str) -> list[str]:
    """The words of a text, each with the white space before it (the last one also with what follows)."""
    return _TOKEN.findall(text)


def count_tokens(text: str) -> int:
    """The number of words, which is what a scripted model charges for."""
    return len(text.split())


def _stopped(reply: ScriptedReply, stops: Sequence[str]) -> tuple[str, StopReason]:
    """The text up to the first stop string, which is not part of it."""
    found = [at for stop in stops if (at := reply.text.find(stop)) >= 0]
    return (reply.text[: min(found)], "stop") if found else (reply.text, reply.stop)


def _table(replies: Mapping[str, str | Sequence[str]], name: str) -> Script:
    by_length = sorted(replies, key=len, reverse=True)

    def script(request: Request, index: int) -> str:
        asked = last_user_text(request.messages)
        key = asked if asked in replies else next((key for key in by_length if key in asked), None)
        if key is None:
            raise RequestRefused(f"no scripted reply for the message {asked[:80]!r}", model=name)
        reply = replies[key]
        return reply if isinstance(reply, str) else reply[index % len(reply)]

    return script
