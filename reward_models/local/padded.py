"""The forward pass of transformers itself, in padded batches sorted by length, for other architectures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reward_models.families.reading import Reading


def padded_batches(readings: Sequence[Reading], budget: int) -> list[list[int]]:
    """Indices, longest first, in batches of at most ``budget`` tokens with padding (at least one sequence each)."""
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(readings)), key=lambda index: -len(readings[index].ids)):
        if not batches or longest * (len(batches[-1]) + 1) > budget:
            batches.append([])
            longest = len(readings[index].ids)
        batches[-1].append(index)
    return batches


@torch.inference_mode()
def read_batch(backbone: Any, readings: Sequence[Reading]) -> Tensor:
    """Final hidden states at the read positions, in float32, ``[reads, hidden]``: one forward, padded on the right."""
    device = backbone.get_input_embeddings().weight.device
    longest = max(reading.reads[-1] + 1 for reading in readings)
    ids = torch.zeros(len(readings), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, reading in enumerate(readings):
        length = reading.reads[-1] + 1
        ids[row, :length] = torch.tensor(reading.ids[:length])
        mask[row, :length] = 1
    states = backbone(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).last_hidden_state
    rows = [row for row, reading in enumerate(readings) for _ in reading.reads]
    columns = [position for reading in readings for position in reading.reads]
    found: Tensor = states[rows, columns].float()
    return found
