"""What judges and generative families share: asking a language model and booking what that costs; besides, the language
model behind a family's name, and the probability of a written decision.

They are given a :class:`~reward_models.base.Generate` callable. A decision that is not there, or that
has no log-probabilities, is typed as unscored; no neutral number stands in for it.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from reward_models.base import Generate, Message, Reply
from reward_models.errors import CapabilityError, RewardModelError
from reward_models.names import ModelName
from reward_models.types import ScoringUsage, Step, StepScore, Unscored

T = TypeVar("T")
TOP_LOGPROBS = 20

CHECKPOINTS: Mapping[str, str] = {"genprm": "GenPRM/GenPRM-7B", "thinkprm": "launch/ThinkPRM-14B"}
"""The Hub id that a bare family name stands for."""


def language_model_name(name: ModelName) -> str | None:
    """The language model, in magicore's grammar, behind the name of a reward model that generates.

    ``genprm@vllm+http://host:8000`` is a server that generates with the family's checkpoint; ``genprm:ORG/REPO`` a
    checkpoint that runs here; in ``judge:openai:NAME@URL`` all after the family is a language model's name. ``None``
    for a bare ``judge``: the run's own model.
    """
    where = name.name or CHECKPOINTS.get(name.provider, "")
    revision = f"#{name.revision}" if name.revision is not None else ""
    if name.engine in ("vllm", "sglang"):
        urls = ",".join(url if url.endswith("/v1") else f"{url}/v1" for url in name.endpoints)
        return f"openai:{where}@{urls}" if where else None
    if name.urls:
        return f"{where}{revision}@{','.join(name.urls)}" if where else None
    if name.provider in CHECKPOINTS and ":" not in where and ("/" in where or where.startswith(".")):
        return f"hf:{where}{revision}"
    return f"{where}{revision}" if where else None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A probability that what was judged is right, in [0, 1], and its log-odds."""

    value: float
    raw: float


def decide(row: Mapping[str, float], good: str, bad: str) -> Decision | Unscored:
    """P(good) / (P(good) + P(bad)) from one position's most likely tokens.

    A token counts for the word that it begins. Where only one of the two is among them, the other is at most as likely
    as the least likely of the list, and that is taken (as GenPRM does); where neither is, there is no decision.
    """
    log_good, log_bad = _log_sum(row, good, bad), _log_sum(row, bad, good)
    if log_good is None and log_bad is None:
        return Unscored(code="unreadable", reason=f"neither {good!r} nor {bad!r} is likely where the decision stands")
    least = min(row.values())
    raw = (least if log_good is None else log_good) - (least if log_bad is None else log_bad)
    return Decision(value=1.0 / (1.0 + math.exp(-raw)) if raw > -_LARGEST else 0.0, raw=raw)


_LARGEST = 700.0


def _log_sum(row: Mapping[str, float], word: str, other: str) -> float | None:
    """The log of the summed probability of the tokens that begin ``word`` and not ``other``."""
    found = [
        number for token, number in row.items() if token and word.startswith(token) and not other.startswith(token)
    ]
    if not found:
        return None
    top = max(found)
    return top + math.log(math.fsum(math.exp(number - top) for number in found))


def rows_at(reply: Reply, offsets: Sequence[int]) -> list[Mapping[str, float]] | None:
    """The log-probability rows of the tokens that begin at these character offsets of the reply's text.

    ``None`` if there are no log-probabilities, or if no token begins at one of the offsets.
    """
    starts = None if reply.logprobs is None else _starts(reply, reply.logprobs)
    if reply.logprobs is None or starts is None:
        return None
    where = {start: at for at, start in enumerate(starts)}
    if any(offset not in where for offset in offsets):
        return None
    return [reply.logprobs[where[offset]] for offset in offsets]


