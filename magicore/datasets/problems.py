"""From the objects of a file to problems: fields renamed, ids checked, kinds inferred, golds read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from magicore.answers.kinds import KINDS, Kind
from magicore.answers.number import parse_number
from magicore.datasets.gold import gold_of
from magicore.datasets.infer import infer_kind
from magicore.datasets.options import LETTERS, Options, options_from_field, options_in_question
from magicore.errors import InputError, UnknownNameError
from magicore.store.json_lines import Record, json_type
from magicore.types import Problem

FIELDS: Final = ("id", "question", "answer", "kind", "options")

_USUAL_NAMES: Final = {
    "question": ("problem", "query", "prompt", "input", "text", "instruction", "body"),
    "answer": ("solution", "gold", "target", "label", "final_answer", "expected_answer", "output"),
}
_YES_NO: Final = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}


def problems_from(
    records: Iterable[Record], *, kind: str | None = None, fields: Mapping[str, str] | None = None
) -> Iterator[Problem]:
    """Read problems one by one, in order. An id that is missing in every record is the record's number, from 0.

    Args:
        records: The objects and where they stand.
        kind: The kind of all problems, in place of what the records say.
        fields: Our field name -> the file's; ``{"question": "problem"}``.

    Raises:
        InputError: A record cannot be read as a problem, an id is missing where others have one, or is there twice.
    """
    renamed = checked_fields(fields)
    forced = None if kind is None else checked_kind(kind, "the kind asked for")
    seen: dict[str, str] = {}
    has_ids: bool | None = None
    for number, record in enumerate(records):
        row = _renamed(record, renamed)
        given = _read_id(row, record.where)
        if has_ids is None:
            has_ids = given is not None
        if has_ids != (given is not None):
            what = "an `id` is missing here" if has_ids else "an `id` is given here, the problems before have none"
            raise InputError(f"{record.where}: {what}; give every problem an `id`, or none")
        name = str(number) if given is None else given
        if name in seen:
            raise InputError(f"{record.where}: the id {name!r} was used before ({seen[name]}); ids are unique")
        if has_ids:
            seen[name] = record.where
        yield read_problem(row, record.where, name, kind=forced)


def read_problem(row: Mapping[str, Any], where: str, name: str, *, kind: Kind | None = None) -> Problem:
    """One problem from one object whose fields have our names; ``kind`` wins over the object's own.

    Raises:
        InputError: The question is missing or no text, or answer, kind or options cannot be read.
    """
    question = _read_question(row, where)
    said = kind or _read_kind(row, where)
    answer = _read_answer(row.get("answer"), where)
    gold = None if answer is None else _worked_out(answer, where)
    options = _read_options(row, where)
    if options is None and said in (None, "choice"):
        options = options_in_question(question)
        if said is None and options is not None and gold is not None and options.letter(gold) is None:
            options = None
    if said is None:
        said = (
            "yesno"
            if isinstance(answer, bool)
            else infer_kind(question, gold, None if options is None else options.texts)
        )
    extra = {key: value for key, value in row.items() if key not in FIELDS}
    if isinstance(answer, str) and gold != answer.strip():
        extra.setdefault("solution", answer)
    return Problem(
        id=name,
        question=question,
        kind=said,
        answer=None if gold is None else _checked_gold(gold, answer, said, options, row, where),
        options=None if options is None else options.texts,
        extra=extra,
    )


def problem_row(problem: Problem) -> dict[str, Any]:
    """The problem as an object of a problems file; unknown keys that came in go out again."""
    row: dict[str, Any] = {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "kind": problem.kind,
        "options": None if problem.options is None else list(problem.options),
    }
    return row | {key: value for key, value in problem.extra.items() if key not in row}


def kinds_shown(problems: Iterable[Problem]) -> str:
    """How many problems there are of each kind, in words: ``24 problems: 20 number, 4 choice``."""
    counts = Counter(problem.kind for problem in problems)
    total = sum(counts.values())
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    return f"{total:,} problem{'' if total == 1 else 's'}: {listed or 'none'}"


def checked_fields(fields: Mapping[str, str] | None) -> dict[str, str]:
    """The renaming, refused where it names a field that problems do not have.

    Raises:
        InputError: An unknown field name.
    """
    for ours in fields or {}:
        if ours not in FIELDS:
            raise InputError(f"--field {ours}=...: problems have the fields {', '.join(FIELDS)}")
    return dict(fields or {})


def checked_kind(kind: object, where: str) -> Kind:
    """The kind of that name.

    Raises:
        UnknownNameError: There is none; the sentence lists all and suggests a near one.
    """
    for known in KINDS:
        if kind == known:
            return known
    near = get_close_matches(str(kind).lower(), KINDS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownNameError(f"{where}: unknown kind {kind!r}; kinds are {', '.join(KINDS)}{hint}")


def _renamed(record: Record, fields: Mapping[str, str]) -> dict[str, Any]:
    """The object under our field names. A renamed field takes the place of one that had our name already."""
    if not fields:
        return record.row
    for ours, theirs in fields.items():
        if theirs not in record.row:
            raise InputError(
                f"{record.where}: no field {theirs!r} to read as `{ours}`; it has: {', '.join(map(str, record.row))}"
            )
    taken = set(fields.values())
    kept = {key: value for key, value in record.row.items() if key not in taken and key not in fields}
    return {ours: record.row[theirs] for ours, theirs in fields.items()} | kept


def _read_id(row: Mapping[str, Any], where: str) -> str | None:
    value = row.get("id")
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: `id` is a text or a whole number, this is {json_type(value)}")
    return str(value)


def _read_question(row: Mapping[str, Any], where: str) -> str:
    if "question" not in row:
        raise InputError(f"{where}: no `question` field; it has: {', '.join(map(str, row)) or 'nothing'}. {_hint(row)}")
    value = row["question"]
    if not isinstance(value, str):
        raise InputError(f"{where}: `question` is a text, this is {json_type(value)}")
    if not value.strip():
        raise InputError(f"{where}: `question` is empty")
    return value


def _hint(row: Mapping[str, Any]) -> str:
    lower = {str(key).lower(): str(key) for key in row}
    found: dict[str, str] = {}
    for ours, usual in _USUAL_NAMES.items():
        if ours in row:
            continue
        near = [name for name in (ours, *usual) if name in lower] or get_close_matches(ours, lower, n=1)
        if near:
            found[ours] = lower[near[0]]
    if "question" not in found:
        return "Say which field is the question with --field question=NAME"
    return "Try " + " ".join(f"--field {ours}={theirs}" for ours, theirs in found.items())


def _read_kind(row: Mapping[str, Any], where: str) -> Kind | None:
    value = row.get("kind")
    return None if value is None or value == "" else checked_kind(value, where)


def _read_answer(value: Any, where: str) -> str | int | float | bool | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str | int | float | bool):
        raise InputError(f"{where}: `answer` is a text or a number, this is {json_type(value)}")
    return value


def _worked_out(answer: str | float | bool, where: str) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if not isinstance(answer, str):
        return repr(answer)
    gold = gold_of(answer)
    if gold is None:
        raise InputError(f"{where}: `answer` holds nothing after its last #### or in its last \\boxed{{}}")
    return gold


def _read_options(row: Mapping[str, Any], where: str) -> Options | None:
    value = row.get("options")
    if value is None or value in ("", [], {}):
        return None
    options = options_from_field(value)
    if isinstance(options, str):
        raise InputError(f"{where}: {options}")
    return options


def _checked_gold(
    gold: str, answer: object, kind: Kind, options: Options | None, row: Mapping[str, Any], where: str
) -> str:
    """The gold in the form its kind is compared in; refused where the kind can never equal it."""
    if kind == "choice" and options is not None:
        if isinstance(answer, int) and not isinstance(answer, bool) and not options.numeric:
            return _letter_at(answer, options, where)
        letter = options.letter(gold)
        if letter is None and row.get("options") is not None:
            last = LETTERS[len(options.texts) - 1]
            raise InputError(f"{where}: `answer` {gold!r} is neither a letter from A to {last} nor one of the options")
        return letter or gold
    if kind == "number" and parse_number(gold) is None:
        raise InputError(f"{where}: the kind is number and `answer` {gold!r} is none; give another kind or number")
    if kind == "yesno":
        word = _YES_NO.get(gold.strip(" .").lower())
        if word is None:
            raise InputError(f"{where}: the kind is yesno and `answer` {gold!r} is neither yes nor no")
        return word
    return gold


def _letter_at(index: int, options: Options, where: str) -> str:
    """A whole number beside options that are texts counts them from 0, unless it reads as another option's text."""
    counted = LETTERS[index] if 0 <= index < len(options.texts) else None
    written = options.letter(str(index))
    if counted is not None and written in (None, counted):
        return counted
    if counted is None and written is not None:
        return written
    reason = "could be a position or an option's text" if written is not None else "is no position among the options"
    raise InputError(f"{where}: `answer` {index} {reason}; write the letter instead")
