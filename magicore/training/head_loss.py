"""The cross-entropy of a frozen head, a few positions at a time.

The logits of a whole batch over a vocabulary of 49,152 are gigabytes that are written and read five times; a block of
them stays in the processor's cache, and its gradient is taken at once. (The idea is Liger Kernel's, arXiv 2410.10989.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_ROWS = 128


class _FrozenHeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        wanted_back = ctx.needs_input_grad[0]
        gradient = torch.empty_like(hidden) if wanted_back else hidden.new_empty(0)
        block = _ROWS if hidden.device.type == "cpu" else 4096
        for first in range(0, len(targets), block):
            part = slice(first, first + block)
            wanted = targets[part, None]
            logits = (hidden[part].to(weight.dtype) @ weight.T).float()
            log_sum = logits.logsumexp(-1, keepdim=True)
            total += (log_sum - logits.gather(1, wanted)).sum()
            if not wanted_back:
                continue
            shares = logits.sub_(log_sum).exp_()
            shares.scatter_add_(1, wanted, torch.full_like(log_sum, -1.0))
            gradient[part] = (shares.to(weight.dtype) @ weight).to(gradient.dtype)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * outer[0], None, None


def head_loss(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The sum over positions of ``-log softmax(hidden @ weight.T)[target]``, in nats, float32.

    Args:
        hidden: ``[positions, width]``; the gradient reaches it.
        weight: ``[vocabulary, width]``, frozen; its precision is the products'.
        targets: int64 ``[positions]``.
    """
    apply: Any = _FrozenHeadLoss.apply  # publishes no types
    found: Tensor = apply(hidden, weight, targets)
    return found
