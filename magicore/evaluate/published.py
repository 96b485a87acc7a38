"""What papers report, to be shown beside a user's own figures: always labelled as published, never mixed with them.

The figures are those of the papers' tables; prompts, readings of answers and samples differ from a run's here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

LABEL: Final = "published"
_ENDS: Final = re.compile(r"[^a-z0-9]+")
_SPLITS: Final = ("test", "train", "dev", "validation", "main", "all", "default", "jsonl", "json", "csv", "parquet")


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """One figure of a paper.

    Attributes:
        source: The paper.
        model, data: As the data file names them.
        method: As :mod:`magicore.methods.registry` names it.
        setting: Number of chains, rounds, or what was compared.
        accuracy: In [0, 1]; ``None`` where the paper gives a difference only.
        difference: Of two accuracies.
        tokens, seconds: For one question.
        note: What else has to be said.
    """

    source: str
    model: str
    data: str
    method: str
    setting: str
    accuracy: float | None = None
    difference: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    note: str = ""

    @property
    def row(self) -> dict[str, Any]:
        """As a row of a table, with its label."""
        names = ("source", "model", "data", "method", "setting", "accuracy", "difference", "tokens", "seconds", "note")
        return {"label": LABEL, **{name: getattr(self, name) for name in names}}


def published_figures() -> tuple[PublishedFigure, ...]:
    """Every figure of the data file."""
    book = _book()
    return tuple(
        PublishedFigure(**{**figure, "source": book["sources"][figure["source"]]}) for figure in book["figures"]
    )


def published_for(model: str, data: str | None) -> tuple[PublishedFigure, ...]:
    """The figures whose model and data are those of a run.

    Args:
        model: The run's model by name (``openai:gpt-4o-mini``, ``hf:meta-llama/Meta-Llama-3-8B-Instruct``).
        data: Its data: a file, ``hf:NAME:CONFIG:SPLIT``; ``None`` matches nothing.

    A model matches where its name, without provider, owner, address and revision, is one of the known spellings, with
    or without a date behind it; data where the file's or data set's name is. Nothing is guessed from parts of names.
    """
    book = _book()
    known_model = _known(model_names_of(model), book["models"])
    known_data = None if data is None else _known(data_names_of(data), book["data"])
    if known_model is None or known_data is None:
        return ()
    return tuple(one for one in published_figures() if (one.model, one.data) == (known_model, known_data))


def model_names_of(model: str) -> list[str]:
    """Spellings of a model's name: without provider, owner, address, revision, and a trailing date or number."""
    name = re.split(r"@(?=[a-z+]*https?://)", model.partition(":")[2] or model)[0]
    name = name.partition("#")[0].rstrip("/").rpartition("/")[2].lower()
    return [name, re.sub(r"-(\d{4}(-\d{2}-\d{2})?)$", "", name)]


def data_names_of(data: str) -> list[str]:
    """Spellings of a data set's name: its parts without splits and endings."""
    source = data.lower()
    parts = source.split(":")[1:] if source.startswith("hf:") else [source.replace("\\", "/").rpartition("/")[2]]
    names: list[str] = []
    for part in parts:
        name = part.rpartition("/")[2]
        words = [word for word in _ENDS.split(name) if word]
        while words and words[-1] in _SPLITS:
            words.pop()
        names += ["-".join(words), name]
    return [name for name in names if name]


def _known(names: list[str], spellings: Mapping[str, list[str]]) -> str | None:
    plain = {_plain(spelling): known for known, found in spellings.items() for spelling in found}
    return next((plain[_plain(name)] for name in names if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return _ENDS.sub("-", name.lower()).strip("-")


@cache
def _book() -> Mapping[str, Any]:
    text = files("magicore.data").joinpath("published.json").read_text(encoding="utf-8")
    book: Mapping[str, Any] = json.loads(text)
    return book
