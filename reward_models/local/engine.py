"""The local engine: raw scores of token sequences, every token computed once.

Sequences become a forest of shared prefixes, the forest is cut into packs that fit the memory, hidden states are
gathered at the positions that are read, and only those meet the head. When memory runs out, packs are halved and what
is still missing is computed again; nothing that was computed is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from reward_models.errors import CapabilityError
from reward_models.families.reading import Engine, Reading
from reward_models.local.decoder import Kept, PackedDecoder, supports
from reward_models.local.device import default_budget, is_out_of_memory
from reward_models.local.heads import Score
from reward_models.local.padded import padded_batches, read_batch
from reward_models.local.processor import compute
from reward_models.local.trie import pack, plant

_LEAST_BUDGET = 64

Wanted = dict[int, dict[int, list[tuple[int, int]]]]
"""Segment -> offset in it -> the (reading, read) pairs that want the hidden state there."""


class LocalEngine:
    """One model on one device, or spread over several by accelerate."""

    def __init__(
        self, backbone: Any, score: Score, *, fingerprint: str, budget: int | None = None, share: bool = True
    ) -> None:
        """Wrap a loaded model.

        Args:
            backbone: A transformers model without a head, in evaluation mode.
            score: The head.
            fingerprint: Names weights, revision and number format.
            budget: Most tokens computed together; found from free memory when ``None``.
            share: Compute shared prefixes once; ``False`` only serves comparisons.
        """
        self.fingerprint = fingerprint
        self.backbone = backbone
        self.score = score
        self.share = share
        self.decoder = PackedDecoder(backbone) if supports(backbone) else None
        self.device: torch.device = backbone.get_input_embeddings().weight.device
        self.budget = budget or default_budget(backbone.config, self.device)
        self.tokens_computed = 0
        self._lock = threading.Lock()

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.families.reading.Engine`.

        Raises:
            CapabilityError: The memory does not even hold the smallest pack.
        """
        with self._lock:
            return compute(lambda: self._raw_scores(readings), self.device)

    def _raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        found: list[dict[int, float]] = [{} for _ in readings]
        while missing := [i for i, reading in enumerate(readings) if len(found[i]) < len(reading.reads)]:
            try:
                for index, read, number in self._compute([readings[i] for i in missing]):
                    found[missing[index]][read] = number
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(error)
        return [tuple(numbers[read] for read in range(len(numbers))) for numbers in found]

    def _halve(self, error: BaseException) -> None:
        self.budget //= 2
        if self.budget < _LEAST_BUDGET:
            raise CapabilityError(
                f"out of memory on {self.device} even for {2 * self.budget} tokens at a time"
            ) from error
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _compute(self, readings: Sequence[Reading]) -> Iterator[tuple[int, int, float]]:
        """(reading, read, raw score), as they are computed."""
        return self._packed(readings, self.decoder) if self.decoder else self._padded(readings)

    def _packed(self, readings: Sequence[Reading], decoder: PackedDecoder) -> Iterator[tuple[int, int, float]]:
        least = 8 if self.share else 1 << 30
        forest = plant([r.ids[: r.reads[-1] + 1] for r in readings], least_shared=least, longest=self.budget)
        wanted: Wanted = {}
        for index, reading in enumerate(readings):
            for read, (segment, offset) in enumerate(forest.locate(index, reading.reads)):
                wanted.setdefault(segment, {}).setdefault(offset, []).append((index, read))
        kept = Kept()
        for group in pack(forest, self.budget):
            offsets = [sorted(wanted.get(segment, ())) for segment in group.segments]
            hidden = decoder.forward(forest, group, offsets, kept)
            self.tokens_computed += sum(len(forest.segments[segment].ids) for segment in group.segments)
            takers = [wanted[s][o] for s, found in zip(group.segments, offsets, strict=True) for o in found]
            yield from self._scored(readings, hidden, takers)

    def _padded(self, readings: Sequence[Reading]) -> Iterator[tuple[int, int, float]]:
        for batch in padded_batches(readings, self.budget):
            hidden = read_batch(self.backbone, [readings[index] for index in batch])
            self.tokens_computed += sum(len(readings[index].ids) for index in batch)
            takers = [[(index, read)] for index in batch for read in range(len(readings[index].reads))]
            yield from self._scored(readings, hidden, takers)

    def _scored(
        self, readings: Sequence[Reading], hidden: Tensor, takers: Sequence[Sequence[tuple[int, int]]]
    ) -> Iterator[tuple[int, int, float]]:
        """Apply the head to each row, once for each different token that follows it."""
        rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row, pairs in enumerate(takers):
            for index, read in pairs:
                rows.setdefault((row, _following(readings[index], read)), []).append((index, read))
        if not rows:
            return
        keys = list(rows)
        with torch.inference_mode():
            states = hidden[torch.tensor([row for row, _ in keys], device=hidden.device)]
            following = torch.tensor([token for _, token in keys], device=hidden.device)
            numbers: list[float] = self.score(states, following).tolist()
        for key, number in zip(keys, numbers, strict=True):
            yield from ((index, read, number) for index, read in rows[key])


def _following(reading: Reading, read: int) -> int:
    after = reading.reads[read] + 1
    return reading.ids[after] if after < len(reading.ids) else 0


class ReplicatedEngine:
    """The same model on several devices; sequences with a common beginning stay on one of them."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = engines
        self.fingerprint = engines[0].fingerprint

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.families.reading.Engine`."""
        order = sorted(range(len(readings)), key=lambda index: readings[index].ids)
        shares = _shares(order, [len(reading.ids) for reading in readings], len(self.engines))
        with ThreadPoolExecutor(max_workers=len(self.engines)) as pool:
            parts = list(
                pool.map(
                    lambda engine, share: engine.raw_scores([readings[index] for index in share]), self.engines, shares
                )
            )
        found: dict[int, tuple[float, ...]] = {}
        for share, part in zip(shares, parts, strict=True):
            found.update(zip(share, part, strict=True))
        return [found[index] for index in range(len(readings))]


def _shares(order: Sequence[int], lengths: Sequence[int], count: int) -> list[list[int]]:
    """Cut an order into runs of about equally many tokens."""
    total = sum(lengths)
    shares: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for index in order:
        shares[min(count - 1, before * count // max(1, total))].append(index)
        before += lengths[index]
    return shares
