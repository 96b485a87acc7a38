"""Counts over recorded responses, by a careful reading or by the strict published ones. Pure: no model is called.

A file holds one question a line (``qid``, ``question``, ``gold``, ``type``) with what models answered: independent
``responses``; ``agents`` with their rounds of a debate, of self-correction, or of peer review; ``response`` and
``reflection``; or ``author``, ``reviews``, ``meta`` and ``rebuttal``. Which of them is told from the fields.

Careful: the value that a text states as its final answer; votes drop texts that state none and compare values.
Published: the parsers of the two papers' repositories (:mod:`magicore.answers.published`), faults included. Under both,
the first seen wins a tie.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from magicore.answers import published
from magicore.answers.extract import extract
from magicore.answers.kinds import Kind
from magicore.answers.number import parse_number
from magicore.answers.review_fields import read_confidence, read_decision
from magicore.errors import InputError

ReplayReading = Literal["careful", "published"]
"""How answers are read."""

Rules = Literal["mars", "peer-review"]
"""Whose parser (published) and whose tolerance for numbers (careful)."""

Value = str | float | Fraction | None
"""An answer as one of the readings gives it; None where it reads none."""

_PREFIXES: Final[Mapping[str, Rules]] = {"mars_": "mars", "mapr_": "peer-review"}
KINDS_OF: Final[Mapping[str, Kind]] = {"number": "number", "letter": "choice", "yesno": "yesno"}
_MARS_TOLERANCE: Final = Fraction(1, 100)
_RELATIVE_TOLERANCE: Final = Fraction(1, 10**6)
_CONFIDENCE_SCALE: Final = (1.0, 5.0)
_CRITIQUE: Final = "critique"
_AGENT_PHASES: Final[Mapping[int, tuple[str, ...]]] = {2: ("round0", "round1"), 3: ("first", _CRITIQUE, "final")}


@dataclass(frozen=True, kw_only=True)
class _Scheme:
    """One reading under one set of rules.

    Attributes:
        read: The answer in a text, given its question's row.
        right: Whether an answer is the row's gold answer.
        vote: The answer that several elect.
    """

    reading: ReplayReading
    rules: Rules
    read: Callable[[str, Mapping[str, Any]], Value]
    right: Callable[[Value, Mapping[str, Any]], bool]
    vote: Callable[[Sequence[Value]], Value]


def replay(path: str | Path, *, reading: ReplayReading = "careful", rules: Rules | None = None) -> dict[str, Any]:
    """Reads a recorded file and counts.

    Args:
        path: A `.jsonl` file of recorded responses.
        reading: "careful", or "published" for the papers' own parsers.
        rules: Whose parser and tolerance; by default told from the file's prefix (`mars_`, `mapr_`).

    Returns:
        Counts of questions answered right. For independent responses `each` (per position) and `vote`, under the MARS
        rules also `vote_first_k` for k = 1, 2, ...; for debates, self-correction and peer review the same two for each
        phase; for a reflection `first`, `final`, `rectified`, `broken`; for a review `author`, `final`, `rectified`,
        `broken`, `meta_wrong` and, published, `vote`, careful, `meta_unstated` and tallies of the reviews' decisions
        and confidences.

    Raises:
        InputError: The file cannot be read, is no recorded file, or its rules are not known.
    """
    file = Path(path)
    try:
        return count(read_rows(file), reading=reading, rules=rules or rules_of(file))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InputError(f"{file}: a line does not fit the schema of recorded responses ({error!r})") from error


def count(rows: Sequence[Mapping[str, Any]], *, reading: ReplayReading, rules: Rules) -> dict[str, Any]:
    """Counts over the lines of a recorded file; as :func:`replay`.

    Raises:
        InputError: The lines hold no recorded answers, or the reading or the rules are not known.
        KeyError, TypeError, IndexError, ValueError: A line does not fit the schema.
    """
    if reading not in get_args(ReplayReading):
        raise InputError(f"reading {reading!r} is unknown: use careful or published")
    scheme = _scheme(reading, rules)
    counters = {"responses": _chains, "agents": _phases, "reflection": _reflection, "author": _review}
    for field, counted in counters.items():
        if field in rows[0]:
            return counted(rows, scheme)
    raise InputError("line 1 has none of responses, agents, reflection or author, so it holds no recorded answers")


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The lines of a recorded file.

    Raises:
        InputError: It cannot be read, or a line has no ``gold`` or no known ``type``.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {error}") from error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{file}, line {number}: not JSON ({error.msg})") from error
        if not isinstance(row, dict) or row.get("type") not in KINDS_OF or "gold" not in row:
            raise InputError(f"{file}, line {number}: needs `gold`, and `type` as one of {', '.join(KINDS_OF)}")
        rows.append(row)
    if not rows:
        raise InputError(f"{file} holds no line")
    return rows


def rules_of(file: Path) -> Rules:
    """Whose rules apply to a file, by the prefix of its name.

    Raises:
        InputError: The name does not tell.
    """
    for prefix, rules in _PREFIXES.items():
        if file.name.startswith(prefix):
            return rules
    raise InputError(f"whose rules apply to {file.name} is not told by its name: pass --rules mars or peer-review")


def _scheme(reading: ReplayReading, rules: Rules) -> _Scheme:
    if rules not in get_args(Rules):
        raise InputError(f"rules {rules!r} are unknown: use mars or peer-review")
    if reading == "careful":
        same = _within_mars if rules == "mars" else _within_peer_review
        return _Scheme(
            reading=reading,
            rules=rules,
            read=_careful,
            right=lambda value, row: value is not None and same(value, _gold(row)),
            vote=lambda values: _careful_vote(values, same),
        )
    if rules == "mars":
        return _Scheme(
            reading=reading,
            rules=rules,
            read=lambda text, row: published.mars_answer(text, row["type"]),
            right=lambda value, row: published.mars_correct(cast(float | str | None, value), row["gold"]),
            vote=lambda values: published.mars_vote(cast(Sequence[float | str | None], values)),
        )
    return _Scheme(
        reading=reading,
        rules=rules,
        read=lambda text, row: published.peer_review_answer(text, row["type"]),
        right=lambda value, row: published.peer_review_correct(cast(str | None, value), row["gold"]),
        vote=lambda values: published.peer_review_vote(cast(Sequence[str | None], values)),
    )


def _careful(text: str, row: Mapping[str, Any]) -> Value:
    kind = KINDS_OF[row["type"]]
    options = option_letters(row["question"]) if kind == "choice" else None
    return extract(text, kind, options=options).value


def option_letters(question: str) -> dict[str, str] | None:
    """The letters that a question lists as its options ("A) ... B) ..."), without texts; None if it lists none."""
    listed = set(re.findall(r"\b([A-Z])\)", question))
    letters = [letter for index, letter in enumerate(sorted(listed)) if ord(letter) == ord("A") + index]
    return dict.fromkeys(letters, "") if len(letters) > 1 else None


def _gold(row: Mapping[str, Any]) -> str:
    return str(row["gold"])


def _candidates(value: str) -> list[Fraction]:
    """A number's values; a percentage may also be meant as the number before the sign."""
    number = parse_number(value)
    if number is None:
        return []
    return [number.value, number.value * 100] if number.percent else [number.value]


