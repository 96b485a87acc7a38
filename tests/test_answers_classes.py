"""Answers grouped: a partition, whatever the order, that agrees with `equivalent`."""

from __future__ import annotations

import asyncio
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magicore.answers import aclasses, canonical_keys, classes, equivalent, partition

CAREFUL = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def groups(answers: list[str | None], found: list[int | None]) -> set[frozenset[str]]:
    """The classes as sets of texts."""
    members: dict[int, set[str]] = {}
    for text, number in zip(answers, found, strict=True):
        if text is not None and number is not None:
            members.setdefault(number, set()).add(text)
    return {frozenset(texts) for texts in members.values()}


def test_numbered_by_first_appearance_with_none_for_missing() -> None:
    answers = ["7", None, r"\frac{14}{2}", "8", "", "7.0", "x=8"]
    assert classes(answers, "math") == [0, None, 0, 1, None, 0, 1]
    assert classes([], "math") == []
    assert classes([None], "number") == [None]


def test_the_answers_of_the_paper() -> None:
    assert classes(["18", "18.00", "$18", r"\frac{36}{2}"], "number") == [0, 0, 0, 0]
    assert classes(["(C)", "C", "(B)"], "choice") == [0, 0, 1]


def test_a_bare_number_joins_the_one_class_that_has_it() -> None:
    assert classes(["5", "5 cm", "5"], "number") == [0, 0, 0]
    assert classes(["5", "5 cm", "6 m"], "number") == [0, 0, 1]


def test_a_bare_number_stands_alone_between_two_units() -> None:
    assert classes(["5", "5 cm", "5 m"], "number") == [0, 1, 2]
    assert classes(["5 m", "5", "5 cm"], "math") == [0, 1, 2]
    assert classes(["$5", "5 euros", "5", "5.0"], "number") == [0, 1, 2, 2]


def test_one_unit_written_in_two_ways_is_one_class() -> None:
    assert classes(["5 cm", "50 mm", "5"], "number") == [0, 0, 0]
    # Two bare numbers that would meet in one class stand apart: 5 is not 50.
    assert classes(["5 cm", "50 mm", "5", "50"], "number") == [0, 0, 1, 2]


def test_a_long_decimal_joins_what_it_rounds_to() -> None:
    assert classes(["1/3", "0.333333333333", "0.3333333333333333", "0.33"], "math") == [0, 0, 0, 1]
    assert classes(["0.333333333333", "0.3333333333333333"], "math") == [0, 0]
    assert classes([r"90^\circ", "1.4142135623730951", r"\sqrt{2}", "90"], "math") == [0, 1, 1, 0]


def test_unread_answers_are_classes_of_their_own_text() -> None:
    assert classes(["{", "}", "{", "9**9**9**9"], "math") == [0, 1, 0, 2]


def test_coroutines() -> None:
    assert asyncio.run(aclasses(["x+y", "y+x"], "math")) == [0, 0]


TEXTS = [
    "5", "5.0", r"\frac{10}{2}", "x=5", "2+3", "-5", "5 cm", "5 m", "50 mm", r"5\text{ cm}", "$5", r"5^\circ", "50",
    "0.333333333333", "1/3", "0.3333333333333333", r"\frac{2}{6}", r"\sqrt{2}", "1.4142135623730951", "1.41",
    "x+1", "1+x", "x", r"\frac{2x+2}{2}", "(1,2)", "1<x<2", "[1,2]", "(2,1)", r"\{1,2\}", "2,1", r"\pm 5",
    "5,-5", "{", "(", "", "no", r"\text{no}", r"\infty",
]  # fmt: skip


@given(st.lists(st.sampled_from([*TEXTS, None]), max_size=14), st.randoms(use_true_random=False))
@CAREFUL
def test_the_order_of_the_input_does_not_matter(answers: list[str | None], rng: random.Random) -> None:
    shuffled = list(answers)
    rng.shuffle(shuffled)
    assert groups(answers, classes(answers, "math")) == groups(shuffled, classes(shuffled, "math"))


@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=10))
@CAREFUL
def test_classes_and_equivalence_differ_only_by_a_missing_unit(answers: list[str]) -> None:
    found = classes(answers, "math")
    keys = canonical_keys(answers, "math")
    for i, (a, first) in enumerate(zip(answers, keys, strict=True)):
        for j, (b, second) in enumerate(zip(answers, keys, strict=True)):
            together = found[i] is not None and found[i] == found[j]
            if first is None or second is None or bool(first.unit) == bool(second.unit):
                assert together == equivalent(a, b, "math"), (a, b)
            else:
                assert not together or equivalent(a, b, "math") or _share_a_unit(answers, i, j, found)


def _share_a_unit(answers: list[str], i: int, j: int, found: list[int | None]) -> bool:
    """Whether a third member of the class equals both: 5 and 50 mm are joined by 5 cm."""
    members = [text for text, number in zip(answers, found, strict=True) if number == found[i]]
    return any(equivalent(answers[i], text, "math") and equivalent(text, answers[j], "math") for text in members)


NUMBERS = st.integers(-30, 30)
WRITTEN = st.tuples(NUMBERS, st.integers(1, 6), st.sampled_from(["plain", "frac", "decimal", "mixed", "named"]))


def _written(number: int, divisor: int, style: str) -> str:
    if style == "frac":
        return rf"\frac{{{number}}}{{{divisor}}}"
    if style == "decimal":
        return f"{number}/{divisor}.0"
    if style == "named":
        return f"t = {number}/{divisor}"
    whole, rest = divmod(abs(number), divisor)
    if style == "mixed" and rest and whole:
        return f"{'-' if number < 0 else ''}{whole} {rest}/{divisor}"
    return f"{number}/{divisor}"


@given(st.lists(WRITTEN, min_size=1, max_size=30))
@CAREFUL
def test_random_rationals_fall_into_classes_by_value(drawn: list[tuple[int, int, str]]) -> None:
    found = classes([_written(*each) for each in drawn], "math")
    values = [number / divisor for number, divisor, _ in drawn]
    for i, first in enumerate(values):
        for j, second in enumerate(values):
            assert (found[i] == found[j]) == (first == second)


def test_a_partition_of_keys_needs_no_parsing() -> None:
    keys = canonical_keys(["3 m", "300 cm", "3", None], "number")
    assert partition(keys) == [0, 0, 0, None]
    assert partition(list(reversed(keys))) == [None, 0, 0, 0]
