"""A family on a scoring server: format, checks and cache as on this machine, the computation elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reward_models._sync import run_sync
from reward_models.cache import ScoreCache
from reward_models.errors import CapabilityError, CheckpointError, MissingExtraError, RewardModelError
from reward_models.families.family import Family
from reward_models.families.heads import LinearHead
from reward_models.families.implicit import ImplicitEngine
from reward_models.families.reading import Reading
from reward_models.families.scoring import FamilyOutcomeModel, FamilyProcessModel, Settings
from reward_models.families.tokens import TextTokenizer
from reward_models.names import ModelName, parse_model_name
from reward_models.remote.engine import AsyncEngine, RemoteEngine
from reward_models.remote.sglang import SglangEngine
from reward_models.remote.transport import Transport
from reward_models.remote.vllm import VllmEngine
from reward_models.steps import with_steps
from reward_models.types import OutcomeScore, Solution, StepScores

_CLASSIFIER = "score.weight"  # where sequence and token classifiers have their head
_ENGINES: dict[str, type[RemoteEngine]] = {"vllm": VllmEngine, "sglang": SglangEngine}


class RemoteImplicitEngine:
    """Implicit rewards (arXiv 2412.01981) from two servers: beta * (log p - log p_ref) at every read."""

    def __init__(self, policy: RemoteEngine, reference: RemoteEngine, beta: float) -> None:
        """``beta`` scales the ratio; it must be positive."""
        self._pair = ImplicitEngine(policy, reference, beta)
        self._policy = policy
        self._reference = reference
        self.fingerprint = self._pair.fingerprint

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """:meth:`araw_scores` for callers without an event loop."""
        return run_sync(self.araw_scores(readings))

    async def araw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """Both servers are asked at the same time."""
        policy, reference = await asyncio.gather(
            self._policy.araw_scores(readings), self._reference.araw_scores(readings)
        )
        return self._pair.combine(policy, reference)


class RemoteProcessModel(FamilyProcessModel):
    """A family's process reward model on a server."""

    engine: AsyncEngine

    async def ascore(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """As ``score``, without holding up the event loop while the server computes."""
        steps = [with_steps(solution).steps for solution in solutions]
        drafts = [self._plan(solution, found) for solution, found in zip(solutions, steps, strict=True)]
        found, missing = self._look_up(drafts)
        if missing:
            self._keep(found, missing, await self.engine.araw_scores(list(missing.values())))
        for draft, solution in zip(drafts, solutions, strict=True):
            self._place(draft, found, solution)
        return [self._outcome(*parts) for parts in zip(solutions, steps, drafts, strict=True)]


class RemoteOutcomeModel(FamilyOutcomeModel):
    """A family's outcome reward model on a server."""

    engine: AsyncEngine

    async def ascore(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """As ``score``, without holding up the event loop while the server computes."""
        drafts = [self._plan(solution) for solution in solutions]
        found, missing = self._look_up(drafts)
        if missing:
            self._keep(found, missing, await self.engine.araw_scores(list(missing.values())))
        for draft, solution in zip(drafts, solutions, strict=True):
            self._place(draft, found, solution)
        return [self._outcome(solution, draft) for solution, draft in zip(solutions, drafts, strict=True)]


RemoteModel = RemoteProcessModel | RemoteOutcomeModel


def open_remote(
    family: Family,
    name: ModelName,
    *,
    checkpoint: str | None = None,
    tokenizer: str | None = None,
    settings: Settings | None = None,
    cache: ScoreCache | None = None,
    api_key_env: str | None = None,
) -> RemoteModel:
    """A family's model on a vLLM or SGLang server.

    Args:
        family: The family.
        name: The name with its URLs; what it says of the checkpoint is where the tokenizer comes from.
        checkpoint: The checkpoint that the bare name stands for, if not the family's own.
        tokenizer: Another place of the tokenizer.
        settings: What the caller chose; the context is cut to what the server takes.
        cache: Where raw scores are kept.
        api_key_env: The environment variable that holds the server's key.

    Raises:
        ScoringServerError: No such server answers, or the servers differ.
        CheckpointError: The tokenizer cannot be had, or is another family's.
        MissingExtraError: transformers is not installed.
    """
    engine = open_engine(family, name, api_key_env=api_key_env)
    words = open_tokenizer(family, name, checkpoint=checkpoint, tokenizer=tokenizer)
    return assemble_remote(family, name, words, engine, settings=settings, context=engine.context, cache=cache)


def open_remote_implicit(
    family: Family,
    name: ModelName,
    *,
    reference: str,
    beta: float,
    tokenizer: str | None = None,
    settings: Settings | None = None,
    cache: ScoreCache | None = None,
    api_key_env: str | None = None,
) -> RemoteModel:
    """An implicit reward model whose two language models are on servers.

    Args:
        reference: The name of the reference model with its own URLs, ``FAMILY:CHECKPOINT@vllm+http://...``.
        beta: What scales the log-ratio.
        family, name, tokenizer, settings, cache, api_key_env: As in :func:`open_remote`.

    Raises:
        RewardModelError: The reference model has no URL; and as :func:`open_remote`.
    """
    theirs = parse_model_name(reference) if "://" in reference else None
    if theirs is None or theirs.engine not in _ENGINES:
        raise RewardModelError(
            f'its reference model has to be on a server too: reference = "{family.name}:{reference}@vllm+http://host:8001"',
            model=str(name),
        )
    policy = open_engine(family, name, api_key_env=api_key_env)
    base = open_engine(family, theirs, api_key_env=api_key_env)
    words = open_tokenizer(family, name, tokenizer=tokenizer)
    engine = RemoteImplicitEngine(policy, base, beta)
    known = [length for length in (policy.context, base.context) if length is not None]
    return assemble_remote(
        family, name, words, engine, settings=settings, context=min(known, default=None), cache=cache
    )


def open_engine(family: Family, name: ModelName, *, api_key_env: str | None = None) -> RemoteEngine:
    """The client of the servers in a name, which have said what they serve.

    Raises:
        CapabilityError: Neither vLLM nor SGLang has a class for the family's head.
        ScoringServerError: No such server answers, or the servers differ.
    """
    head = family.head
    if isinstance(head, LinearHead) and (head.file is not None or head.weight != _CLASSIFIER):
        raise CapabilityError(
            f"{name.engine} has no class for this family's head; run `magicore serve-reward-model {family.name}` there "
            f"and use {family.name}@http://HOST:8000",
            model=str(name),
        )
    engine = _ENGINES[name.engine](name, family, Transport(name.endpoints, model=str(name), api_key_env=api_key_env))
    run_sync(engine.identify())
    return engine


def open_tokenizer(
    family: Family, name: ModelName, *, checkpoint: str | None = None, tokenizer: str | None = None
) -> TextTokenizer:
    """The tokenizer that writes the server's input, checked against the family's token ids."""
    where = tokenizer or name.name or checkpoint or family.checkpoint
    words = _tokenizer(where, None if tokenizer else name.revision, name)
    family.check_tokenizer(words)
    return words


def assemble_remote(
    family: Family,
    name: ModelName,
    tokenizer: TextTokenizer,
    engine: AsyncEngine,
    *,
    settings: Settings | None = None,
    context: int | None = None,
    cache: ScoreCache | None = None,
) -> RemoteModel:
    """The reward model of the family's kind; ``context`` is what the server takes at the most."""
    settings = settings or Settings()
    if context is not None and context < (settings.context or family.context):
        settings = replace(settings, context=context)
    kind = RemoteProcessModel if family.kind == "process" else RemoteOutcomeModel
    return kind(name=str(name), family=family, tokenizer=tokenizer, engine=engine, settings=settings, cache=cache)


def _tokenizer(where: str, revision: str | None, name: ModelName) -> TextTokenizer:
    """A tokenizer alone: neither weights nor PyTorch are needed.

    Repositories whose tokenizer is code of their own (InternLM2) hold a plain sentencepiece model, which is read then;
    the family's token ids are checked afterwards.
    """
    try:
        from transformers import AutoTokenizer, LlamaTokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"writing the server's input needs {error.name}: pip install 'magicore[local]'", model=str(name)
        ) from error
    failure: Exception | None = None
    for kind in (AutoTokenizer, LlamaTokenizer):
        load: Any = kind.from_pretrained
        try:
            return TextTokenizer(load(where, revision=revision or "main", trust_remote_code=False))
        except (OSError, ValueError, KeyError, ImportError) as error:
            failure = failure or error
    raise CheckpointError(
        f"its tokenizer cannot be loaded from {where} ({failure}); tokenizer names another folder or Hub id",
        model=str(name),
    ) from failure
