"""Answer options of a multiple-choice question: read from a field or from the question's text."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

LETTERS: Final = string.ascii_uppercase

_CUE = re.compile(r"\b(?:options|choices)\b|\bchoose\b|\bwhich of the following\b", re.IGNORECASE)
_ANNOUNCED = re.compile(r"\b(?:options|choices)(?:\s+are)?\s*:", re.IGNORECASE)
_UPPER = (
    re.compile(r"\(([A-Z])\)"),
    re.compile(r"(?<![^\s:,;])([A-Z])\)"),
    re.compile(r"^[ \t]*([A-Z])[.:](?=\s)", re.MULTILINE),
)
_LOWER = (re.compile(r"\(([a-z])\)"), re.compile(r"(?<![^\s:,;])([a-z])\)"))
_BRACKET = re.compile(r"[()\[\]]")
_MARKER = re.compile(r"\s*\(?([A-Za-z])[).:]\s*")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options' texts in order, and their labels where they are not A, B, C ..."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    numeric: bool = False

    def letter(self, gold: str) -> str | None:
        """The letter that a gold answer means: a letter, a label, or the text of exactly one option."""
        bare = gold.strip().strip("()[].: \t")
        allowed = LETTERS[: len(self.texts)]
        if self.labels is not None and bare in self.labels:
            return LETTERS[self.labels.index(bare)]
        if len(bare) == 1 and bare.upper() in allowed:
            return bare.upper()
        same = [index for index, text in enumerate(self.texts) if _folded(text) == _folded(gold)]
        return LETTERS[same[0]] if len(same) == 1 else None


def options_from_field(value: Any) -> Options | str:
    """Read an ``options`` field; a text in place of the options says what is wrong with it.

    Accepted: a list of texts or numbers (each may carry its own ``A)``), an object from letters to texts, an object
    of two lists ``text`` and ``label``, a text that holds one of these as JSON, and a text such as ``(A) 2 (B) 4``.
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Mapping):
        if isinstance(value.get("text"), list) and isinstance(value.get("label"), list):
            if len(value["text"]) != len(value["label"]):
                return "`options` has not one label for each text"
            return _from_list(value["text"], [str(label) for label in value["label"]])
        return _from_list(list(value.values()), [str(key).strip() for key in value])
    if isinstance(value, list | tuple):
        return _from_list(value, None)
    return "`options` is a list of texts, or an object from letters to texts"


def with_options(question: str, options: Sequence[str] | None) -> str:
    """A question as models are asked it: its options under it, each after its letter, unless it lists as many itself.

    >>> print(with_options("Which is prime?", ["4", "7"]))
    Which is prime?
    (A) 4
    (B) 7
    >>> with_options("Which is prime? Options: A) 4 B) 7", ["4", "7"])
    'Which is prime? Options: A) 4 B) 7'
    """
    if not options:
        return question
    listed = options_in_question(question)
    if listed is not None and len(listed.texts) == len(options):
        return question
    return "\n".join([question.rstrip(), *(f"({a}) {text}" for a, text in zip(LETTERS, options, strict=False))])


def options_in_question(question: str) -> Options | None:
    """The options that a question lists as ``(A)2 (B)4``, ``A)5 B)7`` or one a line as ``A. five``; ``None`` without.

    Two options are enough where the text speaks of options or choices, else three. Lower-case letters are read only
    there, since ``(a)`` and ``(b)`` more often number the parts of a question.
    """
    announced = list(_ANNOUNCED.finditer(question))
    if announced:
        texts = _longest(question[announced[-1].end() :], (*_UPPER, *_LOWER), least=2)
        if texts is not None:
            return Options(texts=texts)
    cued = _CUE.search(question) is not None
    texts = _longest(question, (*_UPPER, *_LOWER) if cued else _UPPER, least=2 if cued else 3)
    return None if texts is None else Options(texts=texts)


