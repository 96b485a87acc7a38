"""Load a causal language model from a folder or the Hub: device, precision, tokenizer, end tokens, and clear errors."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError

from magicore.errors import CapabilityError, InputError
from reward_models.errors import CapabilityError as RewardCapabilityError
from reward_models.errors import CheckpointError
from reward_models.errors import MissingExtraError as MissingRewardExtraError
from reward_models.local.adapter import Adapter, base_of, is_adapter
from reward_models.local.device import check_fits
from reward_models.local.processor import compute
from reward_models.local.quantise import BITS, Quantize, quantisation

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SHORT = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tekken.json")
_ATTENTION = frozenset({"full_attention", "sliding_attention"})
_WORTH_BF16 = 1.3
_SAMPLED_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where a model's files are, and what identifies them: a folder, or a Hub id at a commit.

    ``adapters`` are LoRA adapters that are merged into the weights, in this order.
    """

    source: str
    fingerprint: str
    revision: str | None = None
    adapters: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model ready to sample from.

    Attributes:
        model: The network, in evaluation mode, on ``device``.
        tokenizer: Its tokenizer.
        device: Where it is.
        ends: Token ids that end a completion.
        context: The most tokens it can read.
        layers: The number of layers that keep keys and values.
        window: The width of its sliding attention layers, if it has any.
        sliding: The kind of each layer, if not all attend to everything.
        cache_argument: What its forward pass calls the cache.
        cache_bytes: How much memory keys and values of all chains may take.
    """

    model: Any
    tokenizer: Any
    device: torch.device
    ends: frozenset[int]
    context: int
    layers: int
    window: int | None = None
    sliding: tuple[str, ...] = ()
    cache_argument: str = "cache"
    cache_bytes: int = 4 << 30


def find_checkpoint(name: str, revision: str | None) -> Checkpoint:
    """A folder if there is one of this name, else a Hub id; the files of a folder are checked.

    Raises:
        InputError: A folder lacks a file, or the Hub has no such model or cannot be reached.
    """
    folder = Path(name).expanduser()
    if is_adapter(folder):
        return _with_adapter(folder)
    if folder.is_dir():
        _check_folder(folder)
        return Checkpoint(source=str(folder), fingerprint=_folder_fingerprint(folder))
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise InputError(f"hf:{name}: there is no such folder, and a Hub id has the form owner/name")
    try:
        config = Path(hf_hub_download(name, "config.json", revision=revision))
    except GatedRepoError:
        raise InputError(
            f"hf:{name} is gated: accept its terms on huggingface.co and log in with `hf auth login`"
        ) from None
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        if isinstance(error, LocalEntryNotFoundError):
            raise _unreachable(name) from None
        raise InputError(f"hf:{name}: the Hub has no such model{f' at {revision!r}' if revision else ''}") from None
    except (HfHubHTTPError, OSError):
        raise _unreachable(name) from None
    return Checkpoint(source=name, fingerprint=config.parent.name[:16], revision=config.parent.name)


def choose_device(name: str) -> torch.device:
    """``auto`` takes CUDA, then Apple's MPS, then the processor.

    Raises:
        InputError: No such device, or it is not there.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    kind = name.partition(":")[0]
    if kind == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    if kind not in DEVICES:
        raise InputError(f"there is no device {name!r}: {', '.join(DEVICES)}")
    if not there[kind]:
        raise InputError(f"device {name!r} is not available here; use cpu or auto")
    return torch.device(name)


def choose_dtype(name: str, device: torch.device, *, deterministic: bool) -> torch.dtype:
    """``auto`` is float32 where runs must repeat, else bfloat16 where the hardware is faster with it.

    On a processor a small product of the shape of a decoding step is timed, in a few milliseconds.

    Raises:
        InputError: No such precision.
    """
    name = _SHORT.get(name, name)
    if name in DTYPES:
        return DTYPES[name]
    if name != "auto":
        raise InputError(f"there is no dtype {name!r}: auto, {', '.join(DTYPES)}")
    if deterministic:
        return torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device.type == "mps":
        return torch.float16
    worth = compute(lambda: _seconds(torch.float32) > _WORTH_BF16 * _seconds(torch.bfloat16))
    return torch.bfloat16 if worth else torch.float32


def load(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, *, quantize: Quantize | None = None
) -> LoadedModel:
    """Load tokenizer and weights. Nothing but safetensors is read, and no code from the checkpoint is run.

    ``quantize`` holds the weights in 8 or 4 bits; see :mod:`reward_models.local.quantise`.

    Raises:
        InputError: A file is missing or damaged.
        CapabilityError: The architecture keeps another state than keys and values, or there is no room for it.
    """
    placing: dict[str, Any] = {}
    if quantize is None:
        check_room(checkpoint, torch.device("cpu"), dtype, None)  # where weights are read to first
    else:
        placing = {"quantization_config": quantisation(quantize, dtype), "device_map": {"": device}}
    options: dict[str, Any] = {"trust_remote_code": False}
    if checkpoint.revision is not None:
        options["revision"] = checkpoint.revision
    with quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.source, **options)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                checkpoint.source, dtype=dtype, attn_implementation="sdpa", use_safetensors=True, **options, **placing
            )
        except (OSError, ValueError, ImportError, SafetensorError) as error:
            raise InputError(f"{checkpoint.source}: cannot be loaded ({_first_line(error)})") from error
    try:
        for adapter in checkpoint.adapters:
            Adapter(adapter).merge(model)
    except CheckpointError as error:
        raise InputError(str(error)) from error
    if device.type == "cuda" and quantize is None:
        _check_room(sum(weights.nbytes for weights in model.parameters()), device, checkpoint.source)
    return prepare(model, tokenizer, device)


