"""The shapes a mathematical answer can take, and the canonical value of each.

A value is plain JSON, equal for equal answers: a number is text (see `numeric.encode`), everything else a list that
begins with its type. A set is sorted and without repetition; sets of real numbers are unions of disjoint spans; a pair
(a, b) with a < b is written like the open interval and therefore has the interval's value.
"""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

from magicore.answers import numeric
from magicore.answers.measures import NO_MEASURE, Measure
from magicore.answers.numeric import Number

Value: TypeAlias = str | list[Any]
Request: TypeAlias = tuple[str, ...]
"""What a worker is asked: ("value", expression) or ("relation", operator, left, right)."""

INFINITY: Final = "inf"
MINUS_INFINITY: Final = "-inf"
REALS: Final[Value] = ["region", [[MINUS_INFINITY, False, INFINITY, False]]]
EMPTY: Final[Value] = ["set"]


class NotParsed(Exception):
    """A text could not be read as mathematics within the limits; its argument says why."""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A number: computed, or to be asked of a worker.

    Attributes:
        number: The number as written, None if it must be asked for.
        request: What to ask.
        known: A value that needs no computing (infinities, digests of very long integers).
        measure: Its unit.
        long_decimal: See `arithmetic.Closed`.
    """

    number: Number | None = None
    request: Request | None = None
    known: Value | None = None
    measure: Measure = NO_MEASURE
    long_decimal: bool = False


@dataclass(frozen=True, kw_only=True)
class Words:
    """An answer in words."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Items:
    """Several values: a "set", a "tuple", a "list" (separated by commas), a "sequence" (with dots) or a "ratio"."""

    kind: str
    items: tuple["Node", ...]


