"""A family's head as a computation on hidden states, its weights read from the checkpoint: a few rows, in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from reward_models.errors import CheckpointError
from reward_models.families.heads import Head, LinearHead, MlpHead, TokenPair
from reward_models.local.checkpoint import Checkpoint

Score = Callable[[Tensor, Tensor], Tensor]
"""``(hidden [reads, size] in float32, following token [reads]) -> raw scores [reads]``."""

_ROWS = 256  # rows of full-vocabulary logits held at a time


def build_head(head: Head, checkpoint: Checkpoint, backbone: Any, device: torch.device) -> Score:
    """The computation of a head.

    Raises:
        CheckpointError: Its weights are missing or have another shape: a different kind of model.
    """
    size: int = backbone.config.hidden_size
    if isinstance(head, TokenPair):
        weight = _token_rows(checkpoint, [head.good, head.bad], head)
        return _linear((weight[0] - weight[1])[None].to(device), None)
    if isinstance(head, LinearHead):
        weight, bias = _linear_weights(head, checkpoint, size)
        if head.outputs == 2:  # bad, good
            weight, bias = weight[1:] - weight[:1], None if bias is None else bias[1:] - bias[:1]
        return _linear(weight.to(device), None if bias is None else bias.to(device))
    if isinstance(head, MlpHead):
        return _mlp(head, checkpoint, size, device)
    return _log_prob(_vocabulary_weight(checkpoint, backbone), device)


def _token_rows(checkpoint: Checkpoint, tokens: list[int], head: Head) -> Tensor:
    key = _vocabulary_key(checkpoint)
    try:
        return checkpoint.tensor(key, rows=tokens)
    except IndexError as error:
        raise CheckpointError(f"the vocabulary has no {head}", model=checkpoint.name) from error


def _vocabulary_key(checkpoint: Checkpoint) -> str:
    """The output matrix, or the input embeddings where the two are one."""
    for key in ("lm_head.weight", "output.weight", "model.embed_tokens.weight", "embed_tokens.weight"):
        if checkpoint.has(key) and (
            key.startswith(("lm_head", "output")) or checkpoint.config.get("tie_word_embeddings")
        ):
            return key
    raise CheckpointError(
        f"it is a {checkpoint.architecture} without a language-model head, which this family reads",
        model=checkpoint.name,
    )


def _vocabulary_weight(checkpoint: Checkpoint, backbone: Any) -> Tensor:
    key = _vocabulary_key(checkpoint)
    embeddings: Tensor = backbone.get_input_embeddings().weight
    return embeddings if "embed_tokens" in key else checkpoint.tensor(key).to(embeddings.dtype)


def _linear_weights(head: LinearHead, checkpoint: Checkpoint, size: int) -> tuple[Tensor, Tensor | None]:
    if head.file:
        stored = {key.rpartition(".")[2]: value.float() for key, value in checkpoint.beside(head.file).items()}
        if "weight" not in stored:
            raise CheckpointError(f"{head.file} holds no weight", model=checkpoint.name)
        weight, bias = stored["weight"], stored.get("bias")
    else:
        weight = checkpoint.tensor(head.weight)
        there = head.bias is not None and (checkpoint.has(head.bias) or not head.optional_bias)
        bias = checkpoint.tensor(head.bias) if head.bias is not None and there else None
    if tuple(weight.shape) != (head.outputs, size):
        raise CheckpointError(
            f"its head {head.weight} is {tuple(weight.shape)}, but ({head.outputs}, {size}) is read",
            model=checkpoint.name,
        )
    return weight, bias


def _linear(weight: Tensor, bias: Tensor | None) -> Score:
    return lambda hidden, _following: linear(hidden, weight, bias)[:, 0]


def _mlp(head: MlpHead, checkpoint: Checkpoint, size: int, device: torch.device) -> Score:
    first, first_bias = checkpoint.tensor(f"{head.prefix}.0.weight"), checkpoint.tensor(f"{head.prefix}.0.bias")
    last, last_bias = checkpoint.tensor(f"{head.prefix}.2.weight"), checkpoint.tensor(f"{head.prefix}.2.bias")
    if tuple(first.shape) != (size, size) or tuple(last.shape) != (head.outputs, size):
        raise CheckpointError(
            f"its head is {tuple(first.shape)} and {tuple(last.shape)}, but {head.outputs} outputs are read",
            model=checkpoint.name,
        )
    if head.outputs == 2:  # bad, good
        last, last_bias = last[1:] - last[:1], last_bias[1:] - last_bias[:1]
    weights = [weight.to(device) for weight in (first, first_bias, last, last_bias)]

    def score(hidden: Tensor, _following: Tensor) -> Tensor:
        inner = torch.relu(linear(hidden, weights[0], weights[1]))
        return linear(inner, weights[2], weights[3])[:, 0]

    return score


def _log_prob(weight: Tensor, device: torch.device) -> Score:
    weight = weight.to(device)

    def score(hidden: Tensor, following: Tensor) -> Tensor:
        found = []
        for begin in range(0, hidden.shape[0], _ROWS):
            rows = hidden[begin : begin + _ROWS]
            logits = linear(rows.to(weight.dtype), weight).float()
            chosen = logits.gather(1, following[begin : begin + _ROWS, None])[:, 0]
            found.append(chosen - logits.logsumexp(dim=-1))
        return torch.cat(found)

    return score
