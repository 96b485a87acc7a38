"""inspect_ai: methods as a solver, answers graded by kind as a scorer (extra ``inspect``).

::

    inspect eval task.py --model openai/gpt-4o-mini --solver magicore/solve -S method=self-consistency:k=8

The solver runs on whichever model the evaluation runs on; calls, retries, limits and logs stay inspect_ai's. Reward
models and everything else are magicore's. Inspect finds both through the entry point group ``inspect_ai``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score, accuracy, scorer, stderr
from inspect_ai.solver import solver

from magicore.answers import equivalent, extract
from magicore.answers.kinds import Kind
from magicore.api import make_config
from magicore.config import RunConfig
from magicore.datasets import read_problem
from magicore.datasets.problems import checked_kind
from magicore.errors import CapabilityError, LanguageModelError, MagicoreError
from magicore.llms.base import Generation, Message, Request, Sampling, Traits
from magicore.llms.identity import request_seed, sibling_seed
from magicore.methods import make_method
from magicore.runtime.directory import open_cache
from magicore.runtime.open import open_engine
from magicore.runtime.run import run_method
from magicore.runtime.runtime import Engine
from magicore.serve.answers import choice_body, content_of
from magicore.serve.choosing import split_name
from magicore.serve.conversation import check_turns, conversation, problem_of
from magicore.store.run_store import RunStore
from magicore.types import Completion, Problem, Result, StopReason, Usage

METADATA = "magicore"
"""Where the solver leaves what it found, in the sample's metadata: what a gateway's choice says under ``magicore``."""

Solve = Callable[[Any, Any], Awaitable[Any]]
_STOPS: Mapping[str, StopReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
}
_ENDS: Mapping[str, str] = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
_SAMPLES_AT_ONCE = 4096  # inspect_ai limits its connections itself
_TURNS: Mapping[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


class InspectModel:
    """The model of an evaluation, as magicore's methods call one: one call a sample, seeded where the provider can."""

    traits = Traits(remote=True, max_n=1, concurrency=_SAMPLES_AT_ONCE)

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = f"inspect:{model}"
        self.fingerprint = ""

    async def generate(self, request: Request) -> Generation:
        """One call.

        Raises:
            LanguageModelError: It failed; inspect_ai has tried again already where that could help.
        """
        sampling = request.sampling
        config = GenerateConfig(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            stop_seqs=list(sampling.stop) or None,
            seed=request_seed(self.name, self.fingerprint, request),
            logprobs=request.wants_logprobs or None,
            top_logprobs=request.top_logprobs or None,
        )
        turns = [_TURNS[message["role"]](content=message["content"]) for message in request.messages]
        try:
            output = await self._model.generate(turns, config=config)
        except Exception as error:
            raise LanguageModelError(f"{type(error).__name__}: {error}", model=self.name) from error
        if output.empty:
            raise LanguageModelError(output.error or "answered without a choice", model=self.name)
        return Generation(completions=(_completion(output, request.indices[0], request),))

    async def aclose(self) -> None:
        """Nothing to close: the model is inspect_ai's."""


def _completion(output: Any, index: int, request: Request) -> Completion:
    choice = output.choices[0]
    content = choice.message.content
    parts = [] if isinstance(content, str) else content
    thinking = "".join(getattr(part, "reasoning", "") for part in parts if part.type == "reasoning")
    rows = None if choice.logprobs is None else choice.logprobs.content
    usage = output.usage
    return Completion(
        index=index,
        text=choice.message.text,
        thinking=thinking or None,
        stop=_STOPS.get(choice.stop_reason, "error"),
        tokens=None if usage is None else usage.output_tokens,
        token_logprobs=None if rows is None or not request.logprobs else tuple(row.logprob for row in rows),
        top_logprobs=None
        if rows is None or not request.top_logprobs
        else tuple(tuple((one.token, one.logprob) for one in row.top_logprobs or ()) for row in rows),
        usage=Usage(calls=1, unmetered=1) if usage is None else _usage(usage),
    )


def _usage(usage: Any) -> Usage:
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    return Usage(
        prompt=usage.input_tokens + read + written,
        completion=usage.output_tokens,
        reasoning=usage.reasoning_tokens or 0,
        calls=1,
        cached=read,
    )


class _Engines:
    """One engine a model and event loop, opened at first use; it lasts as long as the loop, as the eval does."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._lock = asyncio.Lock()
        self._open: dict[tuple[int, str], tuple[AsyncExitStack, Engine]] = {}

    async def of(self, model: Any) -> Engine:
        """The engine for a model of inspect_ai's."""
        key = (id(asyncio.get_running_loop()), str(model))
        async with self._lock:
            if key not in self._open:
                stack = AsyncExitStack()
                store = RunStore(cache=None if self._config.cache is None else open_cache(Path(self._config.cache)))
                stack.callback(store.close)
                opening = open_engine(self._config, store, model=InspectModel(model))
                self._open[key] = (stack, await stack.enter_async_context(opening))
            return self._open[key][1]


