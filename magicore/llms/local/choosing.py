"""Choose the next token of every row: temperature and nucleus sampling with a random state of each row's own.

Rows are taken a few at a time on a processor, so that a block of them stays in its cache from one pass to the next.

Nothing is sorted. A token is drawn from the whole distribution and kept if it lies in the nucleus, else drawn again;
that is the distribution restricted to the nucleus and renormalised, exactly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

_MOST_DRAWS = 12
_CACHED_BYTES = 1 << 20
"""Of one pass over a block of rows in float32."""


def choose(
    logits: torch.Tensor, temperatures: Sequence[float], top_ps: Sequence[float], draws: Sequence[random.Random]
) -> list[int]:
    """The next token of each row.

    Args:
        logits: In any precision, ``[rows, vocabulary]``.
        temperatures: One a row; 0 takes the most likely token.
        top_ps: One a row, in (0, 1]: the nucleus is the fewest most likely tokens that have this probability together.
        draws: One a row; how often it is drawn from depends on this row alone.
    """
    block = _block(logits)
    chosen: list[int] = []
    for first in range(0, len(temperatures), block):
        part = slice(first, first + block)
        chosen += _choose(logits[part].float(), temperatures[part], top_ps[part], draws[part])
    return chosen


def _block(logits: torch.Tensor) -> int:
    """How many rows are looked at together."""
    if logits.device.type != "cpu":
        return max(1, logits.shape[0])
    return max(1, _CACHED_BYTES // (4 * logits.shape[1]))


def _choose(
    logits: torch.Tensor, temperatures: Sequence[float], top_ps: Sequence[float], draws: Sequence[random.Random]
) -> list[int]:
    drawn = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    if not drawn:
        return _integers(logits.argmax(-1))
    every = len(drawn) == len(temperatures)
    rows = logits if every else logits[drawn]
    scale = torch.tensor([temperatures[row] for row in drawn], dtype=torch.float32, device=logits.device)
    probabilities = torch.softmax(rows / scale[:, None], -1)
    picked = _draw(probabilities, [top_ps[row] for row in drawn], [draws[row] for row in drawn])
    if every:
        return _integers(picked)
    chosen = logits.argmax(-1)
    chosen[drawn] = picked
    return _integers(chosen)


def log_probabilities(logits: torch.Tensor, chosen: Sequence[int]) -> list[float]:
    """The natural log-probability of each row's chosen token under the model's own softmax: at temperature 1, nothing
    cut off, whatever it was sampled with.
    """
    logits = logits.float()
    picked = logits.gather(1, torch.tensor(chosen, device=logits.device)[:, None])[:, 0]
    values: list[float] = (picked - torch.logsumexp(logits, -1)).tolist()
    return values


def most_likely(logits: torch.Tensor, count: int) -> list[list[tuple[int, float]]]:
    """The ``count`` most likely tokens of each row with their log-probabilities, in that order."""
    logits = logits.float()
    best, tokens = torch.topk(logits, min(count, logits.shape[-1]), dim=-1)
    values = best - torch.logsumexp(logits, -1, keepdim=True)
    return [list(zip(row, scores, strict=True)) for row, scores in zip(tokens.tolist(), values.tolist(), strict=True)]


def _draw(probabilities: torch.Tensor, top_ps: Sequence[float], draws: Sequence[random.Random]) -> torch.Tensor:
    cumulative = probabilities.cumsum(-1)
    chosen = torch.zeros(len(draws), dtype=torch.long, device=probabilities.device)
    pending = list(range(len(draws)))
    for _ in range(_MOST_DRAWS):
        shares = torch.tensor([[draws[row].random()] for row in pending], device=probabilities.device)
        here = cumulative if len(pending) == len(draws) else cumulative[pending]
        tokens = torch.searchsorted(here, shares.float() * here[:, -1:], right=True).clamp_(max=here.shape[1] - 1)
        chosen[pending] = tokens[:, 0]
        pending = _outside(probabilities, chosen, top_ps, pending)
        if not pending:
            return chosen
    for row in pending:  # a narrow nucleus: draw from it outright
        chosen[row] = _draw_sorted(probabilities[row], top_ps[row], draws[row])
    return chosen


def _outside(
    probabilities: torch.Tensor, chosen: torch.Tensor, top_ps: Sequence[float], rows: Sequence[int]
) -> list[int]:
    """The rows whose token lies outside the nucleus: the more likely tokens have its whole probability already."""
    own = probabilities[rows, chosen[rows]]
    # Where the token's own probability exceeds 1 - top_p, the rest cannot reach top_p.
    doubtful = [at for at, (row, p) in enumerate(zip(rows, own.tolist(), strict=True)) if p <= 1 - top_ps[row]]
    if not doubtful:
        return []
    asked = [rows[at] for at in doubtful]
    values = probabilities[asked]
    above = torch.where(values > own[doubtful][:, None], values, 0.0).sum(-1).tolist()
    return [row for row, mass in zip(asked, above, strict=True) if mass >= top_ps[row]]


def _draw_sorted(probabilities: torch.Tensor, top_p: float, draw: random.Random) -> int:
    values, tokens = probabilities.sort(descending=True, stable=True)
    cumulative = values.cumsum(-1)
    size = int((cumulative - values < top_p).sum())
    share = torch.tensor([draw.random()], device=values.device) * cumulative[size - 1]
    at = int(torch.searchsorted(cumulative[:size], share, right=True).clamp_(max=size - 1))
    return int(tokens[at])


def _integers(tokens: torch.Tensor) -> list[int]:
    values: list[int] = tokens.tolist()
    return values