@dataclass(frozen=True, kw_only=True)
class Span:
    """An interval."""

    low: "Node"
    high: "Node"
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, kw_only=True)
class Combined:
    """Sets joined by "union", "intersection" or "difference", or relations joined by "or", "and" or "comma"."""

    operator: str
    items: tuple["Node", ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A matrix."""

    rows: tuple[tuple["Node", ...], ...]


@dataclass(frozen=True, kw_only=True)
class Named:
    """A value with the name it was given: x = 3."""

    name: str
    node: "Node"


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A value known as it stands: all reals, the empty set."""

    value: Value = field(default_factory=list)


Node: TypeAlias = Leaf | Words | Items | Span | Combined | Grid | Named | Fixed


Parse: TypeAlias = Callable[[str], Node]
"""Reads what is inside a layer."""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside `node`."""
    if isinstance(node, Items | Combined):
        return node.items
    if isinstance(node, Span):
        return (node.low, node.high)
    if isinstance(node, Grid):
        return tuple(entry for row in node.rows for entry in row)
    return (node.node,) if isinstance(node, Named) else ()


def leaves(node: Node) -> Iterator[Leaf]:
    """Every number in `node`."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Leaf):
            yield current
        stack.extend(reversed(children(current)))


LeafValue: TypeAlias = Callable[[Leaf], Value]


def compose(node: Node, value_of: LeafValue) -> Value:
    """The canonical value of `node`, given the values of its leaves.

    Raises:
        NotParsed: The parts do not fit together (an intersection of numbers, say).
    """
    parts = [compose(child, value_of) for child in children(node)]
    if isinstance(node, Leaf):
        return value_of(node)
    if isinstance(node, Words):
        return ["text", node.text]
    if isinstance(node, Fixed):
        return node.value
    if isinstance(node, Named):
        return parts[0]
    if isinstance(node, Span):
        return _span(parts[0], parts[1], node.low_closed, node.high_closed)
    if isinstance(node, Grid):
        return _matrix(node, parts)
    return _combined(node.operator, parts) if isinstance(node, Combined) else _items(node, parts)


def _items(node: Items, parts: list[Value]) -> Value:
    if node.kind == "tuple":
        return tuple_value(parts)
    if node.kind == "ratio":
        return _ratio(parts)
    if node.kind == "sequence":
        return ["sequence", *parts]
    names = [item.name.split("_")[0] for item in node.items if isinstance(item, Named)]
    if node.kind == "list" and len(names) == len(parts) == len(set(names)):
        return tuple_value([part for _, part in sorted(zip(names, parts, strict=True), key=lambda pair: pair[0])])
    return set_value(parts)


def _matrix(node: Grid, parts: list[Value]) -> Value:
    entries = iter(parts)
    return ["matrix", *([next(entries) for _ in row] for row in node.rows)]


def is_number(value: Value) -> bool:
    """Whether `value` is a real number or an infinity."""
    return isinstance(value, str)


def size(value: str) -> Number:
    """A real number or infinity to compare by."""
    if value in {INFINITY, MINUS_INFINITY}:
        infinity = numeric.context().inf
        return infinity if value == INFINITY else -infinity
    return numeric.order(numeric.decode(value))


def sort_key(value: Value) -> tuple[int, Any, str]:
    """Real numbers by size, then everything else by its text."""
    if isinstance(value, str):
        return (0, size(value), value)
    return (1, 0, json.dumps(value))


def tuple_value(parts: list[Value]) -> Value:
    """An ordered tuple; a rising pair of reals is at the same time an open interval."""
    if len(parts) == 2 and all(is_number(part) for part in parts):
        low, high = parts
        assert isinstance(low, str) and isinstance(high, str)
        if size(low) < size(high):
            return ["region", [[low, False, high, False]]]
    return ["tuple", *parts]


def set_value(parts: list[Value]) -> Value:
    """The set of `parts`; parts that are finite sets or regions are joined."""
    regions = [part for part in parts if isinstance(part, list) and part[0] == "region"]
    members: list[Value] = []
    for part in parts:
        if isinstance(part, list) and part[0] == "set":
            members.extend(part[1:])
        else:
            members.append(part)
    if regions and all(is_number(member) or member in regions for member in members):
        pairs = [part for part in regions if len(part[1]) == 1 and not part[1][0][1] and not part[1][0][3]]
        if len(pairs) < len(members):
            return functools.reduce(union, parts, EMPTY)
    distinct = {json.dumps(member): member for member in members}
    return ["set", *sorted(distinct.values(), key=sort_key)]


def _ratio(parts: list[Value]) -> Value:
    """Terms divided by the last one; two terms are their quotient."""
    if not all(isinstance(part, str) and part[0] not in "#b" for part in parts):
        return ["ratio", *parts]
    numbers = [Fraction(part) for part in parts if isinstance(part, str)]
    if numbers[-1] == 0:
        return ["ratio", *parts]
    scaled = [str(number / numbers[-1]) for number in numbers]
    return scaled[0] if len(scaled) == 2 else ["ratio", *scaled]


# Sets of real numbers: sorted disjoint spans [low, low_closed, high, high_closed].

_Span: TypeAlias = list[Any]


def _span(low: Value, high: Value, low_closed: bool, high_closed: bool) -> Value:
    if not (isinstance(low, str) and isinstance(high, str)):
        return ["interval", low, low_closed, high, high_closed]
    if low in {INFINITY, MINUS_INFINITY}:
        low_closed = False
    if high in {INFINITY, MINUS_INFINITY}:
        high_closed = False
    if size(low) > size(high):
        if low_closed and high_closed:
            return ["tuple", low, high]
        raise NotParsed("an interval whose ends are in the wrong order")
    return region([[low, low_closed, high, high_closed]])


def _spans(value: Value) -> list[_Span]:
    """The spans of a set of reals."""
    if isinstance(value, str):
        return [[value, True, value, True]]
    if value[0] == "region":
        return list(value[1])
    if value[0] == "set" and all(isinstance(member, str) for member in value[1:]):
        return [[member, True, member, True] for member in value[1:]]
    raise NotParsed("not a set of real numbers")


def region(spans: list[_Span]) -> Value:
    """Sorted and merged spans; a finite set if only points are left."""
    nonempty = [span for span in spans if size(span[0]) < size(span[2]) or (span[0] == span[2] and span[1] and span[3])]
    merged: list[_Span] = []
    for span in sorted(nonempty, key=lambda span: (size(span[0]), not span[1])):
        if merged and _touch(merged[-1], span):
            merged[-1] = _joined(merged[-1], span)
        else:
            merged.append(list(span))
    if all(span[0] == span[2] for span in merged):
        return ["set", *(span[0] for span in merged)]
    return ["region", merged]


def _touch(first: _Span, second: _Span) -> bool:
    end, start = size(first[2]), size(second[0])
    return bool(start < end) or (first[2] == second[0] and (first[3] or second[1]))


def _joined(first: _Span, second: _Span) -> _Span:
    if size(first[2]) == size(second[2]):
        return [first[0], first[1], first[2], first[3] or second[3]]
    farther = first if size(first[2]) > size(second[2]) else second
    return [first[0], first[1], farther[2], farther[3]]


def union(left: Value, right: Value) -> Value:
    """The union of two sets."""
    if _both_finite(left, right):
        return set_value([left, right])
    return region(_spans(left) + _spans(right))


def intersection(left: Value, right: Value) -> Value:
    """The intersection of two sets."""
    if _both_finite(left, right):
        kept = [member for member in left[1:] if member in right[1:]]
        return ["set", *kept]
    overlaps = [_overlap(first, second) for first in _spans(left) for second in _spans(right)]
    return region([span for span in overlaps if span is not None])


def difference(left: Value, right: Value) -> Value:
    """The members of `left` that are not in `right`."""
    if _both_finite(left, right):
        return ["set", *(member for member in left[1:] if member not in right[1:])]
    return intersection(left, complement(right))


def complement(value: Value) -> Value:
    """The reals that are not in `value`."""
    spans, low, low_closed = [], MINUS_INFINITY, False
    for span in _spans(region(_spans(value))):
        spans.append([low, low_closed, span[0], not span[1]])
        low, low_closed = span[2], not span[3]
    spans.append([low, low_closed, INFINITY, False])
    return region([span for span in spans if span[0] != span[2] or (span[1] and span[3])])


def _both_finite(left: Value, right: Value) -> bool:
    return all(isinstance(value, list) and value[0] == "set" for value in (left, right))


def _overlap(first: _Span, second: _Span) -> _Span | None:
    low = max((first[:2], second[:2]), key=lambda end: (size(end[0]), not end[1]))
    high = min((first[2:], second[2:]), key=lambda end: (size(end[0]), end[1]))
    if size(low[0]) > size(high[0]):
        return None
    return [*low, *high]


def _combined(operator: str, parts: list[Value]) -> Value:
    if operator in {"union", "or"} and not all(_is_real_set(part) for part in parts):
        return ["set", *sorted(parts, key=json.dumps)]
    if operator in {"and", "comma"} and not all(_is_real_set(part) for part in parts):
        return ["and", *sorted(parts, key=json.dumps)]
    if operator == "comma":
        common = functools.reduce(intersection, parts)
        return functools.reduce(union, parts) if common == EMPTY else common
    joined = {"union": union, "or": union, "intersection": intersection, "and": intersection, "difference": difference}
    return functools.reduce(joined[operator], parts)


def _is_real_set(value: Value) -> bool:
    if isinstance(value, str):
        return False
    return value[0] == "region" or (value[0] == "set" and all(is_number(member) for member in value[1:]))
