"""Causal attention over a pack of segments: a segment's queries see its ancestors' keys and its own, up to themselves.

Keys and values are head-major, ``[kv_heads, tokens, width]``. Queries are ``[kv_heads, rows, group, width]``, where
``group`` query heads share a key head: a segment's queries are then one matrix a key head without a copy, and no key is
repeated. Outputs have the queries' shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

_BLOCK = 256  # query rows at a time: bounds the score matrix, and later keys of a long segment are never multiplied


class Range(NamedTuple):
    """Rows ``begin`` to ``end`` (exclusive)."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, kw_only=True)
class Span:
    """One segment's part of the attention.

    Attributes:
        rows: Its query rows.
        offsets: The offset of each row in the segment, ascending; ``None`` where the rows are the whole segment.
        context: Keys of its ancestors, oldest first.
        keys: Its own keys.
    """

    rows: Range
    offsets: tuple[int, ...] | None
    context: tuple[Range, ...]
    keys: Range

    @property
    def shared(self) -> int:
        """How many keys its ancestors have."""
        return sum(part.size for part in self.context)


def attend(query: Tensor, key: Tensor, value: Tensor, spans: Sequence[Span], scale: float) -> Tensor:
    """Attention one span at a time, by the fused kernel: best where a call is cheap, as on a CPU.

    The query heads of a key head are rows of one matrix, so that the kernel reads each key once for all of them.
    """
    out = _token_major(query)
    group = query.shape[2]
    causal = _CausalMask(query, spans)
    for span in spans:
        keys, values = _gather(key, span), _gather(value, span)
        for begin in range(0, span.rows.size, _BLOCK):
            rows = Range(span.rows.begin + begin, min(span.rows.begin + begin + _BLOCK, span.rows.end))
            if span.offsets is None:
                seen = span.shared + begin + rows.size
                mask = causal.last(rows.size, seen)
            else:
                seen = span.shared + span.keys.size
                offsets = torch.tensor(span.offsets[begin : begin + rows.size], device=query.device)
                mask = torch.arange(-span.shared, span.keys.size, device=query.device) <= offsets[:, None]
                mask = mask.repeat_interleave(group, dim=0)
            mixed = scaled_dot_product_attention(
                query[None, :, rows.begin : rows.end].flatten(2, 3),
                keys[None, :, :seen],
                values[None, :, :seen],
                attn_mask=mask,
                scale=scale,
            )
            out[:, rows.begin : rows.end] = mixed[0].unflatten(1, (rows.size, group))
    return out


class _CausalMask:
    """One large mask, of which each call's is a part: zeros, then a triangle of minus infinity."""

    def __init__(self, query: Tensor, spans: Sequence[Span]) -> None:
        whole = [span for span in spans if span.offsets is None]
        self._group = query.shape[2]
        self._before = max((span.shared + span.rows.size for span in whole), default=0)
        block = min(_BLOCK, max((span.rows.size for span in whole), default=0))
        later = torch.full((block, block), float("-inf"), dtype=query.dtype, device=query.device).triu_(1)
        mask = torch.cat([later.new_zeros(block, self._before), later], dim=1)
        self._mask = mask.repeat_interleave(self._group, dim=0)

    def last(self, rows: int, seen: int) -> Tensor:
        """The mask of ``rows`` queries that see ``seen`` keys, the last ``rows`` of them causally."""
        return self._mask[: rows * self._group, self._before + rows - seen : self._before + rows]


def _token_major(query: Tensor) -> Tensor:
    """Room for outputs of the queries' shape in which one token's heads lie side by side, as the next product reads."""
    return torch.empty_like(query.transpose(0, 1), memory_format=torch.contiguous_format).transpose(0, 1)


def _gather(tensor: Tensor, span: Span) -> Tensor:
    ranges: list[Range] = []
    for part in (*span.context, span.keys):
        if ranges and ranges[-1].end == part.begin:
            ranges[-1] = Range(ranges[-1].begin, part.end)
        else:
            ranges.append(part)
    views = [tensor[:, part.begin : part.end] for part in ranges]
    return views[0] if len(views) == 1 else torch.cat(views, dim=1)


def attend_batched(
    query: Tensor, key: Tensor, value: Tensor, spans: Sequence[Span], scale: float, *, waste: float = 0.15
) -> Tensor:
    """The same in few calls of the fused kernels: best on a GPU.

    Spans with equally long contexts and about equal lengths (at most ``waste`` padding) go into one call. Padding is at
    the end of a causal sequence, where no real query sees it, so no mask has to be read.
    """
    out = _token_major(query)
    heads, _, group, width = query.shape
    for batch in _batches([span for span in spans if span.offsets is None], waste):
        longest, shared = batch[0].keys.size, batch[0].shared
        rows = _padded([span.rows for span in batch], longest).to(query.device)
        own = _padded([span.keys for span in batch], longest)
        context = torch.tensor([[i for part in span.context for i in range(*part)] for span in batch], dtype=own.dtype)
        keys = torch.cat((context.view(len(batch), shared), own), dim=1).to(query.device)
        found = scaled_dot_product_attention(
            query[:, rows].permute(1, 0, 3, 2, 4).reshape(len(batch), heads * group, longest, width),
            key[:, keys].transpose(0, 1),
            value[:, keys].transpose(0, 1),
            attn_mask=causal_lower_right(longest, shared + longest) if shared else None,
            is_causal=not shared,
            scale=scale,
            enable_gqa=group > 1,
        )
        found = found.view(len(batch), heads, group, longest, width).permute(1, 0, 3, 2, 4)
        for at, span in enumerate(batch):
            out[:, span.rows.begin : span.rows.end] = found[:, at, : span.rows.size]
    if parts := [span for span in spans if span.offsets is not None]:
        rest = attend(query, key, value, parts, scale)
        for span in parts:
            out[:, span.rows.begin : span.rows.end] = rest[:, span.rows.begin : span.rows.end]
    return out


def _batches(spans: Sequence[Span], waste: float) -> list[list[Span]]:
    """Spans of one context length, longest first, in runs that padding wastes little of."""
    batches: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: (span.shared, -span.keys.size)):
        longest = batches[-1][0].keys.size if batches else 0
        if batches and batches[-1][0].shared == span.shared and longest - span.keys.size <= waste * longest:
            batches[-1].append(span)
        else:
            batches.append([span])
    return batches


def _padded(ranges: Sequence[Range], longest: int) -> Tensor:
    """Row indices of each range, its last one repeated up to the longest."""
    begins = torch.tensor([[part.begin] for part in ranges])
    lasts = torch.tensor([[part.end - 1] for part in ranges])
    return torch.minimum(begins + torch.arange(longest), lasts)
