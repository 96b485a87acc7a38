"""GenPRM (arXiv 2504.00891): writes a critique of each paragraph and judges it with Yes or No.

Source: RyanLiu112/GenPRM src/prm_evaluation (genprm_inference.py, prm_evaluate.py). The conversation has a system turn,
a user turn with question and first step, then the critique as the assistant's turn and the next step as the user's, and
so on. A critique begins with a given ``<analyze>`` opening; the judgement is written after a given ``<output>`` opening
and its score is P(Yes) / (P(Yes) + P(No)) there, the mean over ``majority`` critiques.

Departures. The published code lets the model write Python in a ``<verify>`` part, runs it without a sandbox and shows
the model what it printed. Here code that a model wrote is never run: by default the judgement follows the analysis
directly (its own ``verify=False``), and with ``code=True`` the model also writes the code and imagines its output
itself (its ``execute=False``). A critique without a readable judgement is left out of the mean, and a step without
any is unscored (published: 0.5); the steps after it are then unscored too, since their conversation would lack a
judgement. The judgement is read at temperature 0, which does not change the two probabilities. ``top_p`` .95 and
``top_k`` 20 of the published code are left to the server. The source states no aggregation; the minimum is what arXiv
2501.07301 finds best for models that learned from judged steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reward_models._sync import run_sync
from reward_models.base import Generate, Message
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
from reward_models.types import Solution, Step, StepScores, Unscored

_VERSION = 1
_SYSTEM = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."
_ANALYZE = "<analyze>\nLet's analyze the Paragraph {step} step by step: "
_VERIFY = "<verify>\nLet's use python code to find any potential error:\n```python\n"
_OUTPUT = "<output>\n**Judgement**: $\\boxed"
_END_ANALYSIS, _END_VERIFICATION, _END_OUTPUT = "</analyze>\n", "</verify>\n", "</output>\n"
_JUDGEMENT_TOKENS = 20
_JUDGED = re.compile(r"\s*\{\s*(?:\\text\{)?\s*(Yes|No)\b")


class _Critique(NamedTuple):
    """One critique: its text as the assistant's turn, and the judgement at its end."""

    text: str
    decision: Decision | Unscored


