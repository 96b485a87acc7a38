"""A compact forward pass over packed sequences for the Llama family of architectures.

The tokens of all segments lie side by side without padding, so every linear layer is a large matrix product and nothing
is computed for padding; a shared prefix is one segment; keys and values live for one layer only, except those that
later packs need; the last layer computes only the rows that are read. The loaded model's own weights are used: query,
key and value matrices are laid out as one, gate and up matrices as another, and the model's parameters become views.

Equality with the transformers forward pass is tested for every architecture in :data:`ARCHITECTURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn.functional import linear

from reward_models.local.attention import Range, Span, attend, attend_batched
from reward_models.local.trie import Forest, Pack

ARCHITECTURES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
"""Model types whose decoder layers are computed here; others go through transformers."""

_STATIC_ROPE = frozenset({"default", "linear", "llama3", "yarn"})
"""Rotary embeddings whose angles depend on the position alone, not on the length of the sequence."""

_CACHED = 1 << 17
"""Float32 values that passes over the same rows keep in a CPU core's second-level cache, with room for results."""

Project = Callable[[Tensor], Tensor]


def supports(backbone: Any) -> bool:
    """Whether this module computes the backbone exactly: a known architecture, no sliding window, all weights here."""
    config = backbone.config
    kinds = set(getattr(config, "layer_types", None) or ())
    windowed = "sliding_attention" in kinds or (not kinds and getattr(config, "sliding_window", None) is not None)
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in ARCHITECTURES
        and not windowed
        and rope.get("rope_type", "default") in _STATIC_ROPE
        and all(parameter.device.type != "meta" for parameter in backbone.parameters())
    )


