"""What a training run does: every number that decides its weights, checked."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from magicore.errors import InputError, UnknownNameError

Kind = Literal["prm", "orm", "policy", "refiner"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Precision = Literal["auto", "fp32", "bf16", "autocast"]
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)

HEADS: Final[dict[Kind, tuple[str, ...]]] = {
    "prm": ("math-shepherd", "trl-prm"),
    "orm": ("sequence-classification",),
    "policy": ("language-model",),
    "refiner": ("language-model",),
}
"""The heads that can be trained, the default first: families of :mod:`reward_models`, or the model's own."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """One training run.

    Attributes:
        kind: What is trained: a process or outcome reward model, a policy, or a reviewer and refiner.
        base: The model it starts from: ``embedded`` (the package's trained policy), ``embedded:base`` (the model below
            it), a Hub id, a folder, or another adapter's folder.
        head: One of :data:`HEADS` for the kind; ``None`` takes the first.
        rank, alpha, dropout: LoRA's; ``alpha=None`` is twice the rank.
        learning_rate: AdamW's at its highest; it rises over the first ``warmup`` of the steps and then falls to 0
            along a line.
        weight_decay: Of the adapter's matrices.
        batch: Examples a step; for reward models an example is a question with its solutions, as many as 768 tokens
            hold.
        steps: Optimiser steps; ``None`` for ``epochs`` over the data.
        epochs: Passes over the data, where ``steps`` is not given.
        max_length: Longer examples are left out, and counted.
        micro_tokens: The most tokens, padding included, that go through the model at once; memory grows with it.
        held_out: The share of problems that is never trained on, and measured every ``evaluate_every`` steps.
        checkpoint_every: Steps between two checkpoints.
        seed: Decides initial weights, order, dropout and the held-out problems.
        device: auto, cpu, cuda, mps.
        precision: ``fp32``; ``bf16``: the frozen weights and all products in bfloat16, the adapter in float32;
            ``autocast``: all weights in float32, products in bfloat16; ``auto``: bf16 where the device is faster with
            it, else fp32.
        prompts: The prompt set that policies and refiners are trained in.
        adapter_dtype: How the adapter is written: float16 (half the size) or float32.
    """

    kind: Kind
    base: str = "embedded"
    head: str | None = None
    rank: int = 16
    alpha: float | None = None
    dropout: float = 0.0
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    warmup: float = 0.05
    batch: int = 16
    steps: int | None = None
    epochs: float = 1.0
    max_length: int = 1024
    micro_tokens: int = 2048
    held_out: float = 0.05
    evaluate_every: int = 50
    checkpoint_every: int = 50
    seed: int = 0
    device: str = "auto"
    precision: Precision = "auto"
    prompts: str = "default"
    adapter_dtype: Literal["float16", "float32"] = "float16"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError(f"what can be trained is {', '.join(KINDS)}, not {self.kind!r}")
        if self.head is not None and self.head not in HEADS[self.kind]:
            near = difflib.get_close_matches(self.head, HEADS[self.kind], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(HEADS[self.kind])}"
            raise UnknownNameError(f"a {self.kind} has no head {self.head!r}: {hint}")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision is {', '.join(PRECISIONS)}, not {self.precision!r}")
        if self.adapter_dtype not in ("float16", "float32"):
            raise InputError(f"adapter_dtype is float16 or float32, not {self.adapter_dtype!r}")
        for name in ("rank", "batch", "max_length", "micro_tokens", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps is at least 1, not {self.steps}")
        if not self.epochs > 0 or not self.learning_rate > 0:
            raise InputError("epochs and learning_rate are above 0")
        for name in ("held_out", "warmup", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} lies in [0, 1), got {getattr(self, name)}")

    @property
    def chosen_head(self) -> str:
        """The head, the kind's first where none was chosen."""
        return self.head or HEADS[self.kind][0]

    @property
    def scale(self) -> float:
        """LoRA's alpha."""
        return 2.0 * self.rank if self.alpha is None else self.alpha

    def recipe(self) -> dict[str, Any]:
        """All of it as JSON, with defaults filled in."""
        return {**asdict(self), "head": self.chosen_head, "alpha": self.scale}
