"""The package's own small reward models, adapters for SmolLM2-135M that ``scripts/train_embedded.py`` trains.

They stand on the adapter of the embedded policy, which lies beside them.

They judge the generated families that the embedded policy solves (stories, units) and show the method on a
laptop; they are no judges of other text.
"""

from __future__ import annotations

from typing import Any

from reward_models.errors import CheckpointError
from reward_models.families import math_shepherd, sequence_classifier
from reward_models.families.build import FamilyModel
from reward_models.local.embedded import adapter_folder
from reward_models.names import ModelName
from reward_models.turns import Turns


def load_prm(
    name: ModelName, *, device: str = "auto", dtype: str = "auto", cache: Any = None, turns: Turns | None = None
) -> FamilyModel:
    """The embedded process reward model, in Math-Shepherd's format."""
    return _named(math_shepherd.load(_found(name, "prm"), device=device, dtype=dtype, cache=cache, turns=turns), name)


def load_orm(
    name: ModelName, *, device: str = "auto", dtype: str = "auto", cache: Any = None, turns: Turns | None = None
) -> FamilyModel:
    """The embedded outcome reward model, a sequence classifier."""
    found = _found(name, "orm")
    return _named(sequence_classifier.load(found, device=device, dtype=dtype, cache=cache, turns=turns), name)


def _named(model: FamilyModel, name: ModelName) -> FamilyModel:
    model.name = str(name)  # where it lies is no part of its name
    return model


def _found(name: ModelName, kind: str) -> ModelName:
    if name.name or name.urls:
        raise CheckpointError("it is just 'embedded'; your own adapters load as math-shepherd:FOLDER", model=str(name))
    folder = adapter_folder(kind)
    if not (folder / "adapter_config.json").is_file():
        raise CheckpointError(
            f"this installation has no trained {kind.upper()} adapter; scripts/train_embedded.py trains one, and "
            "`magicore train` your own",
            model=str(name),
        )
    return ModelName(provider="embedded", name=str(folder))
