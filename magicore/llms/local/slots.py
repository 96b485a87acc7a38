"""The key-value cache behind batched sampling: one row a chain, every row at its own length.

A prompt is read once; its keys and values are copied into the rows of all its chains, and each step writes one position
in every row. Rows of different questions share a batch, and a finished row gives its place to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import Cache

_GROWTH = 64
_ROW_GROWTH = 16

PromptStates = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one prompt, a pair a layer, each ``[1, heads, tokens, head size]``; none for no tokens."""


class SlotCache(Cache):
    """Rows ``0`` to ``rows - 1`` are in use, each with its own length.

    Attributes:
        rows: How many rows are in use.
        longest: The longest row once the step under way is written.
        order, columns: Row and column at which that step writes, each int64 of shape ``[rows]``.
    """

    def __init__(self, max_rows: int, device: torch.device) -> None:
        super().__init__(layers=[])
        self.max_rows = max_rows
        self.rows = 0
        self.longest = 0
        self.order = self.columns = torch.empty(0, dtype=torch.long, device=device)
        self._device = device
        self._lengths: list[int] = []
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    @property
    def lengths(self) -> list[int]:
        """The length of each row in use, in tokens."""
        return self._lengths

    def insert(self, prompt: PromptStates, count: int) -> None:
        """Append ``count`` rows that begin with a prompt."""
        tokens = prompt[0][0].shape[2] if prompt else 0
        first, last = self.rows, self.rows + count
        if last > self.max_rows:
            raise ValueError(f"{last} rows do not fit in {self.max_rows}")
        self.rows = last
        for layer, (keys, values) in enumerate(prompt):
            held_keys, held_values = self._reserve(layer, keys, values, tokens + 1)
            held_keys[first:last, :, :tokens] = keys
            held_values[first:last, :, :tokens] = values
        self._lengths += [tokens] * count

    def remove(self, row: int) -> None:
        """Free a row: the last one takes its place."""
        last = self.rows - 1
        if row != last:
            length = self._lengths[last]
            for held in (*self._keys, *self._values):
                held[row, :, :length] = held[last, :, :length]
            self._lengths[row] = length
        self._lengths.pop()
        self.rows = last

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by a layer: write the next position of every row in use, and give back those rows up to the longest.

        Shapes: ``[rows, heads, 1, head size]`` in, ``[rows, heads, longest, head size]`` out.
        """
        keys, values = self._reserve(layer_idx, key_states, value_states, self.longest)
        keys[self.order, :, self.columns] = key_states[:, :, 0]
        values[self.order, :, self.columns] = value_states[:, :, 0]
        return keys[: self.rows, :, : self.longest], values[: self.rows, :, : self.longest]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The longest row, before the step that is under way."""
        return max(self.longest - 1, 0)

    def begin_step(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Fix where the next step writes. Gives the rows' positions ``[rows, 1]`` and the mask
        ``[rows, 1, 1, longest]`` of what each row may attend to, itself included.
        """
        self.longest = max(self._lengths) + 1
        self.order = torch.arange(self.rows, device=self._device)
        self.columns = torch.tensor(self._lengths, device=self._device)
        positions = self.columns[:, None]
        mask = torch.arange(self.longest, device=self._device) <= positions
        return positions, mask[:, None, None, :]

    def end_step(self) -> None:
        """Every row is one token longer."""
        self._lengths = [length + 1 for length in self._lengths]

    def _reserve(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor, length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A layer's keys and values, each ``[>= rows, heads, >= length, head size]``, made larger if they must be."""
        if layer == len(self._keys):
            self._keys.append(keys.new_zeros(0, keys.shape[1], 0, keys.shape[3]))
            self._values.append(values.new_zeros(0, values.shape[1], 0, values.shape[3]))
        self._keys[layer] = _grown(self._keys[layer], self.rows, length)
        self._values[layer] = _grown(self._values[layer], self.rows, length)
        return self._keys[layer], self._values[layer]


def _grown(held: torch.Tensor, rows: int, length: int) -> torch.Tensor:
    if held.shape[0] >= rows and held.shape[2] >= length:
        return held
    more_rows = max(held.shape[0], -(-rows // _ROW_GROWTH) * _ROW_GROWTH)
    longer = max(held.shape[2], -(-length // _GROWTH) * _GROWTH)
    made = held.new_zeros(more_rows, held.shape[1], longer, held.shape[3])
    made[: held.shape[0], :, : held.shape[2]] = held
    return made
