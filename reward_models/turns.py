"""Models that cannot be loaded together take turns: one holds the floor, the others wait until it has nothing to do.

Many problems are worked on at once, so each turn is a wave: all that waits for a model is done before the next model
is loaded, and what came of it is what the next one works on. A turn ends when nothing has come for a short while, and
after ``longest_s`` in any case: work that arrives later waits for the model's next turn, so that a queue that never
empties keeps nobody from the floor.

Knows nothing of weights: ``enter`` and ``leave`` load and unload.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

LINGER_S = 0.05
LONGEST_S = 60.0


class Turns:
    """The floor that models share; see :meth:`seat`.

    Attributes:
        switches: How often a model has made way for another.

    Args:
        linger_s: How long a model that has nothing to do keeps the floor while another waits, in seconds: what its
            replies lead to may be on its way to it.
        longest_s: How long a turn lasts at the most once another model waits, in seconds. Work under way is finished.
    """

    def __init__(self, *, linger_s: float = LINGER_S, longest_s: float = LONGEST_S) -> None:
        self.switches = 0
        self._linger_s = linger_s
        self._longest_s = longest_s
        self._changed = threading.Condition()
        self._holder: Seat | None = None
        self._busy = False
        self._idle_since = 0.0
        self._waiting: deque[Seat] = deque()
        self._waited_since: float | None = None
        self._closed = False

    def seat(self, *, enter: Callable[[], None], leave: Callable[[], None]) -> Seat:
        """A place for one model.

        Args:
            enter: Loads the model; called, in the thread that takes the floor, when another held it or nobody.
            leave: Unloads it; called when it has nothing to do and another takes the floor, in that one's thread.
        """
        return Seat(self, enter, leave)

    @property
    def waiting(self) -> int:
        """How many models wait for the floor."""
        with self._changed:
            return len(self._waiting)

    def close(self) -> None:
        """Send home all that wait, now and later, and unload the model that has nothing to do."""
        with self._changed:
            self._closed = True
            holder = self._holder
            if holder is not None and not self._busy:
                self._holder = None
                holder.unload()
            self._changed.notify_all()

    def _take(self, seat: Seat) -> bool:
        with self._changed:
            if self._holder is seat and (self._busy or not self._overdue()):
                self._busy = True
                return not (self._closed or seat.closed)
            self._waiting.append(seat)
            if self._waited_since is None:
                self._waited_since = time.monotonic()
            self._changed.notify_all()
            while not (self._closed or seat.closed):
                remaining = self._until_free(seat) if self._waiting[0] is seat else None
                if remaining is not None and remaining <= 0:
                    self._waiting.popleft()
                    self._admit(seat)
                    return True
                self._changed.wait(remaining)
            self._waiting.remove(seat)
            self._changed.notify_all()
            return False

    def _until_free(self, seat: Seat) -> float | None:
        """Seconds until the floor is free for a seat; ``None`` while nobody knows."""
        if self._holder is None or (self._holder is seat and not self._busy):
            return 0.0
        if self._busy:
            return None
        return 0.0 if self._overdue() else self._idle_since + self._linger_s - time.monotonic()

    def _admit(self, seat: Seat) -> None:
        """Let the holder leave and the seat's model enter."""
        former, self._holder = self._holder, None
        self._waited_since = time.monotonic() if self._waiting else None
        try:
            if former is not seat:
                if former is not None:
                    self.switches += 1
                    former.unload()
                seat.load()
        finally:
            self._changed.notify_all()
        self._holder, self._busy = seat, True

    def _overdue(self) -> bool:
        """Whether others have waited for as long as a turn may last."""
        since = self._waited_since
        return bool(self._waiting) and since is not None and time.monotonic() - since >= self._longest_s

    def _rest(self, seat: Seat) -> None:
        with self._changed:
            if self._holder is seat and self._busy:
                self._busy, self._idle_since = False, time.monotonic()
                self._changed.notify_all()

    def _give_up(self, seat: Seat) -> None:
        with self._changed:
            seat.closed = True
            if self._holder is seat:
                self._holder, self._busy = None, False
            self._changed.notify_all()


class Seat:
    """One model's place; its methods are for the one thread that works for the model, :meth:`close` for any.

    Attributes:
        load, unload: As given to :meth:`Turns.seat`.
        closed: Whether it is given up.
    """

    def __init__(self, turns: Turns, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self.load = enter
        self.unload = leave
        self.closed = False
        self._turns = turns

    def take(self) -> bool:
        """Wait for the floor, and have the model loaded; at once where it is held already. ``False``: the seat or the
        whole is closed, and there is nothing to wait for. What loading raises is raised, and the floor is free again.
        """
        return self._turns._take(self)

    def rest(self) -> None:
        """There is nothing to do for now: whoever waits may enter. Until somebody does the model stays loaded."""
        self._turns._rest(self)

    @property
    def overdue(self) -> bool:
        """Whether the turn has lasted long enough: finish what is under way, begin nothing, and rest."""
        return self._turns._overdue()

    def close(self) -> None:
        """Give the place up, and the floor with it. The model is not unloaded: that is its owner's."""
        self._turns._give_up(self)