def _same(left: Value, right: Value, near: Callable[[Fraction, Fraction], bool]) -> bool:
    lefts, rights = _candidates(str(left)), _candidates(str(right))
    if lefts and rights:
        return any(near(a, b) for a in lefts for b in rights)
    return str(left).casefold() == str(right).casefold()


def _within_mars(left: Value, right: Value) -> bool:
    return _same(left, right, lambda a, b: abs(a - b) <= _MARS_TOLERANCE)


def _within_peer_review(left: Value, right: Value) -> bool:
    return _same(left, right, lambda a, b: abs(a - b) <= _RELATIVE_TOLERANCE * max(abs(a), abs(b)))


def _careful_vote(values: Sequence[Value], same: Callable[[Value, Value], bool]) -> Value:
    """The value most texts state; texts that state none have no vote."""
    counts: list[tuple[Value, int]] = []
    for value in values:
        if value is None:
            continue
        at = next((index for index, (seen, _) in enumerate(counts) if same(seen, value)), None)
        if at is None:
            counts.append((value, 1))
        else:
            counts[at] = (counts[at][0], counts[at][1] + 1)
    return max(counts, key=lambda entry: entry[1])[0] if counts else None


def _chains(rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> dict[str, Any]:
    answers = _answers([row["responses"] for row in rows], rows, scheme)
    counts = _counted(answers, rows, scheme)
    if scheme.rules == "mars":
        sizes = range(1, len(answers[0]) + 1)
        counts["vote_first_k"] = [_voted([votes[:k] for votes in answers], rows, scheme) for k in sizes]
    return counts


def _phases(rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> dict[str, Any]:
    texts = [_agent_texts(row["agents"]) for row in rows]
    names = [name for name in texts[0] if name != _CRITIQUE or scheme.reading == "published"]
    return {name: _counted(_answers([each[name] for each in texts], rows, scheme), rows, scheme) for name in names}


def _answers(texts: Sequence[Sequence[str]], rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> list[list[Value]]:
    return [[scheme.read(text, row) for text in each] for each, row in zip(texts, rows, strict=True)]


def _agent_texts(agents: Sequence[Any]) -> dict[str, list[str]]:
    """The agents' texts by phase: a debate's two rounds, self-correction's three, or before and after peer review."""
    if isinstance(agents[0], Mapping):
        return {"first": [agent["answer"] for agent in agents], "revised": [agent["revision"] for agent in agents]}
    names = _AGENT_PHASES[len(agents[0])]
    return {name: [agent[index] for agent in agents] for index, name in enumerate(names)}


def _counted(answers: Sequence[Sequence[Value]], rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> dict[str, Any]:
    each = [
        sum(scheme.right(values[index], row) for values, row in zip(answers, rows, strict=True))
        for index in range(len(answers[0]))
    ]
    return {"each": each, "vote": _voted(answers, rows, scheme)}


def _voted(answers: Iterable[Sequence[Value]], rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> int:
    return sum(scheme.right(scheme.vote(values), row) for values, row in zip(answers, rows, strict=True))


def _before_and_after(
    first: Sequence[Value], final: Sequence[Value], rows: Sequence[Mapping[str, Any]], scheme: _Scheme
) -> tuple[int, int, int, int]:
    """Right before, right after, rectified, broken."""
    was = [scheme.right(value, row) for value, row in zip(first, rows, strict=True)]
    now = [scheme.right(value, row) for value, row in zip(final, rows, strict=True)]
    pairs = list(zip(was, now, strict=True))
    return sum(was), sum(now), pairs.count((False, True)), pairs.count((True, False))


def _reflection(rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> dict[str, Any]:
    first = [scheme.read(row["response"], row) for row in rows]
    final = [scheme.read(row["reflection"], row) for row in rows]
    return dict(
        zip(("first", "final", "rectified", "broken"), _before_and_after(first, final, rows, scheme), strict=True)
    )


def _review(rows: Sequence[Mapping[str, Any]], scheme: _Scheme) -> dict[str, Any]:
    author = [scheme.read(row["author"], row) for row in rows]
    final = [
        answer if row["rebuttal"] is None else scheme.read(row["rebuttal"], row)
        for answer, row in zip(author, rows, strict=True)
    ]
    names = ("author", "final", "rectified", "broken")
    counts: dict[str, Any] = dict(zip(names, _before_and_after(author, final, rows, scheme), strict=True))
    if scheme.reading == "published":
        counts["vote"] = _review_vote(author, final, rows, scheme)
        counts["meta_wrong"] = sum(published.mars_decision(row["meta"]).lower() == "wrong" for row in rows)
        return counts
    meta = Counter(read_decision(row["meta"]) for row in rows)
    reviews = [text for row in rows for text in row["reviews"]]
    confidences = [read_confidence(text, _CONFIDENCE_SCALE) for text in reviews]
    counts["meta_wrong"], counts["meta_unstated"] = meta["wrong"], meta[None]
    counts["review_decisions"] = dict(Counter(read_decision(text) or "unstated" for text in reviews))
    counts["review_confidence"] = dict(Counter("unstated" if c is None else f"{c:g}" for c in confidences))
    return counts


def _review_vote(
    author: Sequence[Value], final: Sequence[Value], rows: Sequence[Mapping[str, Any]], scheme: _Scheme
) -> int:
    """MARS's vote: the author's answer, its rebuttal or the same again, each review's and the meta-review's answer."""
    right = 0
    for first, last, row in zip(author, final, rows, strict=True):
        votes = [first, last, *(scheme.read(text, row) for text in (*row["reviews"], row["meta"]))]
        elected = scheme.vote(votes)
        right += scheme.right(last if elected is None else elected, row)
    return right
