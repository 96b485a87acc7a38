"""Implicit rewards (arXiv 2412.01981): beta times the log-likelihood ratio of a model to its reference."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reward_models.families.reading import Engine, Reading


class ImplicitEngine:
    """Two engines that give token log-probabilities, as one that gives token rewards."""

    def __init__(self, policy: Engine, reference: Engine, beta: float) -> None:
        """``beta`` scales the ratio; it must be positive."""
        if not beta > 0:
            raise ValueError(f"beta must be positive, got {beta}")
        self.policy = policy
        self.reference = reference
        self.beta = beta
        parts = f"{policy.fingerprint} {reference.fingerprint} {beta!r}"
        self.fingerprint = hashlib.sha256(parts.encode()).hexdigest()[:16]

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """beta * (log p - log p_ref) at every read."""
        return self.combine(self.policy.raw_scores(readings), self.reference.raw_scores(readings))

    def combine(
        self, policy: Sequence[tuple[float, ...]], reference: Sequence[tuple[float, ...]]
    ) -> list[tuple[float, ...]]:
        """The rewards from both models' log-probabilities."""
        pairs = zip(policy, reference, strict=True)
        return [tuple(self.beta * (p - r) for p, r in zip(a, b, strict=True)) for a, b in pairs]
