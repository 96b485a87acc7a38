"""Where a model runs and in which number format, and whether it will fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from reward_models.errors import CapabilityError

_FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_LONG_NAMES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_CPU_BUDGET = 2048
_GPU_BUDGET = 65536
SPARE = 1.1  # weights are not all: buffers, allocator, the first activations


def choose_device(wanted: str) -> str:
    """``auto`` is the first CUDA device, else MPS, else the CPU; anything else is checked.

    Raises:
        CapabilityError: The device is not there.
    """
    mps = torch.backends.mps.is_available()
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    kind = wanted.partition(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": mps}.get(kind)
    if there is None:
        raise CapabilityError(f"device {wanted!r} is not known; choose auto, cuda, cuda:N, mps or cpu")
    if not there:
        raise CapabilityError(f"device {wanted!r} is not available here")
    return wanted


def choose_format(wanted: str, device: str) -> torch.dtype:
    """``auto`` is bf16 where the hardware multiplies it, else fp16 on a GPU and fp32 on a CPU.

    Raises:
        CapabilityError: There is no such format.
    """
    wanted = _LONG_NAMES.get(wanted, wanted)
    if wanted in _FORMATS:
        return _FORMATS[wanted]
    if wanted != "auto":
        raise CapabilityError(f"number format {wanted!r} is not known; choose auto, {', '.join(_FORMATS)}")
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device == "mps":
        return torch.float16
    return torch.bfloat16 if _cpu_multiplies_bf16() else torch.float32


def _cpu_multiplies_bf16() -> bool:
    """Whether the processor has bf16 products in hardware; emulated ones are slower than fp32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags or " bf16" in flags


def free_memory(device: str) -> int | None:
    """Bytes free on a device, where that can be told."""
    if device.startswith("cuda"):
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    limits = [limit for limit in (_available(), _control_group()) if limit is not None]
    return min(limits, default=None)


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _control_group() -> int | None:
    """What a container may still use."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="utf-8").strip()
        used = int((folder / "memory.current").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


def check_fits(needed: int, device: str, *, what: str) -> None:
    """Raise before loading rather than fail in the middle of it.

    Raises:
        CapabilityError: The weights need more than is free.
    """
    free = free_memory(device)
    if free is not None and needed * SPARE > free:
        raise CapabilityError(
            f"{what} needs about {needed * SPARE / 2**30:.1f} GiB on {device}, where {free / 2**30:.1f} GiB are free; "
            "choose a smaller model, another device, dtype=bf16, or quantize=8bit or 4bit; the models of a run take "
            "turns on a device with --placement phased"
        )


def default_budget(config: Any, device: torch.device) -> int:
    """Tokens to compute together: as many as half of the free memory holds, within what still makes it faster."""
    most = _CPU_BUDGET if device.type == "cpu" else _GPU_BUDGET
    free = free_memory(str(device))
    if free is None:
        return most
    # Residual stream, queries, keys, values, attention output, and one chunk of the MLP, in bytes a token.
    a_token: int = 4 * (8 * config.hidden_size + 2 * config.intermediate_size)
    return max(256, min(most, free // 2 // a_token))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def threads() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
