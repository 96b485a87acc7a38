"""Hugging Face models that run here, through transformers. Importing this imports torch."""

from __future__ import annotations

from magicore.errors import InputError, MissingExtraError
from magicore.llms.local.loading import (
    Checkpoint,
    check_room,
    choose_device,
    choose_dtype,
    find_checkpoint,
    load,
    precision_mark,
)
from magicore.llms.local.model import ROWS, LocalModel
from reward_models.errors import CapabilityError
from reward_models.errors import MissingExtraError as MissingRewardExtraError
from reward_models.local.quantise import Quantize, check_quantize
from reward_models.names import ModelName
from reward_models.turns import Turns

__all__ = ["LocalModel", "local"]


def local(
    name: ModelName,
    *,
    device: str = "auto",
    dtype: str = "auto",
    deterministic: bool = False,
    rows: int = ROWS,
    quantize: str | None = None,
    turns: Turns | None = None,
) -> LocalModel:
    """A model from a folder or the Hub.

    Args:
        name: ``hf:ID_OR_FOLDER[#REVISION]``.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        deterministic: Float32, and each request sampled in batches of a fixed shape.
        rows: The most chains in one batch.
        quantize: ``8bit`` or ``4bit`` weights, by bitsandbytes.
        turns: The floor that it shares with other models of a run; see :mod:`reward_models.turns`.

    Raises:
        InputError: No such model, device or precision; a folder lacks a file.
        MissingExtraError: bitsandbytes is not installed.
    """
    if not name.name or name.urls:
        raise InputError("a local model needs its Hub id or folder and no address: hf:Qwen/Qwen2.5-1.5B-Instruct")
    if rows < 1:
        raise InputError(f"model {str(name)!r}: rows must be at least 1, got {rows}")
    checkpoint = find_checkpoint(name.name, name.revision)
    place = choose_device(device)
    precision = choose_dtype(dtype, place, deterministic=deterministic)
    bits = None if quantize is None else _quantize(quantize, name, checkpoint)
    return LocalModel(
        name=str(name),
        fingerprint=f"{checkpoint.fingerprint}-{precision_mark(precision, deterministic=deterministic, quantize=bits)}",
        load=lambda: load(checkpoint, place, precision, quantize=bits),
        rows=rows,
        deterministic=deterministic,
        turns=turns,
        check_room=lambda: check_room(checkpoint, place, precision, bits),
    )


def _quantize(wanted: str, name: ModelName, checkpoint: Checkpoint) -> Quantize:
    if checkpoint.adapters:
        raise InputError(f"{name}: an adapter cannot be merged into quantised weights; leave out quantize")
    try:
        return check_quantize(wanted, model=str(name))
    except CapabilityError as error:
        raise InputError(f"model {error}") from error
    except MissingRewardExtraError as error:
        raise MissingExtraError(f"model {error}") from error
