"""The embedded default: SmolLM2-135M-Instruct, sampled here with no key, no GPU and, once installed, no network.

``embedded`` is the model with the package's own policy adapter, trained by ``scripts/train_embedded.py`` on generated
problems; ``embedded:base`` is the untouched model. Until the adapter is in the package, the two are the same.

Where the weights come from is told at :mod:`reward_models.local.embedded`. It is a small model and often wrong, but a
real one.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from magicore.errors import InputError, MissingExtraError
from magicore.llms.local.loading import (
    Checkpoint,
    LoadedModel,
    choose_device,
    choose_dtype,
    find_checkpoint,
    load,
    precision_mark,
)
from magicore.llms.local.model import ROWS, LocalModel
from reward_models.errors import CheckpointError
from reward_models.errors import MissingExtraError as MissingRewardExtraError
from reward_models.local.adapter import Adapter, is_adapter
from reward_models.local.embedded import (
    HUB_ID,
    INSTALL,
    adapter_folder,
    cache_folder,
    convert,
    find_gguf,
    gguf_fingerprint,
    kept_folder,
    new_folder,
    publish,
)
from reward_models.names import ModelName
from reward_models.turns import Turns

__all__ = ["HUB_ID", "INSTALL", "cache_folder", "embedded", "find_gguf", "gguf_fingerprint", "load_embedded"]

BASE = "base"
SPECIAL_TOKENS = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}


def embedded(
    name: ModelName,
    *,
    device: str = "auto",
    dtype: str = "auto",
    deterministic: bool = False,
    rows: int = ROWS,
    turns: Turns | None = None,
) -> LocalModel:
    """SmolLM2-135M-Instruct with the package's policy adapter, or as it is (``embedded:base``); options as
    :func:`magicore.llms.local.local`.

    Raises:
        MissingExtraError: Neither the package nor the Hub is there; says how to install it.
    """
    if name.name not in ("", BASE) or name.urls:
        raise InputError(
            f"model {str(name)!r}: the embedded model is just 'embedded', or 'embedded:base'; others are hf:OWNER/NAME"
        )
    place = choose_device(device)
    precision = choose_dtype(dtype, place, deterministic=deterministic)
    gguf = find_gguf()
    source = Checkpoint(source=str(gguf), fingerprint=gguf_fingerprint(gguf)) if gguf is not None else _from_hub()
    policy = None if name.name == BASE else policy_folder()
    mark = source.fingerprint if policy is None else f"{source.fingerprint}+{_read(policy).fingerprint}"
    return LocalModel(
        name=str(name),
        fingerprint=f"{mark}-{precision_mark(precision, deterministic=deterministic)}",
        load=lambda: load_embedded(source, place, precision, adapter=policy),
        rows=rows,
        deterministic=deterministic,
        turns=turns,
    )


def policy_folder() -> Path | None:
    """The package's policy adapter, where it is there."""
    folder = adapter_folder("policy")
    return folder if is_adapter(folder) else None


def load_embedded(
    source: Checkpoint, device: torch.device, dtype: torch.dtype, *, adapter: Path | None = None
) -> LoadedModel:
    """Load from the cache, where a GGUF file is converted first, or from the Hub's own format; merge the adapter.

    Raises:
        InputError: The file is damaged or holds another model.
    """
    loaded = _checked(_loaded(source, device, dtype))
    if adapter is not None:
        try:
            _read(adapter).merge(loaded.model)
        except CheckpointError as error:
            raise InputError(str(error)) from error
    return loaded


def _read(folder: Path) -> Adapter:
    try:
        return Adapter(folder)
    except CheckpointError as error:
        raise InputError(str(error)) from error


def _loaded(source: Checkpoint, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    if not source.source.endswith(".gguf"):
        return load(source, device, dtype)
    kept = kept_folder(source.fingerprint)
    if kept.is_dir():
        return load(replace(source, source=str(kept)), device, dtype)
    with tempfile.TemporaryDirectory(prefix="magicore-", ignore_cleanup_errors=True) as elsewhere:
        unfinished = new_folder(kept.parent) or Path(elsewhere)
        try:
            convert(Path(source.source), unfinished)
            loaded = load(replace(source, source=str(unfinished)), device, dtype)
            publish(unfinished, kept)
        except CheckpointError as error:
            raise InputError(str(error)) from error
        except MissingRewardExtraError as error:
            raise MissingExtraError(str(error)) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return loaded


def _checked(loaded: LoadedModel) -> LoadedModel:
    """Make sure that the tokenizer is SmolLM2's, and let ``<|endoftext|>`` end a completion too."""
    tokenizer = loaded.tokenizer
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    if ids != SPECIAL_TOKENS or "<|im_start|>" not in (tokenizer.chat_template or ""):
        raise InputError(
            f"these are not SmolLM2's special tokens and chat template: {ids}; install it again: {INSTALL}"
        )
    return replace(loaded, ends=loaded.ends | {SPECIAL_TOKENS["<|endoftext|>"]})


def _from_hub() -> Checkpoint:
    try:
        return find_checkpoint(HUB_ID, None)
    except InputError as error:
        raise MissingExtraError(
            f"the embedded model's weights are not installed and the Hub does not give them: {INSTALL}"
        ) from error
