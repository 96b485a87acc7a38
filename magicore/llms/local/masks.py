"""What each row of a step may attend to, in the form its model takes."""

from __future__ import annotations

from typing import Any

import torch

from magicore.llms.local.loading import LoadedModel


def step_mask(loaded: LoadedModel, positions: torch.Tensor, mask: torch.Tensor) -> Any:
    """``mask`` as it is, narrowed to the window of a model that slides throughout, or one of each for a model whose
    layers differ.

    Args:
        loaded: The model.
        positions: The position that each row writes, ``[rows, 1]``.
        mask: Which columns hold a token of the row, ``[rows, 1, 1, columns]``.
    """
    if loaded.window is None:
        return mask
    columns = torch.arange(mask.shape[-1], device=mask.device)
    near = mask & (columns > positions[:, None, None, :] - loaded.window)
    return {"full_attention": mask, "sliding_attention": near} if loaded.sliding else near