def _solve(
    method: str | list[str] = "weighted-self-consistency",
    orm: str | None = None,
    prm: str | None = None,
    kind: str | None = None,
    calibration: str = "batch",
    cache: str | None = None,
    prompts: str = "raw",
    seed: int = 0,
) -> Solve:
    """Answer by a method, on the model of the evaluation; the sample's messages go to the solver unchanged.

    The output is the best chain of the winning class, verbatim; ``state.metadata["magicore"]`` says how it was found.
    Temperature, top_p, max_tokens, stop_seqs and seed are the evaluation's where it sets them. Each epoch after the
    first has a seed of its own, made of that one.

    Args:
        method: A method with options, as a gateway's model is named: ``magicore:k=8,iterations=1``. (Inspect's command
            line makes a list of what has commas, which is put together again.)
        orm: The outcome reward model.
        prm: The process reward model.
        kind: How answers are read; by default as the target is.
        calibration: A saved calibration file, for methods that route.
        cache: A store file that runs share.
        prompts: The prompt set of the roles beside the solver.
        seed: The seed where the evaluation sets none.

    Raises:
        MagicoreError: An option is wrong.
    """
    name, options = split_name(method if isinstance(method, str) else ",".join(map(str, method)))
    made = make_method(name, **options)
    forced = None if kind is None else checked_kind(kind, "kind")
    if missing := sorted(made.needs - {reward for reward, named in (("orm", orm), ("prm", prm)) if named is not None}):
        flags = " and ".join(f"-S {reward}=NAME" for reward in missing)
        raise CapabilityError(f"method {name} needs reward models: give {flags} (`magicore list` shows them)")
    given = {"method": name, "orm": orm, "prm": prm, "calibration": calibration, "cache": cache, "prompts": prompts}
    config = make_config(None, {key: value for key, value in given.items() if value is not None})
    engines = _Engines(config)

    async def run(state: Any, generate: Any) -> Any:
        model = get_model()
        opening = [Message(role=turn.role, content=turn.text) for turn in state.messages]
        check_turns(opening)
        engine = await engines.of(model)
        wanted = _wanted(model)
        own = replace(
            engine,
            prompts=conversation(engine.prompts, opening),
            sampling=_sampling(config, wanted),
            seed=sibling_seed(seed if wanted.seed is None else wanted.seed, state.epoch - 1),
        )
        problem = problem_of(opening, _name(state), kind=forced or _graded(state).kind, choices=_choices(state))
        outcome = await run_method(made, [problem], own, calibration=config.calibration, concurrency=1)
        return _answered(state, outcome.results[0], own.seed, str(model))

    return run


def _wanted(model: Any) -> Any:
    """What the evaluation, the task and the model ask for together; inspect_ai offers no public way to that."""
    merged = getattr(model, "_resolve_config", None)
    return model.config if merged is None else merged(GenerateConfig())


def _sampling(config: RunConfig, wanted: Any) -> Sampling:
    return Sampling(
        temperature=config.temperature if wanted.temperature is None else wanted.temperature,
        top_p=config.top_p if wanted.top_p is None else wanted.top_p,
        max_tokens=wanted.max_tokens or config.max_tokens,
        stop=tuple(wanted.stop_seqs or ()),
    )


def _answered(state: Any, result: Result, seed: int, model: str) -> Any:
    """The state with a result in it.

    Raises:
        MagicoreError: There is none; inspect_ai then counts the sample as one with an error.
    """
    if result.error is not None or not any(round.chains for round in result.rounds):
        raise MagicoreError("no answer" if result.error is None else result.error.message)
    content = content_of(result)
    state.output = ModelOutput.from_content(model, content.text, stop_reason=cast(Any, _ENDS[content.finish]))
    state.messages.append(state.output.message)
    state.metadata[METADATA] = choice_body(result, content, seed=seed)
    return state


def _name(state: Any) -> str:
    return f"{state.sample_id}-{state.epoch}"


def _choices(state: Any) -> list[str] | None:
    texts = [choice.value for choice in state.choices]
    return texts or None


def _graded(state: Any, target: str | None = None, kind: Kind | None = None) -> Problem:
    """The sample as a problem with its gold, from which its kind is known."""
    gold = state.target.text if target is None else target
    row = {"question": state.input_text or "?", "answer": gold or None, "options": _choices(state)}
    return read_problem(row, f"sample {state.sample_id}", str(state.sample_id), kind=kind)


def _grade(kind: str | None = None) -> Callable[[Any, Any], Awaitable[Any]]:
    """Grade by value: the answer is read from the output by kind, and compared with the target as magicore compares.

    ``18``, ``18.00`` and ``\\\\frac{36}{2}`` are one number; a letter and its option's text are one choice. Where the
    output is the solver's, its answer is taken as the solver read it. No answer that can be read is ``N``.

    Args:
        kind: How answers are read; by default as the target is.

    Raises:
        UnknownNameError: There is no such kind.
    """
    forced = None if kind is None else checked_kind(kind, "kind")

    async def score(state: Any, target: Any) -> Any:
        problems = [_graded(state, one, forced) for one in target]
        found = await asyncio.to_thread(_answer, state, problems[0])
        if found is None:
            return Score(value=NOANSWER, explanation="no answer can be read from the output")
        right = await asyncio.to_thread(_equals_any, found, problems)
        return Score(value=CORRECT if right else INCORRECT, answer=found, explanation=f"read as {problems[0].kind}")

    return score


def _answer(state: Any, problem: Problem) -> str | None:
    told = state.metadata.get(METADATA)
    if isinstance(told, Mapping) and told.get("kind") == problem.kind:
        answer: str | None = told.get("answer")
        return answer
    output = state.output
    stop = _STOPS.get(output.stop_reason, "error") if output.choices else "stop"
    return extract(output.completion, problem.kind, options=problem.options, stop=stop).value


def _equals_any(answer: str, problems: list[Problem]) -> bool:
    return any(
        problem.answer is not None and equivalent(answer, problem.answer, problem.kind, options=problem.options)
        for problem in problems
    )


solve = solver(name="solve")(_solve)
grade = scorer(metrics=[accuracy(), stderr()], name="grade")(_grade)