class Kept:
    """Keys and values, one pair a layer, of segments that later packs need."""

    def __init__(self) -> None:
        self.pairs: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def drop_except(self, keep: frozenset[int]) -> None:
        """Forget the segments that nothing needs any more."""
        self.pairs = {index: pairs for index, pairs in self.pairs.items() if index in keep}


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Where everything of one pack lies. Key rows begin with the kept segments' keys, then follow the pack's own."""

    ids: Tensor
    positions: Tensor
    rows_read: Tensor
    spans: tuple[Span, ...]
    spans_read: tuple[Span, ...]
    keys: dict[int, Range]
    old: tuple[int, ...]
    old_tokens: int

    @classmethod
    def of(cls, forest: Forest, pack: Pack, reads: Sequence[Sequence[int]], device: torch.device) -> _Plan:
        own = set(pack.segments)
        paths = {index: tuple(forest.path(forest.segments[index].parent))[::-1] for index in pack.segments}
        old = tuple(sorted({ancestor for path in paths.values() for ancestor in path} - own))
        keys: dict[int, Range] = {}
        at = 0
        for index in (*old, *pack.segments):
            keys[index] = Range(at, at + len(forest.segments[index].ids))
            at = keys[index].end
        first = keys[pack.segments[0]].begin
        spans, spans_read = [], []
        rows_read: list[int] = []
        for index, offsets in zip(pack.segments, reads, strict=True):
            rows = Range(keys[index].begin - first, keys[index].end - first)
            context = tuple(keys[ancestor] for ancestor in paths[index])
            spans.append(Span(rows=rows, offsets=None, context=context, keys=keys[index]))
            if offsets:
                read = Range(len(rows_read), len(rows_read) + len(offsets))
                spans_read.append(Span(rows=read, offsets=tuple(offsets), context=context, keys=keys[index]))
                rows_read.extend(rows.begin + offset for offset in offsets)
        segments = [forest.segments[index] for index in pack.segments]
        return cls(
            ids=torch.tensor([token for segment in segments for token in segment.ids], device=device),
            positions=torch.tensor([p for s in segments for p in range(s.start, s.end)], device=device),
            rows_read=torch.tensor(rows_read, dtype=torch.long),
            spans=tuple(spans),
            spans_read=tuple(spans_read),
            keys=keys,
            old=old,
            old_tokens=first,
        )


class PackedDecoder:
    """The backbone's forward pass, one pack of a forest at a time."""

    def __init__(self, backbone: Any, *, rows: int = 2048) -> None:
        """Lay the weights out.

        Args:
            backbone: A transformers decoder that :func:`supports` accepts.
            rows: How many tokens go through the linear part of a layer at a time, which bounds memory. Each product has
                a fixed cost (a CPU lays the weights out anew), so few large ones are best.
        """
        config = backbone.config
        self.backbone = backbone
        self.rows = rows
        self.kv_heads: int = config.num_key_value_heads
        self.group: int = config.num_attention_heads // config.num_key_value_heads
        self.width: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.scale = self.width**-0.5
        self.dtype: torch.dtype = backbone.norm.weight.dtype
        self.layers = [_Layer(layer) for layer in backbone.layers]

    @torch.inference_mode()
    def forward(self, forest: Forest, pack: Pack, reads: Sequence[Sequence[int]], kept: Kept) -> Tensor:
        """Final hidden states, normed, of the rows that are read.

        Args:
            forest: All segments.
            pack: Those to compute now.
            reads: For each segment of the pack, the offsets that are read, ascending.
            kept: Keys and values of ancestors in earlier packs; those that this pack has to keep are added.

        Returns:
            ``[rows read, hidden]`` in float32, in the order of the pack's segments and their offsets.
        """
        plan = _Plan.of(forest, pack, reads, self.layers[0].device)
        embedded: Tensor = self.backbone.embed_tokens(plan.ids)
        angles = self._angles(embedded, plan.positions)
        hidden = embedded.float()  # the sums of all layers, which half precision would round at every layer
        stored: dict[int, list[tuple[Tensor, Tensor]]] = {index: [] for index in pack.keep if index not in kept.pairs}
        for depth, layer in enumerate(self.layers):
            hidden = hidden.to(layer.device)
            angles = angles.to(layer.device)
            last = depth == len(self.layers) - 1
            key, value = self._buffers(hidden, plan, kept, depth)
            rows = plan.rows_read.to(layer.device)
            query = self._projected(layer, hidden, angles, key, value, plan.old_tokens, rows if last else None)
            if last:
                hidden = hidden[rows]
            for index, pairs in stored.items():
                part = slice(*plan.keys[index])
                pairs.append((key[:, part].clone(), value[:, part].clone()))
            attention = attend if hidden.device.type == "cpu" else attend_batched
            mixed = attention(query, key, value, plan.spans_read if last else plan.spans, self.scale)
            del query, key, value
            self._finish(layer, hidden, mixed)
        kept.pairs.update(stored)
        kept.drop_except(pack.keep)
        norm = self.backbone.norm
        return _norm(hidden, norm.weight.float(), norm.variance_epsilon, torch.float32)

    def _angles(self, hidden: Tensor, positions: Tensor) -> Tensor:
        """Cosines and sines, ``[2, tokens, 1, width]``, the sines of a head's first half negated."""
        cosine, sine = (part[0, :, None].float() for part in self.backbone.rotary_emb(hidden.float(), positions[None]))
        half = self.width // 2
        return torch.stack([cosine, torch.cat([-sine[..., :half], sine[..., half:]], dim=-1)])

    def _buffers(self, hidden: Tensor, plan: _Plan, kept: Kept, depth: int) -> tuple[Tensor, Tensor]:
        """Room for the keys and values of a layer, those of earlier packs filled in."""
        shape = (self.kv_heads, plan.old_tokens + hidden.shape[0], self.width)
        key = torch.empty(shape, dtype=self.dtype, device=hidden.device)
        value = torch.empty_like(key)
        for index in plan.old:
            part = slice(*plan.keys[index])
            key[:, part], value[:, part] = kept.pairs[index][depth]
        return key, value

    def _projected(
        self, layer: _Layer, hidden: Tensor, angles: Tensor, key: Tensor, value: Tensor, first: int, rows: Tensor | None
    ) -> Tensor:
        """Fill in keys and values from row ``first`` on; return the queries of all rows or of those given."""
        count = hidden.shape[0] if rows is None else len(rows)
        shape = (self.kv_heads, count, self.group, self.width)
        query = torch.empty(shape, dtype=self.dtype, device=hidden.device)
        for begin in range(0, hidden.shape[0], self.rows):
            part = slice(begin, min(begin + self.rows, hidden.shape[0]))
            states = _norm(hidden[part], layer.norm, layer.epsilon, self.dtype)
            if rows is None:
                queries, keys, values = layer.query_key_value(states)
                self._place_queries(layer, queries, angles[:, part], query[:, part])
            else:
                keys, values = layer.key_value(states)
            place = slice(first + part.start, first + part.stop)
            keys = layer.key_norm(keys.unflatten(-1, (self.kv_heads, self.width)))
            _rotate(keys, angles[:, part], key[:, place].transpose(0, 1))
            value[:, place] = values.unflatten(-1, (self.kv_heads, self.width)).transpose(0, 1)
        if rows is not None:
            queries = layer.query(_norm(hidden[rows], layer.norm, layer.epsilon, self.dtype))
            self._place_queries(layer, queries, angles[:, rows], query)
        return query

    def _place_queries(self, layer: _Layer, queries: Tensor, angles: Tensor, out: Tensor) -> None:
        queries = layer.query_norm(queries.unflatten(-1, (self.kv_heads, self.group, self.width)))
        _rotate(queries, angles[:, :, None], out.transpose(0, 1))

    def _finish(self, layer: _Layer, hidden: Tensor, mixed: Tensor) -> None:
        """Add the attention's and the MLP's contributions in place."""
        for begin in range(0, hidden.shape[0], self.rows):
            states = hidden[begin : begin + self.rows]
            heads = mixed[:, begin : begin + self.rows].transpose(0, 1).flatten(1)
            _add(states, layer.out(heads))
            _add(states, layer.mlp(_norm(states, layer.mlp_norm, layer.epsilon, self.dtype)))


