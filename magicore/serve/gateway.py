"""The work behind the routes: one open engine, and requests that are solved on it, each on its own."""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from difficulty import load_calibration
from difficulty.errors import DifficultyError
from magicore.answers.kinds import Kind
from magicore.config import CALIBRATIONS, RunConfig
from magicore.errors import InputError, MagicoreError
from magicore.llms.base import Message, Sampling
from magicore.llms.identity import SEEDS, sibling_seed
from magicore.llms.limiter import waiting_line
from magicore.methods import AnyMethod
from magicore.report.observing import observed
from magicore.runtime.budget import Budget, Halt
from magicore.runtime.directory import STORE, open_cache, open_directory
from magicore.runtime.observer import Observers
from magicore.runtime.open import open_engine
from magicore.runtime.run import run_method
from magicore.runtime.runtime import Engine
from magicore.serve.answers import Content, Spent, content_of, spent_on
from magicore.serve.choosing import check_defaults, choose, served
from magicore.serve.conversation import Conversation, check_turns, conversation, problem_of
from magicore.serve.failures import Refusal, failed_result, invalid, refusal_of, stopping
from magicore.serve.limits import Limits, Turns
from magicore.serve.metrics import Metrics
from magicore.serve.progress import Account, Watcher
from magicore.serve.wire import ChatRequest, MagicoreOptions
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result
from reward_models.errors import RewardModelError

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it is worked on.

    Attributes:
        id: The answer's id; answers' problems are named after it.
        request: What the client sent.
        method: The method that its model's name means.
        problem: The question; every answer gets one with an id of its own.
        prompts: The prompt set with the client's messages in it.
        sampling: How chains are sampled.
        seed: The client's seed, the server's, or one of its own.
        budget: The server's budget, with one account for the whole request.
        warnings: What the client should know already.
        account: What becomes of its calls.
        created: When it came, in seconds since the epoch.
    """

    id: str
    request: ChatRequest
    method: AnyMethod
    problem: Problem
    prompts: Conversation
    sampling: Sampling
    seed: int
    budget: Budget
    warnings: tuple[str, ...] = ()
    account: Account = field(default_factory=Account)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def n(self) -> int:
        """How many answers are asked for."""
        return self.request.n or 1


@dataclass(frozen=True, kw_only=True)
class Solved:
    """One run of the method: which answer it is for, its seed, and its result, which may be a failure."""

    index: int
    seed: int
    result: Result


@dataclass(frozen=True, kw_only=True)
class Found:
    """One answer: its number, the seed it was found with, the result, and what of it is shown."""

    index: int
    seed: int
    result: Result
    content: Content


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a request brought: its answers in order, what they cost, and what the client should know of all."""

    asked: Asked
    found: tuple[Found, ...]
    spent: Spent
    warnings: tuple[str, ...] = ()


