"""What a method is given for one problem: models by role, scorers, seeds and accounting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from magicore.answers import canonical_keys
from magicore.chains import read_chain, scored_chain
from magicore.config import Duplicates
from magicore.datasets.options import with_options
from magicore.errors import AuthenticationFailed, ConnectionFailed, ContextExceeded, LanguageModelError, RequestRefused
from magicore.llms.base import Message, Request, Sampling
from magicore.llms.sampler import SampleOutcome
from magicore.prompts import PromptSet
from magicore.runtime.budget import Budget
from magicore.runtime.ledger import Ledger, current_ledger
from magicore.runtime.scoring import ScoreT, ScoringService
from magicore.runtime.shorten import shortened
from magicore.runtime.stored import StoredModel, first_failure
from magicore.types import CallKey, Chain, Completion, Problem, ScoredChain, Usage
from reward_models.types import OutcomeScore, Solution, StepScores

T = TypeVar("T")

CHAIN_ROLES = frozenset({"solver", "refiner", "author", "joint"})
"""Roles whose completions are solutions and may be scored."""


class RunAborted(Exception):
    """The run as a whole cannot go on; the cause is a :class:`~magicore.errors.MagicoreError` for the user."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What all problems of a run share.

    ``models`` maps a role to its model: ``reviewer``, one of several (``reviewer/1``), or all that one of several equal
    agents does (``agent/1``); the narrowest name counts, and ``models["default"]`` serves every other role.
    """

    models: Mapping[str, StoredModel]
    prompts: PromptSet
    orm: ScoringService[OutcomeScore] | None = None
    prm: ScoringService[StepScores] | None = None
    sampling: Sampling = field(default_factory=Sampling)
    aggregation: str = "product"
    duplicates: Duplicates = "count"
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    def model(self, role: str, instance: int = 0) -> StoredModel:
        """The model that plays ``role`` as the ``instance``-th of several."""
        names = (f"{role}/{instance}", f"agent/{instance}", role)
        return next((self.models[name] for name in names if name in self.models), self.models["default"])

    def bind(self, problem: Problem) -> Runtime:
        """A runtime for one problem, with an empty ledger."""
        return Runtime(engine=self, problem=problem, ledger=Ledger(problem.id, self.budget.account(), seed=self.seed))

    @property
    def log_probabilities(self) -> tuple[bool, int]:
        """Whether chains need token log-probabilities, and how many alternatives, for the reward models to work."""
        needs = {need for service in (self.orm, self.prm) if service is not None for need in service.requires}
        return bool(needs & {"token_logprobs", "top_logprobs"}), TOP_LOGPROBS if "top_logprobs" in needs else 0

    async def aclose(self) -> None:
        """Close models and scorers."""
        for service in (self.orm, self.prm):
            if service is not None:
                service.close()
        for model in {id(model): model for model in self.models.values()}.values():
            await model.aclose()


TOP_LOGPROBS = 20
"""Alternatives a position that confidence scores ask for: what DeepConf uses, the most that common endpoints give."""


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """An :class:`Engine` bound to one problem. Methods call it; they never see stores, clients or limits."""

    engine: Engine
    problem: Problem
    ledger: Ledger

    async def complete(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        indices: Sequence[int] = (0,),
        instance: int = 0,
        round: int = 0,
        parent: str | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        prefill: str | None = None,
    ) -> list[Completion]:
        """Sample ``messages`` once for each index; what could not be had is left out and warned about.

        A conversation that does not fit the model's context is shortened by rule
        (:func:`magicore.runtime.shorten.shortened`) and that is warned about; a question alone is never cut.
        ``token_scores`` asks for each token's log-probability with its text; ``prefill`` is text that the reply begins
        with and the completions do not repeat.

        Raises:
            CapabilityError: ``token_scores`` or ``prefill`` of a model that has none.
            LanguageModelError: not one sample could be had.
            RunAborted: the model never answered anything and refuses the connection, the key or the request.
        """
        model = self.engine.model(role, instance)
        logprobs, top = self.engine.log_probabilities if role in CHAIN_ROLES else (False, 0)
        if token_scores:
            logprobs, top = True, max(top, 1)
        request = Request(
            messages=tuple(messages),
            key=CallKey(problem=self.problem.id, role=role, instance=instance, round=round, parent=parent),
            indices=tuple(indices),
            sampling=sampling or self._sampling(role),
            logprobs=logprobs,
            top_logprobs=top,
            prefill=prefill,
            seed=self.engine.seed,
        )
        started = time.perf_counter()
        token = current_ledger.set(self.ledger)
        try:
            outcome = await self._fitted(model, request)
        except LanguageModelError as error:
            raise_if_hopeless(error, model)
            raise
        finally:
            current_ledger.reset(token)
            self.ledger.took(role, time.perf_counter() - started)
        for completion in outcome.completions:
            self.ledger.book(role, model.name, completion.usage)
        for note in outcome.notes:
            self.ledger.warn(note)
        failure = first_failure(outcome)
        if failure is not None:
            if not outcome.completions:
                raise_if_hopeless(failure, model)
                raise failure
            self.ledger.warn(f"{len(outcome.failures)} of {len(indices)} {role} samples failed: {failure}")
        return list(outcome.completions)

    def _sampling(self, role: str) -> Sampling:
        """The run's sampling; stop strings are meant for solutions and would cut reviews anywhere."""
        sampling = self.engine.sampling
        return sampling if role in CHAIN_ROLES or not sampling.stop else replace(sampling, stop=())

    async def _fitted(self, model: StoredModel, request: Request) -> SampleOutcome:
        """The samples of the request, or of the longest shortened form of it that fits the model's context."""
        outcome, refused = await _sampled(model, request)
        if refused is None or (request.key.parent is None and request.key.round == 0):
            return _or_raise(outcome, refused)
        for messages in shortened(request.messages, self.engine.prompts.exemplar_turns(self.problem.kind)):
            outcome, refused = await _sampled(model, replace(request, messages=messages))
            if refused is None:
                self.ledger.warn(f"a {request.key.role} conversation was shortened to fit the context of {model.name}")
                break
        return _or_raise(outcome, refused)

    async def chains(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        indices: Sequence[int] = (0,),
        instance: int = 0,
        round: int = 0,
        parent: str | None = None,
        sampling: Sampling | None = None,
    ) -> list[Chain]:
        """As :meth:`complete`, each completion read as a chain."""
        completions = await self.complete(
            role, messages, indices=indices, instance=instance, round=round, parent=parent, sampling=sampling
        )
        key = CallKey(problem=self.problem.id, role=role, instance=instance, round=round, parent=parent)
        chains = [self.read(key, completion) for completion in completions]
        if self.problem.kind == "math":
            # Parsed in worker processes, which takes time: done aside, so that votes find the keys in the cache.
            answers = [self.problem.answer, *(chain.answer for chain in chains)]
            await asyncio.to_thread(canonical_keys, answers, "math", self.problem.options)
        return chains

    def read(self, key: CallKey, completion: Completion) -> Chain:
        """Read a completion as a chain, with the answer format that the prompts ask for."""
        return read_chain(self.problem, key, completion, asked=self.engine.prompts.asked.get(self.problem.kind))

    async def score(
        self, chains: Sequence[Chain], *, questions: Sequence[str] | None = None
    ) -> tuple[ScoredChain, ...]:
        """Score chains with the outcome and the process reward model, whichever there are, side by side.

        ``questions`` gives each chain's question where they are not all the problem's.
        """
        asked = questions if questions is not None else [self.question] * len(chains)
        solutions = [chain.solution(question) for chain, question in zip(chains, asked, strict=True)]
        for service, role in ((self.engine.orm, "orm"), (self.engine.prm, "prm")):
            if service is not None:
                self.ledger.expect(role, service.name)
        token = current_ledger.set(self.ledger)
        started = time.perf_counter()
        try:
            orm, prm = await asyncio.gather(
                self._scores(self.engine.orm, solutions, "orm"), self._scores(self.engine.prm, solutions, "prm")
            )
        finally:
            current_ledger.reset(token)
            self.ledger.took("scoring", time.perf_counter() - started)
        return tuple(
            scored_chain(chain, o, p, aggregation=self.engine.aggregation)
            for chain, o, p in zip(chains, orm, prm, strict=True)
        )

    async def _scores(
        self, service: ScoringService[ScoreT] | None, solutions: list[Solution], role: str
    ) -> Sequence[ScoreT | None]:
        if service is None:
            return [None] * len(solutions)
        scores = await service.score(solutions)
        tokens = [score.tokens for score in scores if score.tokens is not None]
        if tokens:
            self.ledger.book(role, service.name, Usage(prompt=sum(tokens), calls=len(tokens)))
        return scores

    @property
    def question(self) -> str:
        """The question as models see it."""
        return with_options(self.problem.question, self.problem.options)

    def messages(self, template: str, *, persona: str | None = None, **values: str) -> tuple[Message, ...]:
        """The prompt of a role for this problem, from the run's prompt set; ``persona`` names one of the set's."""
        prompts = self.engine.prompts
        said = "" if persona is None else prompts.persona(persona)
        return prompts.messages(template, self.problem.kind, persona=said, question=self.question, **values)

    def turn(self, template: str, **values: str) -> Message:
        """A message that goes on with a conversation, from the run's prompt set."""
        return self.engine.prompts.turn(template, self.problem.kind, **values)

    def warn(self, text: str) -> None:
        """Note something the user should know; it appears in the result."""
        self.ledger.warn(text)


