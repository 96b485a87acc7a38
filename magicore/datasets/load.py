"""Problems from any source: a file, the packaged demonstration, the Hub, a generated task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path

from magicore.datasets.hub import hub_records
from magicore.datasets.problems import problems_from
from magicore.datasets.readers import file_records
from magicore.datasets.tasks import task_records
from magicore.errors import InputError
from magicore.store.json_lines import Record
from magicore.types import Problem


def iter_problems(
    source: str,
    *,
    kind: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[Problem]:
    """Read problems one by one; JSON Lines and Parquet are never held in memory as a whole.

    Args:
        source: A file (.jsonl, .json, .csv, .tsv, .parquet), ``demo`` (24 problems that come with the package),
            ``hf:NAME:CONFIG:SPLIT`` (the Hub) or ``gen:NAME:N:SEED`` (``sums``, ``word-problems``, ``mixed``, a task of
            reasoning-gym) or ``gen:NAME:N:SEED:SPLIT`` (``stories``, ``clock``, ``units``, ``prices``; train or test).
        kind: The kind of all problems, in place of the file's or the inferred one.
        fields: Our field name -> the file's, for ``id``, ``question``, ``answer``, ``kind`` and ``options``.
        limit: At most so many; ``None`` for all.
        offset: So many are left out first. A row number that stands for an id counts them.

    Raises:
        InputError: The source, or a record of it, cannot be read; also where nothing is left after ``offset``.
        MissingExtraError: The source needs a package that is not installed.
    """
    if limit is not None and limit < 1:
        raise InputError(f"the limit is at least 1, not {limit}")
    if offset < 0:
        raise InputError(f"the offset is at least 0, not {offset}")
    problems = problems_from(source_records(source), kind=kind, fields=fields)
    chosen = islice(problems, offset, None if limit is None else offset + limit)
    found = False
    for problem in chosen:
        found = True
        yield problem
    if not found:
        raise InputError(f"{source}: no problem is left after leaving out {offset:,}")


def load_problems(
    source: str,
    *,
    kind: str | None = None,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[Problem]:
    """All problems of :func:`iter_problems`, which explains the arguments and errors."""
    return list(iter_problems(source, kind=kind, fields=fields, limit=limit, offset=offset))


def source_records(source: str) -> Iterator[Record]:
    """The objects of any source, as :func:`iter_problems` names it, before they are read as problems."""
    if source == "demo":
        with as_file(files("magicore.data").joinpath("demo.jsonl")) as path:
            yield from file_records(path)
    elif source.startswith("hf:"):
        yield from hub_records(source)
    elif source.startswith("gen:"):
        yield from task_records(source)
    else:
        yield from file_records(Path(source).expanduser())
