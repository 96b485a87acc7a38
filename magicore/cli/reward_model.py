"""What the commands about one reward model share: which kind a name is, and opening it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from magicore.config import RunConfig, load_config
from magicore.errors import InputError
from magicore.runtime.open import open_reward_model
from reward_models.base import RewardModel
from reward_models.errors import UnknownRewardModelError
from reward_models.names import ModelName, parse_model_name
from reward_models.registry import outcome_models, process_models

Kind = Literal["outcome", "process"]
_REGISTRIES: Mapping[Kind, Any] = {"outcome": outcome_models, "process": process_models}


def open_named(
    name: str, kind: str | None, settings: Mapping[str, Any], config: Path | None
) -> tuple[RewardModel, Kind]:
    """The model of that name, and whether it scores whole solutions or steps.

    Raises:
        InputError: The name is of both kinds and ``kind`` does not say which, or ``kind`` is no kind.
        RewardModelError: There is no such model, or it cannot be opened.
    """
    chosen = load_config(config, settings)
    found = _kind(name, kind, chosen)
    return open_reward_model("orm" if found == "outcome" else "prm", name, chosen), found


def client_name(name: str) -> str:
    """What a client writes before the server's URL: the name, or its family alone where the rest names another."""
    parsed = _parsed(name)
    return parsed.provider if parsed.urls or ":" in parsed.name else name


def _kind(name: str, kind: str | None, config: RunConfig) -> Kind:
    for known in _REGISTRIES:
        if kind == known:
            return known
    if kind is not None:
        raise InputError(f"--kind is outcome or process, not {kind!r}")
    table = config.reward_models.get(name, {})
    parsed = _parsed(str(table.get("name", name)))
    kinds = [known for known, registry in _REGISTRIES.items() if parsed.provider in registry.names()]
    if len(kinds) == 1:
        return kinds[0]
    if kinds or parsed.engine == "http":
        raise InputError(f"{name} may be an outcome or a process reward model; say which by --kind outcome or process")
    process_models.factory(parsed)  # raises and suggests near names, unless it is MODULE:ATTRIBUTE
    raise InputError(f"{name} names a factory of your own; say by --kind whether it makes an outcome or process model")


def _parsed(name: str) -> ModelName:
    try:
        return parse_model_name(name)
    except ValueError as error:
        raise UnknownRewardModelError(str(error)) from None
