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
    """Attention one span at a time, by matrix products: best where a call is cheap, as on a CPU."""
    out = torch.empty_like(query)
    block = min(_BLOCK, max((span.rows.size for span in spans), default=0))
    later = torch.full((block, block), float("-inf"), dtype=query.dtype, device=query.device).triu_(1)
    later = later.repeat_interleave(query.shape[2], dim=0)
    for span in spans:
        keys, values = _gather(key, span), _gather(value, span)
        for begin in range(0, span.rows.size, block):
            rows = Range(span.rows.begin + begin, min(span.rows.begin + begin + block, span.rows.end))
            if span.offsets is None:
                seen = span.shared + begin + rows.size
                scores = _scores(query, keys[:, :seen], rows, scale)
                scores[..., seen - rows.size :] += later[: scores.shape[1], : rows.size]
            else:
                seen = span.shared + span.keys.size
                scores = _scores(query, keys, rows, scale)
                offsets = torch.tensor(span.offsets[begin : begin + rows.size], device=query.device)
                hidden = torch.arange(-span.shared, span.keys.size, device=query.device) > offsets[:, None]
                scores.masked_fill_(hidden.repeat_interleave(query.shape[2], dim=0), float("-inf"))
            mixed = torch.bmm(torch.softmax(scores, dim=-1), values[:, :seen])
            out[:, rows.begin : rows.end] = mixed.view(query.shape[0], rows.size, *query.shape[2:])
    return out


def _scores(query: Tensor, keys: Tensor, rows: Range, scale: float) -> Tensor:
    matrix = query[:, rows.begin : rows.end].flatten(1, 2)
    scores = query.new_empty(matrix.shape[0], matrix.shape[1], keys.shape[1])
    return torch.baddbmm(scores, matrix, keys.transpose(1, 2), beta=0, alpha=scale, out=scores)


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
    out = torch.empty_like(query)
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