async def _sampled(model: StoredModel, request: Request) -> tuple[SampleOutcome | None, ContextExceeded | None]:
    """What the model brought, and its refusal if the conversation does not fit its context."""
    try:
        outcome = await model.sample(request)
    except ContextExceeded as error:
        return None, error
    failure = first_failure(outcome)
    return outcome, failure if isinstance(failure, ContextExceeded) and not outcome.completions else None


def _or_raise(outcome: SampleOutcome | None, refused: ContextExceeded | None) -> SampleOutcome:
    if outcome is None:
        raise refused or ContextExceeded("the conversation does not fit the model's context")
    return outcome


def raise_if_hopeless(error: LanguageModelError, model: StoredModel) -> None:
    """Abort the run if ``model`` has never answered and this kind of failure will not pass."""
    if not model.answered and isinstance(error, AuthenticationFailed | ConnectionFailed | RequestRefused):
        raise RunAborted from error


async def collect(calls: Sequence[Awaitable[T]]) -> list[T | LanguageModelError]:
    """Await all at once, keep the order, and return failures of language models as values.

    Any other exception, and cancellation, stops the siblings and is raised.
    """

    async def guarded(call: Awaitable[T]) -> T | LanguageModelError:
        try:
            return await call
        except LanguageModelError as error:
            return error

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(guarded(call)) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