class Gateway:
    """Solves requests.

    Args:
        config: Models, reward models, defaults of sampling and methods, calibration, cache and budget.
        limits: What is taken on.
        seed: The seed of requests without one; by default each gets a new one, and says which.
        out: A directory for the store; without it the store is a temporary file.
        force: Take over a directory with other settings.
        log_json: A file to which every event is appended.
        traces: Whether OpenTelemetry spans are written.
        given: Objects in place of the model and reward models that ``config`` names.

    Raises:
        InputError: An option is no method's, or the calibration is no saved file.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        out: Path | None = None,
        force: bool = False,
        log_json: Path | None = None,
        traces: bool = False,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        if config.calibration in CALIBRATIONS and config.calibration != "batch":
            raise InputError(
                f"a server routes questions one by one, for which calibration is a saved file and not "
                f"{config.calibration!r}: `magicore calibrate DIR` makes one from a finished run"
            )
        check_defaults(config.options)
        self.config = config
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self.turns = Turns(self.limits)
        self.metrics.watch(lambda: self.turns.working, lambda: self.turns.waiting)
        self.failure: Exception | None = None
        self.stopping = False
        self.created = int(time.time())
        self._seed = seed
        self._out, self._force = out, force
        self._log_json, self._traces = log_json, traces
        self._given = dict(given or {})
        self._halt = Halt()
        self._watcher = Watcher(self.metrics)
        self._observer: Observers | Watcher = self._watcher
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open store and models for as long as the context lasts. What fails is kept in ``failure`` too.

        Raises:
            MagicoreError, RewardModelError: Something cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        try:
            with self._store() as store, observed(False, log_json=self._log_json, traces=self._traces) as observer:
                self._observer = Observers((self._watcher, observer))
                opening = open_engine(self.config, store, halt=self._halt, watcher=self._observer, **self._given)
                async with opening as engine:
                    self._check_calibration(engine)
                    self._engine = engine
                    self._observer.started(None)
                    yield
        except Exception as error:
            self.failure = error
            raise
        finally:
            self._engine = None

    @contextmanager
    def _store(self) -> Iterator[RunStore]:
        if self._out is not None:
            with open_directory(self._out, self.config, force=self._force) as store:
                yield store
            return
        with tempfile.TemporaryDirectory(prefix="magicore-serve-") as folder:
            cache = None if self.config.cache is None else open_cache(Path(self.config.cache))
            store = RunStore(Path(folder) / STORE, cache=cache)
            try:
                yield store
            finally:
                store.close()

    def _check_calibration(self, engine: Engine) -> None:
        """Read a saved calibration once, and say where it was made with other reward models than are here."""
        if self.config.calibration in CALIBRATIONS:
            return
        stats = load_calibration(self.config.calibration)
        here = {name: getattr(getattr(engine, name), "name", None) for name in ("orm", "prm")}
        here["aggregation"] = engine.aggregation
        for name, now in here.items():
            then = getattr(stats, name)
            if then is not None and now is not None and then.partition("@")[0] != now.partition("@")[0]:
                log.warning("%s was made with %s %s; here it is %s", self.config.calibration, name, then, now)

    @property
    def rewards(self) -> frozenset[str]:
        """The reward models that are there."""
        config = self.config
        named = {"orm": config.orm, "prm": config.prm}
        return frozenset(name for name in named if named[name] is not None or name in self._given)

    def methods(self) -> dict[str, str]:
        """The methods that can be run here, with a line on each."""
        return served(self.config.options, self.rewards)

    def method(self, name: str, given: Mapping[str, Any] | None = None) -> AnyMethod:
        """The method that a model's name means.

        Raises:
            Refusal: There is none, or an option is wrong.
        """
        return choose(
            name,
            given or {},
            defaults=self.config.options,
            rewards=self.rewards,
            most=self.limits.completions,
        )

    def accept(self, request: ChatRequest) -> Asked:
        """Check a request; nothing is spent yet.

        Raises:
            Refusal: It cannot be worked on.
        """
        engine = self._engine
        if self.stopping or engine is None:
            raise stopping()
        self.turns.check()
        chosen = request.magicore or MagicoreOptions()
        if (request.n or 1) > self.limits.choices:
            raise invalid(f"n is at most {self.limits.choices} here, not {request.n}", param="n")
        method = self.method(request.model, chosen.method_options)
        most = method.completions[1] * (request.n or 1)
        if most > self.limits.completions:
            raise invalid(
                f"{request.n} answers may take {most:,} completions, and {self.limits.completions:,} are allowed a "
                "request; ask for fewer chains, rounds or answers",
                param="n",
                code="too_many_completions",
            )
        messages = [Message(role=message.role, content=message.text) for message in request.messages]
        name = f"chatcmpl-{secrets.token_hex(12)}"
        try:
            check_turns(messages)
        except InputError as error:
            raise invalid(str(error), param="messages") from None
        try:
            problem = problem_of(
                messages, name, kind=self._kind(chosen), choices=chosen.choices, question=chosen.question
            )
            budget = engine.budget.shared({str(kind): most for kind, most in (chosen.budget or {}).items()})
        except InputError as error:
            raise invalid(str(error), param="magicore") from None
        sampling = self._sampling(request)
        return Asked(
            id=name,
            request=request,
            method=method,
            problem=problem,
            prompts=conversation(engine.prompts, messages),
            sampling=sampling,
            seed=self._seed_of(request),
            budget=budget,
            warnings=_warnings(method, sampling),
        )

    async def answer(self, asked: Asked) -> Answered:
        """Wait for a turn and solve the request, once for each answer that is asked for.

        An answer that fails is left out if others are found. Cancelling stops everything that was begun.

        Raises:
            Refusal: No answer was found.
        """
        started = time.monotonic()
        async with self.turns.turn():
            tasks = [asyncio.create_task(self._solve(asked, index)) for index in range(asked.n)]
            try:
                done = await asyncio.gather(*tasks, return_exceptions=True)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        self.metrics.answered(asked.method.name, time.monotonic() - started)
        return _answered(asked, done)

    async def _solve(self, asked: Asked, index: int) -> Solved:
        assert self._engine is not None
        seed = sibling_seed(asked.seed, index)
        problem = replace(asked.problem, id=asked.id if asked.n == 1 else f"{asked.id}-{index}")
        engine = replace(self._engine, prompts=asked.prompts, sampling=asked.sampling, seed=seed, budget=asked.budget)
        waiting_line.set(asked.id)
        self._watcher.opened(problem.id, asked.account, index)
        try:
            outcome = await run_method(
                asked.method,
                [problem],
                engine,
                calibration=self.config.calibration,
                concurrency=1,
                observer=_OneProblem(self._observer),
            )
        finally:
            self._watcher.closed(problem.id)
        return Solved(index=index, seed=seed, result=outcome.results[0])

    def stop(self) -> None:
        """Take no further request; half the grace period later, let those in work end with what they have.

        May be called from a signal handler.
        """
        self.stopping = True
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.call_later, self.limits.grace_s / 2, self._halt.set)

    def _kind(self, chosen: MagicoreOptions) -> Kind | None:
        return chosen.kind or cast("Kind | None", self.config.kind)

    def _sampling(self, request: ChatRequest) -> Sampling:
        config = self.config
        return Sampling(
            temperature=config.temperature if request.temperature is None else float(request.temperature),
            top_p=config.top_p if request.top_p is None else float(request.top_p),
            max_tokens=request.limit or config.max_tokens,
            stop=request.stops,
        )

    def _seed_of(self, request: ChatRequest) -> int:
        if request.seed is not None:
            return request.seed
        return secrets.randbelow(SEEDS) if self._seed is None else self._seed


class _OneProblem(Observers):
    """Passes on what concerns a problem: a server's run has begun long ago."""

    def __init__(self, observer: Observers | Watcher) -> None:
        super().__init__((observer,))

    def started(self, problems: int | None) -> None:
        """One more problem."""


