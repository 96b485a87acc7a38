"""Hugging Face models that run here, through transformers. Importing this imports torch."""

from __future__ import annotations

from magicore.errors import InputError
from magicore.llms.local.loading import choose_device, choose_dtype, find_checkpoint, load, precision_mark
from magicore.llms.local.model import ROWS, LocalModel
from reward_models.names import ModelName

__all__ = ["LocalModel", "local"]


def local(
    name: ModelName,
    *,
    device: str = "auto",
    dtype: str = "auto",
    deterministic: bool = False,
    rows: int = ROWS,
) -> LocalModel:
    """A model from a folder or the Hub.

    Args:
        name: ``hf:ID_OR_FOLDER[#REVISION]``.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        deterministic: Float32, and each request sampled in batches of a fixed shape.
        rows: The most chains in one batch.

    Raises:
        InputError: No such model, device or precision; a folder lacks a file.
    """
    if not name.name or name.urls:
        raise InputError("a local model needs its Hub id or folder and no address: hf:Qwen/Qwen2.5-1.5B-Instruct")
    if rows < 1:
        raise InputError(f"model {str(name)!r}: rows must be at least 1, got {rows}")
    checkpoint = find_checkpoint(name.name, name.revision)
    place = choose_device(device)
    precision = choose_dtype(dtype, place, deterministic=deterministic)
    return LocalModel(
        name=str(name),
        fingerprint=f"{checkpoint.fingerprint}-{precision_mark(precision, deterministic=deterministic)}",
        load=lambda: load(checkpoint, place, precision),
        rows=rows,
        deterministic=deterministic,
    )
