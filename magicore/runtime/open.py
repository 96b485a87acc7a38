"""From a configuration to an engine: open the models it names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

from magicore.config import Duplicates, RunConfig
from magicore.errors import CapabilityError
from magicore.llms.base import LanguageModel
from magicore.llms.calls import CallWatcher
from magicore.llms.generate import generate_with
from magicore.llms.registry import open_model
from magicore.prompts import load_prompts
from magicore.roles.names import check_role
from magicore.runtime.budget import Budget, Halt
from magicore.runtime.ledger import current_ledger
from magicore.runtime.runtime import Engine
from magicore.runtime.scoring import ScoringService
from magicore.runtime.stored import StoredModel
from magicore.store.run_store import RunStore
from reward_models.base import OutcomeRewardModel, ProcessRewardModel, RewardModel
from reward_models.families.generative import language_model_name
from reward_models.names import parse_model_name
from reward_models.registry import load_outcome_model, load_process_model, outcome_models, process_models
from reward_models.turns import Turns
from reward_models.types import OutcomeScore, StepScores


@asynccontextmanager
async def open_engine(
    config: RunConfig,
    store: RunStore,
    *,
    model: LanguageModel | None = None,
    generation: bool = True,
    orm: OutcomeRewardModel | None = None,
    prm: ProcessRewardModel | None = None,
    halt: Halt | None = None,
    watcher: CallWatcher | None = None,
) -> AsyncIterator[Engine]:
    """Open everything that ``config`` names; objects given by keyword take the place of what it names.

    ``halt`` lets the run end early; ``watcher`` is told of every call. ``generation=False`` is for scoring alone: the
    language model is opened only if a reward model asks for one.

    Raises:
        UnknownNameError, UnknownRewardModelError: no such model or role, with suggestions.
        MissingExtraError: a package is missing, with the install command.
        InputError: the prompt set is wrong.
    """
    for role in config.role_models:
        check_role(role)
    budget = Budget(config.budget, config.prices, halt=halt)
    opener = _Opener(config, store, budget, watcher)
    prompts = load_prompts(config.prompts)
    try:
        models: dict[str, StoredModel] = {}
        if generation:
            models = {"default": opener.language_model(config.model, given=model)}
            models |= {role: opener.language_model(name) for role, name in config.role_models.items()}
        orm_service: ScoringService[OutcomeScore] | None = None
        prm_service: ScoringService[StepScores] | None = None
        fixed = config.deterministic
        if orm is not None or config.orm is not None:
            scorer = orm or opener.reward_model("orm", cast(str, config.orm), models)
            orm_service = ScoringService(scorer, store, kind="orm", deterministic=fixed)
        if prm is not None or config.prm is not None:
            scorer = prm or opener.reward_model("prm", cast(str, config.prm), models)
            prm_service = ScoringService(scorer, store, kind="prm", deterministic=fixed)
        opener.check_room()
        engine = Engine(
            models=models,
            prompts=prompts,
            orm=orm_service,
            prm=prm_service,
            sampling=config.sampling,
            aggregation=config.aggregation,
            duplicates=cast(Duplicates, config.duplicates),
            seed=config.seed,
            budget=budget,
        )
        yield engine
    finally:
        await opener.aclose()


class _Opener:
    """Opens each named model once, and closes them all."""

    def __init__(self, config: RunConfig, store: RunStore, budget: Budget, watcher: CallWatcher | None = None) -> None:
        self._config = config
        self._watcher = watcher
        self._budget = budget
        self._store = store
        self._models: dict[str, StoredModel] = {}
        self._turns = Turns() if config.placement == "phased" else None

    def language_model(self, name: str, *, given: LanguageModel | None = None) -> StoredModel:
        if given is not None:
            name = given.name
        if name not in self._models:
            config = self._config
            model = given or open_model(
                name,
                models=config.models,
                device=config.device,
                dtype=config.dtype,
                deterministic=config.deterministic,
                turns=self._turns,
            )
            self._models[name] = StoredModel(model, self._store, self._budget, self._watcher)
        return self._models[name]

    def check_room(self) -> None:
        """Refuse, before anything is spent, a local model for which the reward models have left no room."""
        for stored in self._models.values():
            check = getattr(stored.model, "check_room", None)
            if check is not None:
                check()

    def reward_model(self, kind: Literal["orm", "prm"], name: str, models: Mapping[str, StoredModel]) -> Any:
        table = dict(self._config.reward_models.get(name, {}))
        name = str(table.pop("name", name))
        if urls := table.pop("urls", None):
            name += "@" + ",".join([urls] if isinstance(urls, str) else urls)
        registry = outcome_models if kind == "orm" else process_models
        known = registry.options(name)
        options: dict[str, Any] = table
        device = "cpu" if self._config.placement == "cpu-rewards" else self._config.device
        dtype = "float32" if self._config.deterministic and self._config.dtype == "auto" else self._config.dtype
        turns = None if "device" in table else self._turns
        for option, value in (("device", device), ("dtype", dtype), ("turns", turns)):
            if known is not None and option in known and value is not None:
                options.setdefault(option, value)
        if known is not None and "generate" in known:
            options["generate"] = self._generate(language_model_name(parse_model_name(name)), models)
        load = load_outcome_model if kind == "orm" else load_process_model
        return load(name, **options)

    def _generate(self, name: str | None, models: Mapping[str, StoredModel]) -> Any:
        own = models.get("judge") or models.get("default") or self.language_model(self._config.model)
        model = self.language_model(name) if name else own
        return generate_with(model, seed=self._config.seed, ledger=current_ledger)

    async def aclose(self) -> None:
        if self._turns is not None:
            await asyncio.to_thread(self._turns.close)
        for model in self._models.values():
            await model.aclose()


def open_reward_model(kind: Literal["orm", "prm"], name: str, config: RunConfig) -> RewardModel:
    """Open one reward model by itself, with the configuration's tables, device and (for a judge) language model.

    Raises:
        UnknownNameError, UnknownRewardModelError: no such model, with suggestions.
        MissingExtraError: a package is missing, with the install command.
        RewardModelError: it could not be opened.
    """
    model: RewardModel = _Opener(config, RunStore(), Budget(config.budget, config.prices)).reward_model(kind, name, {})
    return model


def require_reward_models(engine: Engine, needs: frozenset[str], method: str) -> None:
    """Refuse, before anything is spent, a method whose reward models are not there."""
    missing = [kind for kind in ("orm", "prm") if kind in needs and getattr(engine, kind) is None]
    if missing:
        flags = " and ".join(f"--{kind} NAME" for kind in missing)
        raise CapabilityError(f"method {method} needs reward models: give {flags} (`magicore list` shows them)")