def _warnings(method: AnyMethod, sampling: Sampling) -> tuple[str, ...]:
    if sampling.temperature == 0 and getattr(method, "k", 1) > 1:
        return ("at temperature 0 the chains of a question are alike, so that voting over them says little",)
    return ()


def _answered(asked: Asked, done: Sequence[Solved | BaseException]) -> Answered:
    """The answers among what was done, and what all of it cost.

    Raises:
        Refusal: There is none.
    """
    found: list[Found] = []
    refusals: list[Refusal] = []
    for one in done:
        if isinstance(one, Solved):
            refusal = failed_result(one.result)
        elif isinstance(one, Exception):
            refusal = refusal_of(one)
            if not isinstance(one, MagicoreError | RewardModelError | DifficultyError):
                log.error("a request failed", exc_info=one)
        else:
            raise one
        if refusal is not None:
            refusals.append(refusal)
        elif isinstance(one, Solved):
            content = content_of(one.result)
            found.append(Found(index=one.index, seed=one.seed, result=one.result, content=content))
    if not found:
        raise refusals[0]
    account = asked.account
    results = [one.result for one in done if isinstance(one, Solved)]
    spent = spent_on(results, paid=account.paid, unreadable=account.unreadable, lost=account.lost)
    warnings = [f"{len(refusals)} of {asked.n} answers failed: {refusals[0]}"] if refusals else []
    return Answered(asked=asked, found=tuple(found), spent=spent, warnings=(*asked.warnings, *warnings))