def _from_text(value: str) -> Options | str:
    if value.lstrip()[:1] in ("[", "{"):
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, list | dict):
            return options_from_field(inner)
    texts = _longest(value, (*_UPPER, *_LOWER), least=2)
    if texts is not None:
        return Options(texts=texts)
    return '`options` is a text that lists no options; write a JSON list such as ["2", "4"]'


def _from_list(values: Sequence[Any], labels: list[str] | None) -> Options | str:
    if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in values):
        return "`options` holds something else than texts and numbers"
    if not 2 <= len(values) <= len(LETTERS):
        return f"`options` holds {len(values)}; from 2 to {len(LETTERS)} are possible"
    if labels is not None and len(set(labels)) != len(labels):
        return "`options` has the same label twice"
    texts = [str(item).strip() for item in values]
    if labels is None:
        texts = _without_markers(texts)
    elif [label.upper() for label in labels] == list(LETTERS[: len(labels)]):
        labels = None
    return Options(
        texts=tuple(texts),
        labels=None if labels is None else tuple(labels),
        numeric=all(isinstance(item, int | float) for item in values),
    )


def _without_markers(texts: list[str]) -> list[str]:
    """Drop ``A)``, ``B)`` ... where every option starts with its own letter."""
    marks = [_MARKER.match(text) for text in texts]
    letters = [mark[1].upper() for mark in marks if mark is not None]
    if letters != list(LETTERS[: len(texts)]):
        return texts
    return [text[mark.end() :] for text, mark in zip(texts, marks, strict=True) if mark is not None]


def _longest(text: str, styles: Sequence[re.Pattern[str]], *, least: int) -> tuple[str, ...] | None:
    found = [texts for style in styles if (texts := _listed(text, style)) is not None and len(texts) >= least]
    return max(found, key=len, default=None)


def _listed(text: str, style: re.Pattern[str]) -> tuple[str, ...] | None:
    """The texts after the longest run of markers A, B, C ... of one style (the last such run).

    ``None`` where an option would be empty, or where a later letter stands alone, so that one in between was missed.
    """
    inner = _closing(text)
    marks = [mark for mark in style.finditer(text) if mark[0][0] == "(" or mark.end() - 1 not in inner]
    letters = [LETTERS.index(mark[1].upper()) for mark in marks]
    following: list[int | None] = [None] * len(marks)
    length = [1] * len(marks)
    nearest: dict[int, int] = {}
    for index in range(len(marks) - 1, -1, -1):
        after = nearest.get(letters[index] + 1)
        if after is not None:
            following[index], length[index] = after, length[after] + 1
        nearest[letters[index]] = index
    starts = [index for index, letter in enumerate(letters) if letter == 0]
    if not starts:
        return None
    run: list[re.Match[str]] = []
    at: int | None = max(starts, key=lambda index: (length[index], index))
    while at is not None:
        run.append(marks[at])
        at = following[at]
    later = (letter for mark, letter in zip(marks, letters, strict=True) if mark.start() > run[-1].start())
    if any(letter >= len(run) for letter in later):  # a marker in between is missing
        return None
    ends = [mark.start() for mark in run[1:]] + [_line_end(text, run[-1].end())]
    texts = tuple(text[mark.end() : end].strip().rstrip(",;").rstrip() for mark, end in zip(run, ends, strict=True))
    return texts if len(texts) > 1 and all(texts) else None


def _closing(text: str) -> set[int]:
    """Where a bracket closes one opened before; ``]`` may close ``(`` and the reverse, as in half-open intervals."""
    depth = 0
    found = set()
    for match in _BRACKET.finditer(text):
        if match[0] in "([":
            depth += 1
        elif depth:
            depth -= 1
            found.add(match.start())
    return found


def _line_end(text: str, start: int) -> int:
    begin = start + len(text[start:]) - len(text[start:].lstrip())
    end = text.find("\n", begin)
    return len(text) if end < 0 else end


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