class _Layer:
    """One decoder layer's weights, laid out for few large products."""

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.device: torch.device = layer.input_layernorm.weight.device
        self.norm: Tensor = layer.input_layernorm.weight.float()
        self.mlp_norm: Tensor = layer.post_attention_layernorm.weight.float()
        self.epsilon: float = layer.input_layernorm.variance_epsilon
        self.query_norm: Project = getattr(attention, "q_norm", _same)
        self.key_norm: Project = getattr(attention, "k_norm", _same)
        self.out: Project = attention.o_proj
        self._activation: Project = mlp.act_fn
        self._down: Project = mlp.down_proj
        self._inputs = _Fused([attention.q_proj, attention.k_proj, attention.v_proj])
        self._gates = _Fused([mlp.gate_proj, mlp.up_proj])

    def query_key_value(self, states: Tensor) -> tuple[Tensor, ...]:
        return self._inputs(states, 0, 3)

    def query(self, states: Tensor) -> Tensor:
        return self._inputs(states, 0, 1)[0]

    def key_value(self, states: Tensor) -> tuple[Tensor, ...]:
        return self._inputs(states, 1, 3)

    def mlp(self, states: Tensor) -> Tensor:
        gate, up = self._gates(states, 0, 2)
        return self._down(self._activation(gate).mul_(up))


class _Fused:
    """Linear layers of one input as one product. Quantised layers, which have no plain weight, are called in turn."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layers = layers
        self._sizes = [layer.out_features for layer in layers]
        self._weight: Tensor | None = None
        self._bias: Tensor | None = None
        if all(type(layer) is nn.Linear for layer in layers):
            self._weight = _joined([layer.weight for layer in layers])
            if layers[0].bias is not None:
                self._bias = _joined([layer.bias for layer in layers])

    def __call__(self, states: Tensor, first: int, stop: int) -> tuple[Tensor, ...]:
        """The outputs of the layers from ``first`` up to ``stop``."""
        if self._weight is None:
            return tuple(layer(states) for layer in self._layers[first:stop])
        rows = slice(sum(self._sizes[:first]), sum(self._sizes[:stop]))
        together = linear(states, self._weight[rows], None if self._bias is None else self._bias[rows])
        parts: tuple[Tensor, ...] = together.split(self._sizes[first:stop], dim=-1)
        return parts


def _joined(parts: Sequence[nn.Parameter]) -> Tensor:
    """One tensor of all rows, of which the parameters become views, so that nothing is held twice."""
    with torch.no_grad():
        whole = torch.cat([part.data for part in parts])
        for part, view in zip(parts, whole.split([len(part) for part in parts]), strict=True):
            part.data = view
    return whole


def _same(states: Tensor) -> Tensor:
    return states


def _norm(states: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """Root-mean-square norm of float32 states, computed in float32 and rounded once, to ``dtype``."""
    normed = torch.empty_like(states, dtype=dtype)
    for part in _in_cache(states):
        rows = states[part]
        length = vector_norm(rows, dim=-1, keepdim=True)
        factor = length.square_().div_(states.shape[-1]).add_(epsilon).rsqrt_()
        normed[part] = (rows * factor).mul_(weight)
    return normed


def _rotate(states: Tensor, angles: Tensor, out: Tensor) -> None:
    """Rotary embedding: turn the pairs formed by the two halves of each head, and write the result into ``out``.

    Computed in float32 and rounded once.
    """
    half = states.shape[-1] // 2
    cosine, sine = angles[0], angles[1]
    for part in _in_cache(states):
        rows = states[part].float()
        turned = rows * cosine[part]
        turned[..., :half].addcmul_(rows[..., half:], sine[part, ..., :half])
        turned[..., half:].addcmul_(rows[..., :half], sine[part, ..., half:])
        out[part] = turned


def _add(states: Tensor, change: Tensor) -> None:
    """Add in place."""
    for part in _in_cache(states):
        states[part] += change[part]


def _in_cache(states: Tensor) -> Iterator[slice]:
    """Runs of rows whose float32 values fit a CPU core's cache, so that passes over them do not wait for memory."""
    rows = len(states)
    if states.device.type != "cpu":
        return iter([slice(0, rows)])
    step = max(1, _CACHED * torch.get_num_threads() * rows // max(1, states.numel()))
    return (slice(begin, begin + step) for begin in range(0, rows, step))
