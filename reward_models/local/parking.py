"""Where a model's weights wait while another model has the device."""

from __future__ import annotations

import gc

import torch

from reward_models.local.device import SPARE, free_memory


def can_park(size: int, device: torch.device) -> bool:
    """Whether weights of ``size`` bytes, now on ``device``, fit into the processor's own memory, which is another one.

    Elsewhere (a device that shares the processor's memory, or the processor itself) they are dropped, and read from
    disk again.
    """
    if device.type != "cuda":
        return False
    free = free_memory("cpu")
    return free is None or size * SPARE <= free


def release(device: torch.device) -> None:
    """Give what was freed back to the device, so that others can have it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
