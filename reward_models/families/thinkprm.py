"""ThinkPRM (arXiv 2504.16828): thinks about a solution at length, then says whether it is correct.

Source: mukhal/ThinkPRM utils/helper.py (prompt) and prm/thinkprm_api.py. One user turn holds the problem, the steps
so far and the instruction; the reply goes on from ``Let's verify step by step:`` until it asks itself whether the
solution is correct, or stops thinking. Then ``Is the solution correct?`` is put, and the score is P(yes) / (P(yes) +
P(no)) of the next token, the mean over ``samples`` verifications.

As an outcome model it verifies the whole solution. As a process model it verifies, for every step, the solution up to
there, as the published search does: exact counts, at the price of one verification a step. With
``reading="verdicts"`` one verification of the whole is read instead, at each ``\\boxed{correct}`` or
``\\boxed{incorrect}`` that it writes, and a verification whose verdicts are not as many as the steps is unreadable
(mukhal/ThinkPRM issue 4).

Departures. The published code lets SGLang choose between the two words by their length-normalised log-probabilities; of
one token each, that is the softmax taken here. It takes a failed call for an incorrect solution; here it is unscored.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Literal

from reward_models._sync import run_sync
from reward_models.base import Generate, Message, Reply
from reward_models.errors import RewardModelError
from reward_models.families.generative import (
    TOP_LOGPROBS,
    Bill,
    Critic,
    Decision,
    averaged,
    decide,
    entry,
    in_order,
    not_shown,
    rows_at,
)
from reward_models.names import ModelName
from reward_models.steps import with_steps
from reward_models.types import OutcomeScore, Solution, StepScores, Unscored

Reading = Literal["prefixes", "verdicts"]

_VERSION = 1
_PROMPT = """You are given a math problem and a proposed step-by-step solution:

[Math Problem]

{problem}

[Solution]

{solution}

