"""Which tokens are read when a solution is longer than the context: its beginning, or overlapping windows.

A window holds the question, as many earlier steps as half the room allows, and then new steps; a step is scored in the
first window that reaches it. Windows are cut at steps, so every window is an input as the model knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward_models.families.reading import Reading


@dataclass(frozen=True, kw_only=True)
class Window:
    """A reading, and for each of its raw scores the step it belongs to; ``None`` for a step scored before."""

    reading: Reading
    steps: tuple[int | None, ...]


def read_all(
    write: Callable[[Sequence[str]], Reading], texts: Sequence[str], *, context: int, windowed: bool
) -> list[Window]:
    """Readings that together score every step they can; a step that ends past the context is in none.

    Args:
        write: A family's format, the question filled in.
        texts: The steps' texts, none empty.
        context: The most tokens of one reading.
        windowed: Go on in further windows after the first.
    """
    whole = write(texts)
    if len(whole.ids) <= context:
        return [Window(reading=whole, steps=tuple(range(len(texts))))]
    windows = []
    fit = _fitting(whole, context)
    if fit:
        windows.append(Window(reading=_cut(whole, fit), steps=tuple(range(fit))))
    scored = fit
    while windowed and scored < len(texts):
        window = _next(write, texts, scored, context)
        if window is None:  # this step alone is too long; the next may not be
            scored += 1
            continue
        windows.append(window)
        scored += sum(step is not None for step in window.steps)
    return windows


def _next(write: Callable[[Sequence[str]], Reading], texts: Sequence[str], scored: int, context: int) -> Window | None:
    """The window that begins scoring at step ``scored``; ``None`` if that step alone is too long."""
    alone = write(texts[scored : scored + 1])
    if _fitting(alone, context) == 0:
        return None
    begin = scored
    while begin > 0:  # about as much of the past as fills half of what the step itself leaves
        longer = write(texts[begin - 1 : scored + 1])
        if len(longer.ids) > (context + len(alone.ids)) // 2:
            break
        begin -= 1
    reading = write(texts[begin : begin + _enough(texts, begin, context)])
    fit = _fitting(reading, context)
    steps = tuple(None if at < scored else at for at in range(begin, begin + fit))
    return Window(reading=_cut(reading, fit), steps=steps)


def _enough(texts: Sequence[str], begin: int, context: int) -> int:
    """How many steps surely fill a context: a token is seldom longer than sixteen characters."""
    characters = 0
    for count, text in enumerate(texts[begin:], start=1):
        characters += len(text)
        if characters > 16 * context:
            return count
    return len(texts) - begin


def _fitting(reading: Reading, context: int) -> int:
    """How many whole steps are read within the context."""
    counts = reading.counts or (1,) * len(reading.reads)
    at, fit = 0, 0
    for count in counts:
        at += count
        if reading.reads[at - 1] >= context:
            break
        fit += 1
    return fit


def _cut(reading: Reading, steps: int) -> Reading:
    """The first steps of a reading, and no token after the last position that is read."""
    counts = reading.counts[:steps]
    reads = reading.reads[: sum(counts) if counts else steps]
    return Reading(ids=reading.ids[: reads[-1] + 1], reads=reads, counts=counts)
