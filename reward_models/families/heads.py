"""What is read at a position, as data: an engine turns it into a computation.

Every head comes down to one raw number a read. Where a family takes the softmax over two alternatives, that number is
the difference of the two logits, whose logistic function is the probability of the good one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TokenPair:
    """The language-model head's logit of the token ``good`` minus that of ``bad``."""

    good: int
    bad: int


@dataclass(frozen=True, kw_only=True)
class LinearHead:
    """A linear layer on the hidden state.

    Attributes:
        weight: Name of the weight in the checkpoint, ``[outputs, hidden]``.
        bias: Name of the bias, if there is one; ``optional_bias`` where some checkpoints have none.
        outputs: 1, or 2 for (bad, good), read as good minus bad.
        file: The file that holds it, where it is not among the model's own weights.
    """

    weight: str
    bias: str | None = None
    optional_bias: bool = False
    outputs: int = 1
    file: str | None = None


@dataclass(frozen=True, kw_only=True)
class MlpHead:
    """Two linear layers with a ReLU between, ``PREFIX.0`` and ``PREFIX.2``, with 1 output or 2 as in LinearHead."""

    prefix: str = "score"
    outputs: int = 1


@dataclass(frozen=True, kw_only=True)
class TokenLogProb:
    """The log-probability of the token that follows the position."""


Head = TokenPair | LinearHead | MlpHead | TokenLogProb