Review and critique each step in the proposed solution to determine whether each step is correct. If the solution is \
incomplete, only verify the provided steps."""
_OPENING = "\nLet's verify step by step:"
_QUESTION = "Is the solution correct?"
_END_OF_THINKING = "</think>"
_NUMBERED = re.compile(r"^(?:#+\s*)?Step \d+:\s*")
_VERDICT = re.compile(r"\\boxed\{\s*(?:\\text\{\s*)?(correct|incorrect)\b")


class _ThinkPRM(Critic):
    """Verifications and their decisions."""

    def __init__(
        self,
        generate: Generate | None,
        *,
        name: str = "thinkprm",
        samples: int = 1,
        max_tokens: int = 8172,
        temperature: float = 0.7,
        concurrency: int = 16,
        reading: Reading = "prefixes",
    ) -> None:
        if samples < 1 or max_tokens < 1 or temperature < 0:
            raise RewardModelError("samples and max_tokens are at least 1, temperature at least 0", model=name)
        if reading not in ("prefixes", "verdicts"):
            raise RewardModelError(f"reading is prefixes or verdicts, not {reading!r}", model=name)
        settings = f"thinkprm/{_VERSION}/{reading}/{samples}/{max_tokens}/{temperature}"
        super().__init__(name, generate, concurrency=concurrency, settings=settings)
        self._samples = samples
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._reading = reading

    async def _correct(self, question: str, steps: Sequence[str], bill: Bill) -> Decision | Unscored:
        """How likely the solution that consists of these steps is right."""
        messages = _messages(question, steps)
        decisions = []
        for reply in await self._verifications(messages, len(steps), bill):
            decisions.append(await self._decide(messages, reply, bill))
        return averaged(decisions)

    async def _verifications(self, messages: Sequence[Message], steps: int, bill: Bill) -> list[Reply]:
        return await self.ask(
            messages,
            bill,
            prefill=_OPENING,
            stop=[_QUESTION, _END_OF_THINKING, f"Step {steps + 1}:"],
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            top_logprobs=TOP_LOGPROBS if self._reading == "verdicts" else 0,
            n=self._samples,
        )

    async def _decide(self, messages: Sequence[Message], verification: Reply, bill: Bill) -> Decision | Unscored:
        if verification.stop == "length":
            return self._cut_off()
        written = verification.text.removesuffix(_END_OF_THINKING).rstrip().removesuffix(_QUESTION).rstrip()
        replies = await self.ask(
            messages,
            bill,
            prefill=f"{_OPENING}{written}\n{_QUESTION} ",
            max_tokens=1,
            top_logprobs=TOP_LOGPROBS,
        )
        if not replies:
            return Unscored(code="failed", reason="no decision came")
        if not replies[0].logprobs:
            reason = "the language model gives no log-probabilities, from which the score is read"
            return Unscored(code="no_logprobs", reason=reason)
        return decide(replies[0].logprobs[0], "yes", "no")

    def _cut_off(self) -> Unscored:
        reason = f"the verification was cut off at {self._max_tokens} tokens; raise max_tokens"
        return Unscored(code="unreadable", reason=reason)


class ThinkORM(_ThinkPRM):
    """Verifies whole solutions; see the module's text.

    Args:
        generate: The language model, which must continue a reply that is begun for it and give log-probabilities.
        name: What the model is called.
        samples: Verifications a solution.
        max_tokens: Longest verification.
        temperature: Of verifications.
        concurrency: Calls in flight at the same time.

    Raises:
        CapabilityError: ``generate`` is missing.
        RewardModelError: An option is out of range.
    """

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))

    async def ascore(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """One probability or reason a solution, in order."""
        return await in_order(map(self._score, solutions))

    async def _score(self, solution: Solution) -> OutcomeScore:
        steps = with_steps(solution).steps
        known = not_shown(steps)
        bill = Bill()
        texts = [step.text for index, step in enumerate(steps) if index not in known]
        decision: Decision | Unscored = Unscored(code="empty_step", reason="the solution is empty")
        if texts:
            decision = await self._correct(solution.question, texts, bill)
        if isinstance(decision, Unscored):
            return OutcomeScore(value=None, activation="softmax", unscored=decision, tokens=bill.tokens)
        return OutcomeScore(value=decision.value, raw=decision.raw, activation="softmax", tokens=bill.tokens)


class ThinkPRM(_ThinkPRM):
    """Verifies step by step; see the module's text.

    Args:
        generate: The language model, which must continue a reply that is begun for it and give log-probabilities.
        reading: ``prefixes``, one verification for each step, or ``verdicts``, one for all.
        name, samples, max_tokens, temperature, concurrency: As in :class:`ThinkORM`.

    Raises:
        CapabilityError: ``generate`` is missing.
        RewardModelError: An option is out of range.
    """

    @property
    def aggregation(self) -> str:
        """The last prefix is the solution; of separate verdicts the worst decides."""
        return "last" if self._reading == "prefixes" else "min"

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))

    async def ascore(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """One probability or reason a step, in order."""
        return await in_order(map(self._score, solutions))

    async def _score(self, solution: Solution) -> StepScores:
        steps = with_steps(solution).steps
        decisions: dict[int, Decision | Unscored] = dict(not_shown(steps))
        shown = [index for index in range(len(steps)) if index not in decisions]
        texts = [steps[index].text for index in shown]
        bill = Bill()
        if self._reading == "verdicts" and texts:
            found = await self._verdicts(solution.question, texts, bill)
        else:
            prefixes = [texts[: end + 1] for end in range(len(texts))]
            asked = [self._correct(solution.question, prefix, bill) for prefix in prefixes]
            found = list(await asyncio.gather(*asked))
        decisions.update(zip(shown, found, strict=True))
        return StepScores(
            steps=steps,
            scores=tuple(entry(decisions[index]) for index in range(len(steps))),
            activation="softmax",
            aggregation=self.aggregation,
            tokens=bill.tokens,
        )

    async def _verdicts(self, question: str, texts: Sequence[str], bill: Bill) -> list[Decision | Unscored]:
        """One decision a step from verifications of the whole."""
        replies = await self._verifications(_messages(question, texts), len(texts), bill)
        read = [self._read_verdicts(reply, len(texts)) for reply in replies]
        if not read:
            return [averaged([])] * len(texts)
        return [averaged([one[at] for one in read]) for at in range(len(texts))]

    def _read_verdicts(self, reply: Reply, steps: int) -> list[Decision | Unscored]:
        if reply.stop == "length":
            return [self._cut_off()] * steps
        found = list(_VERDICT.finditer(reply.text))
        if len(found) != steps:
            reason = f"the verification gives {len(found)} verdicts for {steps} steps"
            return [Unscored(code="unreadable", reason=reason)] * steps
        if reply.logprobs is None:
            reason = "the language model gives no log-probabilities, from which the scores are read"
            return [Unscored(code="no_logprobs", reason=reason)] * steps
        rows = rows_at(reply, [match.start(1) for match in found])
        if rows is None:
            return [Unscored(code="unreadable", reason="no token begins where a verdict does")] * steps
        return [decide(row, "correct", "incorrect") for row in rows]


def _messages(question: str, steps: Sequence[str]) -> list[Message]:
    """The user's turn; steps are numbered, whatever numbers they came with."""
    lines = [f"Step {at}: {_NUMBERED.sub('', step.strip()).strip()}" for at, step in enumerate(steps, start=1)]
    content = _PROMPT.format(problem=question.strip(), solution="\n".join(lines))
    return [{"role": "user", "content": content}]


def load_orm(
    name: ModelName,
    *,
    generate: Generate | None = None,
    samples: int = 1,
    max_tokens: int = 8172,
    temperature: float = 0.7,
    concurrency: int = 16,
) -> ThinkORM:
    """ThinkPRM's verification of whole solutions, thinkprm[:CHECKPOINT][@vllm+http://...]."""
    return ThinkORM(
        generate,
        name=str(name),
        samples=samples,
        max_tokens=max_tokens,
        temperature=temperature,
        concurrency=concurrency,
    )


def load_prm(
    name: ModelName,
    *,
    generate: Generate | None = None,
    samples: int = 1,
    max_tokens: int = 8172,
    temperature: float = 0.7,
    concurrency: int = 16,
    reading: Reading = "prefixes",
) -> ThinkPRM:
    """ThinkPRM step by step, thinkprm[:CHECKPOINT][@vllm+http://...]."""
    return ThinkPRM(
        generate,
        name=str(name),
        samples=samples,
        max_tokens=max_tokens,
        temperature=temperature,
        concurrency=concurrency,
        reading=reading,
    )