def _starts(reply: Reply, rows: Sequence[Mapping[str, float]]) -> list[int] | None:
    """The offset at which each token begins: from the tokens, or by laying one alternative a row along the text."""
    if reply.tokens is not None and len(reply.tokens) == len(rows):
        ends = list(itertools.accumulate(map(len, reply.tokens)))
        return [0, *ends[:-1]]
    layers: list[dict[int, int]] = [{0: 0}]  # offset reached, and the offset it was reached from
    for row in rows:
        ahead: dict[int, int] = {}
        for at in sorted(layers[-1]):
            for token in row:
                if token and reply.text.startswith(token, at):
                    ahead.setdefault(at + len(token), at)
                elif token and token.startswith(reply.text[at:]):  # the text ends within it, where a stop text begins
                    ahead.setdefault(len(reply.text), at)
        layers.append(ahead)
        if len(reply.text) in ahead or not ahead:
            break
    at = len(reply.text)
    if at not in layers[-1]:
        return None
    starts = []
    for layer in reversed(layers[1:]):
        at = layer[at]
        starts.append(at)
    return starts[::-1]


class Critic:
    """What judges and the generative families share: one language model, so many calls of it at once, and their cost.

    Attributes:
        fingerprint: The name, the settings, and the language model where it says who it is.
        usage: Tokens read and generated so far.
    """

    requires = frozenset({"generate"})

    def __init__(self, name: str, generate: Generate | None, *, concurrency: int, settings: str) -> None:
        if generate is None:
            raise CapabilityError(
                "it asks a language model, and none was given: pass `generate`, or let magicore open one by the name "
                "(judge for the run's own model, judge:MODEL for another)",
                model=name,
            )
        if concurrency < 1:
            raise RewardModelError("concurrency is at least 1", model=name)
        self.name = name
        model = getattr(generate, "fingerprint", "")
        self.fingerprint = f"{name}/{settings}" + (f"/{model}" if model else "")
        self.usage = ScoringUsage()
        self._generate = generate
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def ask(
        self,
        messages: Sequence[Message],
        bill: Bill,
        *,
        prefill: str | None = None,
        stop: Sequence[str] = (),
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        n: int = 1,
    ) -> list[Reply]:
        """Replies, which go on from ``prefill``; what they cost is put on the bill. At most ``concurrency`` calls are
        in flight at once, whoever makes them.
        """
        async with self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._concurrency)):
            replies = await self._generate(
                messages,
                prefill=prefill,
                stop=stop,
                max_tokens=max_tokens,
                temperature=temperature,
                top_logprobs=top_logprobs,
                n=n,
            )
        for reply in replies:
            bill.tokens += reply.usage.prompt_tokens + reply.usage.completion_tokens
            with self._lock:
                self.usage = ScoringUsage(
                    prompt_tokens=self.usage.prompt_tokens + reply.usage.prompt_tokens,
                    completion_tokens=self.usage.completion_tokens + reply.usage.completion_tokens,
                    calls=self.usage.calls + reply.usage.calls,
                )
        return replies


async def in_order(work: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order; a failure is raised after all have ended, so that none is lost half-way."""
    results = []
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


@dataclass
class Bill:
    """Tokens spent on one solution."""

    tokens: int = 0


def not_shown(steps: Sequence[Step]) -> dict[int, Unscored]:
    """The steps that are not shown to the model, and why."""
    known = {}
    for index, step in enumerate(steps):
        if step.part == "thinking":
            known[index] = Unscored(code="thinking_skipped", reason="thinking parts are not scored by this model")
        elif not step.text.strip():
            known[index] = Unscored(code="empty_step", reason="the step is empty")
    return known


def averaged(decisions: Sequence[Decision | Unscored]) -> Decision | Unscored:
    """The mean of the decisions that could be read; the first reason if none could."""
    read = [decision for decision in decisions if isinstance(decision, Decision)]
    if not read:
        missing = next((one for one in decisions if isinstance(one, Unscored)), None)
        return missing or Unscored(code="failed", reason="no reply came")
    value = math.fsum(decision.value for decision in read) / len(read)
    raw = read[0].raw if len(read) == 1 else _log_odds(value)
    return Decision(value=value, raw=raw)


def entry(decision: Decision | Unscored) -> StepScore:
    """A decision as a step's score."""
    if isinstance(decision, Unscored):
        return StepScore(value=None, unscored=decision)
    return StepScore(value=decision.value, raw=decision.raw)


def _log_odds(value: float) -> float:
    if value in (0.0, 1.0):
        return math.copysign(_LARGEST, value - 0.5)
    return math.log(value) - math.log1p(-value)
