"""Where the problems of a run came from that its configuration does not name: noted in its store, for what reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from magicore.store.run_store import RunStore
from magicore.types import Problem

_STATE = "origin"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A file or data set that was given from Python; or questions by id, and the options of those that have any."""

    data: str | None = None
    questions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Origin:
        """What is kept of problems that were given from Python."""
        given = list(problems)
        return cls(
            questions={problem.id: problem.question for problem in given},
            options={problem.id: problem.options for problem in given if problem.options is not None},
        )


def joined(origins: Sequence[Origin]) -> Origin:
    """Where the problems of a run came from whose shards these are of."""
    return Origin(
        data=next((origin.data for origin in origins if origin.data is not None), None),
        questions={name: text for origin in origins for name, text in origin.questions.items()},
        options={name: texts for origin in origins for name, texts in origin.options.items()},
    )


def note_origin(store: RunStore, origin: Origin) -> None:
    """Keep it with the run."""
    store.put_state(_STATE, asdict(origin))


def noted_origin(store: RunStore) -> Origin:
    """What was kept; an empty one if nothing was."""
    return Origin(**(store.get_state(_STATE) or {}))
