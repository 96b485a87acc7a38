"""Where the problems of a run came from that its configuration does not name: noted in its store, for what reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from magicore.store.run_store import RunStore

_STATE = "origin"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A file or data set that was given from Python, or the questions by id that were."""

    data: str | None = None
    questions: Mapping[str, str] = field(default_factory=dict)


def note_origin(store: RunStore, origin: Origin) -> None:
    """Keep it with the run."""
    store.put_state(_STATE, asdict(origin))


def noted_origin(store: RunStore) -> Origin:
    """What was kept; an empty one if nothing was."""
    return Origin(**(store.get_state(_STATE) or {}))
