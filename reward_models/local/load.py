"""Names to models: a family, a checkpoint and an engine put together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModel, AutoTokenizer, LlamaConfig, LlamaModel
from transformers.utils import logging as transformers_logging

from reward_models.errors import CheckpointError
from reward_models.families.family import Family
from reward_models.families.reading import Engine
from reward_models.families.tokens import TextTokenizer
from reward_models.local import internlm2
from reward_models.local.adapter import AdaptedCheckpoint
from reward_models.local.checkpoint import Checkpoint
from reward_models.local.device import check_fits, choose_device, choose_format
from reward_models.local.engine import LocalEngine, ReplicatedEngine
from reward_models.local.heads import build_head
from reward_models.local.processor import compute
from reward_models.local.quantise import BITS, Quantize, check_quantize, quantisation
from reward_models.local.resident import Part, ResidentEngine
from reward_models.turns import Turns


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and how a checkpoint is loaded.

    Attributes:
        device: auto, cpu, mps, cuda, cuda:N, several of them separated by commas for replicas, or ``spread`` to lay one
            model over all GPUs by accelerate.
        dtype: auto, bf16, fp16 or fp32.
        quantize: 8bit or 4bit (LLM.int8(), or NF4), by bitsandbytes.
        budget: Most tokens computed together; from free memory when ``None``.
        turns: The floor, where models take turns on one device: the model is loaded in its turns alone.
    """

    device: str = "auto"
    dtype: str = "auto"
    quantize: Quantize | None = None
    budget: int | None = None
    turns: Turns | None = None


def load_tokenizer(where: str | Checkpoint) -> TextTokenizer:
    """A checkpoint's tokenizer, without remote code.

    Raises:
        CheckpointError: There is none, or it cannot be built.
    """
    name = where if isinstance(where, str) else where.name
    folder = where if isinstance(where, str) else where.folder
    foreign = isinstance(where, Checkpoint) and internlm2.is_internlm2(where.config)
    kind: Any = transformers.LlamaTokenizer if foreign else AutoTokenizer
    try:
        with _quiet():
            return TextTokenizer(kind.from_pretrained(folder, trust_remote_code=False))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise CheckpointError(f"its tokenizer cannot be loaded ({error})", model=name) from error


def load_engine(family: Family, checkpoint: Checkpoint, placement: Placement) -> Engine:
    """The family's head on the checkpoint's backbone.

    Raises:
        CheckpointError: The checkpoint is damaged, unsafe or of another architecture.
        CapabilityError: The device or the memory is not there.
        MissingExtraError: bitsandbytes is not installed.
    """
    allowed = family.architectures
    if allowed and checkpoint.architecture not in allowed:
        raise CheckpointError(
            f"it is a {checkpoint.architecture}, but {family.name} reads {' or '.join(allowed)}", model=checkpoint.name
        )
    checkpoint.check_readable()
    parts = [_part(family, checkpoint, placement, device.strip()) for device in placement.device.split(",")]
    if placement.turns is not None:
        return ResidentEngine(parts, placement.turns)
    engines = [part.build(part.load()) for part in parts]
    return engines[0] if len(engines) == 1 else ReplicatedEngine(engines)


def _part(family: Family, checkpoint: Checkpoint, placement: Placement, wanted: str) -> Part:
    """One device's share: checked now, loaded when it is asked for."""
    spread = wanted == "spread"
    device = choose_device("cuda" if spread else wanted)
    dtype = choose_format(placement.dtype, device)
    bits = 8 * dtype.itemsize
    if placement.quantize is not None:
        bits = BITS[check_quantize(placement.quantize, model=checkpoint.name)]
        if isinstance(checkpoint, AdaptedCheckpoint):
            raise CheckpointError(
                "an adapter cannot be merged into quantised weights; leave out quantize", model=checkpoint.name
            )
    identity = f"{checkpoint.identity} {dtype} {placement.quantize or ''}"
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:16]

    def check() -> None:
        if not spread:
            check_fits(_weight_bytes(checkpoint, bits), device, what=checkpoint.name)

    def load() -> Any:
        check()
        return compute(lambda: _load_backbone(checkpoint, placement.quantize, dtype, "auto" if spread else device))

    def build(backbone: Any) -> LocalEngine:
        last = next(reversed(list(backbone.parameters()))).device
        head = internlm2.native_head(family.head) if internlm2.is_internlm2(checkpoint.config) else family.head
        score = compute(lambda: build_head(head, checkpoint, backbone, last))
        return LocalEngine(backbone, score, fingerprint=fingerprint, budget=placement.budget)

    check()
    device_alone = None if spread or placement.quantize else torch.device(device)
    return Part(fingerprint=fingerprint, device=device_alone, load=load, build=build)


def _weight_bytes(checkpoint: Checkpoint, bits: int) -> int:
    """Bytes of the weights in the number format they will have."""
    stored = {"float32": 32, "float16": 16, "bfloat16": 16}
    config = checkpoint.config
    return checkpoint.bytes * bits // stored.get(str(config.get("dtype") or config.get("torch_dtype")), 16)


def _load_backbone(checkpoint: Checkpoint, quantize: Quantize | None, dtype: torch.dtype, device_map: str) -> Any:
    options: dict[str, Any] = {"dtype": dtype, "device_map": device_map}
    if quantize:
        options["quantization_config"] = quantisation(quantize, dtype)
    source: Any = checkpoint.folder
    loader: Any = AutoModel
    config: Any
    if internlm2.is_internlm2(checkpoint.config):
        config = LlamaConfig.from_dict(internlm2.llama_config(checkpoint.config))
        options["state_dict"] = {
            name.removeprefix("model."): values
            for key, tensor in checkpoint.tensors()
            for name, values in internlm2.llama_tensors(key, tensor, checkpoint.config)
            if name.startswith("model.")
        }
        source, loader = None, LlamaModel
    else:
        config = _native_config(checkpoint)
        options["trust_remote_code"] = False
    try:
        with _quiet():
            model, info = loader.from_pretrained(source, config=config, output_loading_info=True, **options)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"its weights cannot be loaded ({error})", model=checkpoint.name) from error
    if missing := sorted(info["missing_keys"]):
        raise CheckpointError(
            f"its weights lack {len(missing)} tensors, such as {missing[0]}: it is another kind of model",
            model=checkpoint.name,
        )
    checkpoint.finish(model)
    return model.eval()


def _native_config(checkpoint: Checkpoint) -> Any:
    """transformers' own configuration class for the checkpoint's model type."""
    try:
        return AutoConfig.from_pretrained(checkpoint.folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError, StrictDataclassError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(f"its configuration cannot be used ({reason})", model=checkpoint.name) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no warnings about heads that are read here instead."""
    before = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before[0])
        if before[1]:
            transformers_logging.enable_progress_bar()
