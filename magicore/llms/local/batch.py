"""A batch of chains that are sampled together, one token a step."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from magicore.llms.local.choosing import choose, log_probabilities, most_likely
from magicore.llms.local.loading import LoadedModel
from magicore.llms.local.masks import step_mask
from magicore.llms.local.prompts import Prompt, forward
from magicore.llms.local.slots import SlotCache
from magicore.types import StopReason

_STOP_WINDOW = 16


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How one chain is to be sampled.

    Attributes:
        temperature, top_p: Its sampling parameters; temperature 0 is greedy.
        limit: The most tokens.
        stops: Texts that end it.
        logprobs: Whether the log-probability of each token is kept.
        top: How many alternatives a position are kept.
        key: Seeds its random state.
    """

    temperature: float
    top_p: float
    limit: int
    stops: tuple[str, ...]
    logprobs: bool
    top: int
    key: str


@dataclass
class Row:
    """One chain as it grows after the token ``after``, to at most ``limit`` tokens. ``done`` is called once, when
    ``stop`` is known.
    """

    wanted: Wanted
    after: int
    limit: int
    done: Callable[[Row], None]
    draw: random.Random
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    alternatives: list[list[tuple[int, float]]] = field(default_factory=list)
    stop: StopReason | None = None
    cancelled: Callable[[], bool] = lambda: False


class Batch:
    """Rows that share every step.

    With ``fixed`` rows are kept to the end, so that the batch has one shape throughout and a chain has one row: then
    what is computed for a chain does not depend on which others there are.
    """

    def __init__(self, loaded: LoadedModel, max_rows: int, *, fixed: bool = False) -> None:
        self._loaded = loaded
        self._cache = SlotCache(max_rows, loaded.device)
        self._fixed = fixed
        self._rows: list[Row | None] = []

    @property
    def free(self) -> int:
        """How many more rows there is room for."""
        return self._cache.max_rows - self._cache.rows

    def room(self, row_bytes: int) -> int:
        """How many more rows of ``row_bytes`` fit, by number and by memory; at least one in an empty batch."""
        affordable = self._loaded.cache_bytes // max(row_bytes, 1) - self._cache.rows
        return max(min(self.free, affordable), 0 if self._rows else 1)

    @property
    def active(self) -> bool:
        """Whether any chain is unfinished."""
        return any(row is not None for row in self._rows)

    def add(self, prompt: Prompt, rows: Sequence[Row | None]) -> None:
        """Begin chains after a prompt, whose last token they read in their first step. ``None`` is padding."""
        self._cache.insert(prompt.states, len(rows))
        self._rows += rows

    def step(self) -> None:
        """One more token for every chain; finished chains are handed over and leave."""
        positions, mask = self._cache.begin_step()
        filler = next(iter(self._loaded.ends), 0)
        last = [[filler if row is None else row.tokens[-1] if row.tokens else row.after] for row in self._rows]
        tokens = torch.tensor(last, device=self._loaded.device)
        logits = forward(self._loaded, tokens, positions, self._cache, step_mask(self._loaded, positions, mask))
        self._cache.end_step()
        self._take(logits)
        self._clear()

    def emptied(self) -> Batch:
        """A new batch of the same kind without rows."""
        return Batch(self._loaded, self._cache.max_rows, fixed=self._fixed)

    def _take(self, logits: torch.Tensor) -> None:
        """Choose a token for each row.

        In a fixed batch each row by itself: how a sum over the vocabulary is split between threads depends on how many
        rows there are.
        """
        live = [(at, row) for at, row in enumerate(self._rows) if row is not None]
        for block in [[one] for one in live] if self._fixed else [live]:
            rows = [row for _, row in block]
            self._choose(logits if len(rows) == len(logits) else logits[[at for at, _ in block]], rows)

    def _choose(self, logits: torch.Tensor, rows: Sequence[Row]) -> None:
        wanted = [row.wanted for row in rows]
        chosen = choose(
            logits, [one.temperature for one in wanted], [one.top_p for one in wanted], [row.draw for row in rows]
        )
        scores = log_probabilities(logits, chosen) if any(one.logprobs for one in wanted) else [0.0] * len(rows)
        top = max((one.top for one in wanted), default=0)
        alternatives: list[list[tuple[int, float]]] = most_likely(logits, top) if top else [[]] * len(rows)
        for row, token, score, likely in zip(rows, chosen, scores, alternatives, strict=True):
            row.tokens.append(token)
            if row.wanted.logprobs:
                row.logprobs.append(score)
            if row.wanted.top:
                row.alternatives.append(likely[: row.wanted.top])
            row.stop = self._stop(row)

    def _stop(self, row: Row) -> StopReason | None:
        if row.tokens[-1] in self._loaded.ends:
            return "stop"
        if row.wanted.stops:
            longest = max(map(len, row.wanted.stops))
            tail = self._loaded.tokenizer.decode(row.tokens[-(longest + _STOP_WINDOW) :], skip_special_tokens=True)
            if any(stop in tail for stop in row.wanted.stops):
                return "stop"
        return "length" if len(row.tokens) >= row.limit else None

    def _clear(self) -> None:
        """Hand over finished chains, and drop those nobody waits for any more."""
        for at in reversed(range(len(self._rows))):
            row = self._rows[at]
            if row is None or (row.stop is None and not row.cancelled()):
                continue
            if self._fixed:
                self._rows[at] = None
            else:
                self._cache.remove(at)
                self._rows[at] = self._rows[-1]
                self._rows.pop()
            if row.stop is not None:
                row.done(row)
