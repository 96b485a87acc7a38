"""Extraction on gathered cases: real responses read by people, public test suites, and texts made to hang."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from magicore.answers import equivalent, extract
from magicore.answers.kinds import Kind
from magicore.answers.number import parse_number

KINDS: dict[str, Kind] = {"number": "number", "letter": "choice", "yesno": "yesno"}
SAFE_NAMES = {"__builtins__": {}, "chr": chr, "str": str, "range": range}


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    for line in (folder / "cases" / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def reads_as(value: str | None, human: str | float | None, kind: Kind) -> bool:
    """Whether a value is what a person read; people give numbers as floats."""
    if value is None or human is None:
        return value is None and human is None
    if kind == "number":
        mine, theirs = parse_number(value), parse_number(str(human))
        assert mine is not None and theirs is not None
        return abs(mine.value - theirs.value) <= abs(theirs.value) * Fraction(1, 10**12)
    return value.casefold() == str(human).casefold()


def test_real_responses_are_read_as_people_read_them(shared_data: Path) -> None:
    cases = [case for case in rows(shared_data, "answers.jsonl") if case["type"] in KINDS]
    misses = [
        case["case"]
        for case in cases
        if not reads_as(extract(case["text"], KINDS[case["type"]]).value, case["human_value"], KINDS[case["type"]])
    ]
    assert len(cases) >= 35 and misses == []


def test_public_extraction_cases(shared_data: Path) -> None:
    cases = [case for case in rows(shared_data, "equivalence.jsonl") if case["type"] == "extract"]
    misses = []
    for case in cases:
        found = extract(case["text"], case["kind"], options=case.get("options"))
        if found.value is None or case["value"] is None:
            right = found.value is None and case["value"] is None
        else:
            right = equivalent(found.value, case["value"], case["kind"])
        if not right:
            misses.append(case["id"])
    assert len(cases) >= 100 and misses == []


def test_hostile_texts_give_what_is_expected(shared_data: Path) -> None:
    cases = [case for case in rows(shared_data, "hostile.jsonl") if case["target"] == "extract"]
    misses = []
    for case in cases:
        text = eval(case["gen_text"], dict(SAFE_NAMES))
        found = extract(text, case["kind"])
        if case["expect"]["value"] not in ("any", found.value):
            misses.append((case["id"], found.value))
    assert cases and misses == []
