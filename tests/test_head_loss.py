"""The blockwise loss of a frozen head against PyTorch's own."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from magicore.training.head_loss import head_loss


def test_a_head_of_zeros_loses_the_logarithm_of_the_vocabulary_at_each_position() -> None:
    lost = head_loss(torch.ones(3, 4), torch.zeros(7, 4), torch.tensor([0, 3, 6]))
    assert float(lost.detach()) == pytest.approx(3 * math.log(7))


@pytest.mark.parametrize("positions", [1, 127, 128, 300])
def test_loss_and_gradient_are_those_of_the_whole(positions: int) -> None:
    torch.manual_seed(positions)
    hidden, weight = torch.randn(positions, 8), torch.randn(50, 8)
    targets = torch.randint(0, 50, (positions,))
    ours, theirs = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    lost = head_loss(ours, weight, targets)
    expected = cross_entropy(theirs @ weight.T, targets, reduction="sum")
    (lost / 3).backward()
    (expected / 3).backward()
    assert float(lost.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)


def test_the_precision_of_products_is_the_weights() -> None:
    hidden = torch.randn(5, 8, requires_grad=True)
    lost = head_loss(hidden, torch.randn(50, 8, dtype=torch.bfloat16), torch.arange(5))
    lost.backward()
    assert lost.dtype == torch.float32
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.float32