class GenPRM(Critic):
    """A process reward model that reasons before it judges; see the module's text.

    Args:
        generate: The language model, which must continue a reply that is begun for it and give log-probabilities.
        name: What the model is called.
        majority: Critiques a step.
        code: Whether the model writes code, and its imagined output, before it judges. It is never run.
        max_tokens: Longest analysis, and longest code part.
        temperature: Of critiques.
        concurrency: Calls in flight at the same time.

    Raises:
        CapabilityError: ``generate`` is missing.
        RewardModelError: An option is out of range.
    """

    aggregation = "min"

    def __init__(
        self,
        generate: Generate | None,
        *,
        name: str = "genprm",
        majority: int = 1,
        code: bool = False,
        max_tokens: int = 2048,
        temperature: float = 0.6,
        concurrency: int = 16,
    ) -> None:
        if majority < 1 or max_tokens < 1 or temperature < 0:
            raise RewardModelError("majority and max_tokens are at least 1, temperature at least 0", model=name)
        settings = f"genprm/{_VERSION}/{majority}/{code}/{max_tokens}/{temperature}"
        super().__init__(name, generate, concurrency=concurrency, settings=settings)
        self._majority = majority
        self._code = code
        self._max_tokens = max_tokens
        self._temperature = temperature

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """:meth:`ascore` for callers without an event loop."""
        return run_sync(self.ascore(solutions))

    async def ascore(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """One probability or reason a step, in order."""
        return await in_order(map(self._score, solutions))

    async def _score(self, solution: Solution) -> StepScores:
        steps = with_steps(solution).steps
        known = not_shown(steps)
        bill = Bill()
        decisions: dict[int, Decision | Unscored] = dict(known)
        shown = [index for index in range(len(steps)) if index not in known]
        messages: list[Message] = [{"role": "system", "content": _SYSTEM}]
        for number, index in enumerate(shown, start=1):
            messages.append({"role": "user", "content": _paragraph(solution, steps[index], number)})
            critiques = await self._criticise(messages, number, bill)
            decisions[index] = averaged([critique.decision for critique in critiques])
            readable = [critique for critique in critiques if isinstance(critique.decision, Decision)]
            if not readable:
                reason = f"the critique of step {index + 1} could not be read, and what follows builds on it"
                decisions.update(dict.fromkeys(shown[number:], Unscored(code="unreadable", reason=reason)))
                break
            messages.append({"role": "assistant", "content": readable[0].text})
        return StepScores(
            steps=steps,
            scores=tuple(entry(decisions[index]) for index in range(len(steps))),
            activation="softmax",
            aggregation=self.aggregation,
            tokens=bill.tokens,
        )

    async def _criticise(self, messages: Sequence[Message], number: int, bill: Bill) -> list[_Critique]:
        opening = _ANALYZE.format(step=number)
        analyses = await self.ask(
            messages,
            bill,
            prefill=opening,
            stop=[_END_ANALYSIS.strip()],
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            n=self._majority,
        )
        critiques = []
        for analysis in analyses:
            if analysis.stop == "length":
                reason = f"the analysis was cut off at {self._max_tokens} tokens; raise max_tokens"
                critiques.append(_Critique("", Unscored(code="unreadable", reason=reason)))
                continue
            text = opening + analysis.text.removesuffix("\n").removesuffix(_END_ANALYSIS.strip()) + _END_ANALYSIS
            if self._code:
                text = await self._with_code(messages, text, bill)
            critiques.append(await self._judge(messages, text, bill))
        return critiques

    async def _with_code(self, messages: Sequence[Message], text: str, bill: Bill) -> str:
        """The critique with code and the output that the model imagines; without both where they do not end."""
        replies = await self.ask(
            messages,
            bill,
            prefill=text + _VERIFY,
            stop=[_END_VERIFICATION.strip(), "<output>"],
            max_tokens=self._max_tokens,
            temperature=self._temperature,
        )
        if not replies or replies[0].stop == "length":
            return text
        written = replies[0].text.removesuffix("\n").removesuffix(_END_VERIFICATION.strip())
        return text + _VERIFY + written + _END_VERIFICATION

    async def _judge(self, messages: Sequence[Message], text: str, bill: Bill) -> _Critique:
        begun = text + _OUTPUT
        replies = await self.ask(
            messages,
            bill,
            prefill=begun,
            stop=[_END_OUTPUT.strip()],
            max_tokens=_JUDGEMENT_TOKENS,
            top_logprobs=TOP_LOGPROBS,
        )
        if not replies:
            return _Critique("", Unscored(code="failed", reason="no judgement came"))
        reply = replies[0]
        found = _JUDGED.match(reply.text)
        if found is None:
            return _Critique("", Unscored(code="unreadable", reason="the judgement is neither Yes nor No"))
        if reply.logprobs is None:
            reason = "the language model gives no log-probabilities, from which the score is read"
            return _Critique("", Unscored(code="no_logprobs", reason=reason))
        rows = rows_at(reply, [found.start(1)])
        if rows is None:
            return _Critique("", Unscored(code="unreadable", reason="no token begins where the judgement does"))
        whole = begun + reply.text.rstrip("\n").removesuffix(_END_OUTPUT.strip()).rstrip("\n") + "\n" + _END_OUTPUT
        return _Critique(whole, decide(rows[0], "Yes", "No"))


def _paragraph(solution: Solution, step: Step, number: int) -> str:
    text = step.text.strip()
    return f"{solution.question.strip()}\n{text}" if number == 1 else text


def load(
    name: ModelName,
    *,
    generate: Generate | None = None,
    majority: int = 1,
    code: bool = False,
    max_tokens: int = 2048,
    temperature: float = 0.6,
    concurrency: int = 16,
) -> GenPRM:
    """GenPRM over a language model, genprm[:CHECKPOINT][@vllm+http://...]."""
    return GenPRM(
        generate,
        name=str(name),
        majority=majority,
        code=code,
        max_tokens=max_tokens,
        temperature=temperature,
        concurrency=concurrency,
    )
