"""Factories for the registry: one keyword signature for every family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from reward_models.cache import ScoreCache
from reward_models.errors import CheckpointError, MissingExtraError, RewardModelError
from reward_models.families.family import Family
from reward_models.families.scoring import FamilyOutcomeModel, FamilyProcessModel, Mapped, Settings, Thinking
from reward_models.names import ModelName
from reward_models.turns import Turns

if TYPE_CHECKING:
    from reward_models.families.reading import Engine
    from reward_models.families.tokens import TextTokenizer
    from reward_models.local.checkpoint import Checkpoint
    from reward_models.local.load import Placement

FamilyModel = FamilyProcessModel | FamilyOutcomeModel
Quantize = Literal["8bit", "4bit"]


def factory(family: Family, checkpoint: str | None = None) -> Callable[..., FamilyModel]:
    """A factory for one name: the family with its default checkpoint, or with the one given here."""

    def load(  # noqa: PLR0913 - the registry reads the options that exist from this signature
        name: ModelName,
        *,
        device: str = "auto",
        dtype: str = "auto",
        quantize: Quantize | None = None,
        budget: int | None = None,
        tokenizer: str | None = None,
        context: int | None = None,
        windowed: bool = False,
        thinking: Thinking = "skip",
        mapping: Mapped = "sigmoid",
        aggregation: str | None = None,
        cache: ScoreCache | None = None,
        turns: Turns | None = None,
        api_key_env: str | None = None,
    ) -> FamilyModel:
        settings = Settings(
            context=context, windowed=windowed, thinking=thinking, mapping=mapping, aggregation=aggregation
        )
        if name.engine != "local":
            from reward_models.remote.model import open_remote

            return open_remote(
                family,
                name,
                checkpoint=checkpoint,
                tokenizer=tokenizer,
                settings=settings,
                cache=cache,
                api_key_env=api_key_env,
            )
        try:
            adapted, opened, placement, words = open_local(
                family,
                name,
                checkpoint,
                device=device,
                dtype=dtype,
                quantize=quantize,
                budget=budget,
                tokenizer=tokenizer,
                turns=turns,
            )
            from reward_models.local.load import load_engine

            engine = load_engine(adapted, opened, placement)
        except RewardModelError as error:
            raise named(error, name) from error
        return assemble(adapted, name, words, engine, settings, cache)

    load.__doc__ = f"{family.name}: {family.source}."
    return load


def open_local(
    family: Family,
    name: ModelName,
    default: str | None,
    *,
    device: str,
    dtype: str,
    quantize: Quantize | None,
    budget: int | None,
    tokenizer: str | None,
    turns: Turns | None,
) -> tuple[Family, Checkpoint, Placement, TextTokenizer]:
    """The family as the checkpoint has it, checkpoint, placement and tokenizer, the tokenizer checked before gigabytes
    are read.

    Raises:
        MissingExtraError: PyTorch or transformers is not installed.
        CheckpointError: The checkpoint or its tokenizer is not what the family needs.
    """
    require_local(str(name))
    from reward_models.local.checkpoint import Checkpoint
    from reward_models.local.load import Placement, load_tokenizer

    where = name.name or default or family.checkpoint
    opened = Checkpoint.open(where, revision=name.revision, safe_revision=family.safe_revision)
    words = load_tokenizer(tokenizer or opened)
    family = family.adapted(opened.declared, words)
    family.check_tokenizer(words)
    stated = opened.config.get("max_position_embeddings")
    if isinstance(stated, int) and 0 < stated < family.context:  # a small checkpoint of the family
        family = replace(family, context=stated)
    placement = Placement(device=device, dtype=dtype, quantize=quantize, budget=budget, turns=turns)
    return family, opened, placement, words


def assemble(
    family: Family,
    name: ModelName,
    tokenizer: TextTokenizer,
    engine: Engine,
    settings: Settings,
    cache: ScoreCache | None,
) -> FamilyModel:
    """The reward model of the family's kind."""
    kind = FamilyProcessModel if family.kind == "process" else FamilyOutcomeModel
    return kind(name=str(name), family=family, tokenizer=tokenizer, engine=engine, settings=settings, cache=cache)


def require_local(name: str) -> None:
    """Raise unless the packages of the local engine are there.

    Raises:
        MissingExtraError: They are not; says how to install them.
    """
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"loading it here needs {error.name}: pip install 'magicore[local]', or name a server that has it, "
            f"{name}@vllm+http://host:8000",
            model=name,
        ) from error


def named(error: RewardModelError, name: ModelName) -> RewardModelError:
    """The same error with the model's name, where it has none yet."""
    if error.model is not None or not isinstance(error, CheckpointError):
        return error
    return type(error)(str(error), model=str(name))