def check_room(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, quantize: Quantize | None) -> None:
    """Raise where a folder's weights do not fit on the device as it is now; of what is on the Hub nothing is known yet.

    Raises:
        CapabilityError: They do not.
    """
    folder = Path(checkpoint.source)
    if not (folder / "config.json").is_file():
        return
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    stored = {"float32": 32}.get(str(config.get("dtype") or config.get("torch_dtype")), 16)
    bits = 8 * dtype.itemsize if quantize is None else BITS[quantize]
    _check_room(_stored_bytes(checkpoint) * bits // stored, device, checkpoint.source)


def _stored_bytes(checkpoint: Checkpoint) -> int:
    """The size of a folder's weights; 0 for what is still on the Hub."""
    return sum(file.stat().st_size for file in Path(checkpoint.source).glob("*.safetensors"))


def _check_room(size: int, device: torch.device, what: str) -> None:
    try:
        check_fits(size, str(device), what=what)
    except RewardCapabilityError as error:
        raise CapabilityError(str(error)) from error


def prepare(model: Any, tokenizer: Any, device: torch.device) -> LoadedModel:
    """A loaded network and its tokenizer, put on the device and read for what sampling needs to know.

    Raises:
        CapabilityError: The architecture keeps another state than keys and values.
    """
    config = model.config.get_text_config()
    kinds = tuple(getattr(config, "layer_types", None) or ())
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if not set(kinds) <= _ATTENTION or getattr(model, "_is_stateful", False):
        raise CapabilityError(
            f"{type(model).__name__} keeps another state than keys and values, which cannot be sampled here; serve it "
            "(with vLLM, say) and use openai:NAME@URL"
        )
    ends = {tokenizer.eos_token_id}
    stated = getattr(model.generation_config, "eos_token_id", None)
    ends |= set(stated) if isinstance(stated, list) else {stated}
    return LoadedModel(
        model=(model if is_quantised(model) else model.to(device)).eval(),
        tokenizer=tokenizer,
        device=device,
        ends=frozenset(token for token in ends if token is not None),
        context=int(getattr(config, "max_position_embeddings", None) or 2048),
        layers=int(config.num_hidden_layers),
        window=window,
        sliding=kinds if "sliding_attention" in kinds else (),
        cache_argument="cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values",
        cache_bytes=_cache_bytes(device),
    )


def is_quantised(model: Any) -> bool:
    """Whether a network's weights are in a quantiser's format: such ones stay where they were loaded."""
    return getattr(model, "hf_quantizer", None) is not None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars and notices out of the caller's output."""
    logging: Any = transformers.utils.logging  # publishes no types
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _with_adapter(folder: Path) -> Checkpoint:
    """The base of an adapter folder, the adapter over it."""
    try:
        adapter = Adapter(folder)
        where = base_of(folder, adapter.base)
    except (CheckpointError, MissingRewardExtraError) as error:
        raise InputError(str(error)) from error
    base = find_checkpoint(str(where), None)
    return Checkpoint(
        source=base.source,
        fingerprint=f"{base.fingerprint}+{adapter.fingerprint}",
        revision=base.revision,
        adapters=(*base.adapters, folder),
    )


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: lacks config.json, so it is no model folder")
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise InputError(f"{folder}: lacks a tokenizer ({', '.join(_TOKENIZER_FILES[:2])} ...)")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            wanted = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{index}: cannot be read as an index of weights") from None
        missing = sorted(name for name in wanted if not (folder / name).is_file())
        if missing:
            raise InputError(f"{folder}: lacks {missing[0]}, which its index names")
    elif not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder}: lacks model.safetensors (weights in other formats are not loaded)")


def _folder_fingerprint(folder: Path) -> str:
    """Changes with the configuration and, as far as sizes and samples of the contents tell, with the weights."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for file in sorted(folder.glob("*.safetensors")):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as weights:
            for part in range(8):
                weights.seek(part * size // 8)
                digest.update(weights.read(_SAMPLED_BYTES))
    return digest.hexdigest()[:16]


def _cache_bytes(device: torch.device) -> int:
    """Memory for keys and values: most of what a GPU has left, 4 GiB elsewhere."""
    if device.type != "cuda":
        return 4 << 30
    free, _ = torch.cuda.mem_get_info(device)
    return int(free * 0.7)


def _seconds(dtype: torch.dtype) -> float:
    """The shortest of several small products, in seconds of this thread's own, so that other work does not count."""
    a, b = torch.ones(64, 512, dtype=dtype), torch.ones(512, 2048, dtype=dtype)
    best = float("inf")
    for _ in range(15):
        started = time.thread_time()
        for _ in range(4):
            torch.mm(a, b)
        best = min(best, time.thread_time() - started)
    return best


def precision_mark(precision: torch.dtype, *, deterministic: bool, quantize: str | None = None) -> str:
    """How the precision enters a model's fingerprint: as it is, not as asked for, since another gives other samples."""
    return f"{str(precision).removeprefix('torch.')}{'-fixed' * deterministic}{f'-{quantize}' if quantize else ''}"


def _unreachable(name: str) -> InputError:
    return InputError(f"hf:{name}: the Hub cannot be reached and the model is not in its cache; give a local folder")


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
