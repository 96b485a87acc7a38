"""Find the equations in a text and say which of them hold, exactly.

An equation here is ``expression = expression`` with known numbers on both sides and an operation on at least one:
``5 apples + 3 apples = 8 apples``, ``<<3*4=12>>``, ``1,200 / 12 = $100``, ``20% of 50 = 10``, ``\\frac{7}{2} = 3.5``,
``2(3 + 4) = 2 * 7 = 14``, ``10 / 3 ≈ 3.33``. Everything that may mean something else (variables, functions, ratios,
times, remainders, mixed units of measurement) is passed over: an equation is called wrong only if no reasonable reading
of it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reward_models.expressions import MOST_TOKENS, Quantity, Unreadable, readings
from reward_models.notation import Token, plain, tokens

_ANNOTATION = re.compile(r"<<([^<>\n]{1,200})>>")
_APPROXIMATELY = frozenset({"about", "approximately", "around", "roughly", "nearly", "almost", "approx"})
# After these words a number does not stand for itself: "twice 3 + 4", "5 more than 3 + 2".
_MODIFIERS = frozenset(
    "twice thrice double triple quadruple half third quarter square squared cube cubed than of times sum difference "
    "product quotient negative root percent fraction log ln exp sin cos tan sqrt mod max min gcd lcm abs".split()
)
_ARTICLES = frozenset({"a", "A", "I"})
_REMAINDERS = frozenset({"remainder", "remainders", "rem"})
_ROUGHLY = Fraction(1, 100)
_INHERITED = Fraction(1, 1000)


@dataclass(frozen=True, kw_only=True)
class Equation:
    """An equation that was checked: as written (symbols brought to one form), its two sides' values, the verdict."""

    written: str
    left: Fraction
    right: Fraction
    holds: bool


def check_equations(text: str) -> tuple[Equation, ...]:
    """Every equation of a text that can be checked, in order of appearance; those in ``<<...>>`` last.

    A rounded result holds: ``2 / 3 = 0.67``, ``1 / 3 = 33%``, ``10 / 3 = 3.333...``; so does an estimate with ``≈``
    that is right to its last digit that is not zero, or to 1 %. Takes time linear in the text.
    """
    annotations = "\n".join(match[1] for match in _ANNOTATION.finditer(text))
    found = list(_check(plain(_ANNOTATION.sub("", text))))
    return (*found, *_check(plain(annotations))) if annotations else tuple(found)


def _check(text: str) -> Iterator[Equation]:
    for parts in _clauses(tokens(text)):
        for index in range(1, len(parts), 2):
            relation = parts[index][0]
            before, after = parts[index - 1], parts[index + 1]
            equation = _equation(before, relation, after, text)
            if equation is not None:
                yield equation


def _clauses(found: Sequence[Token]) -> Iterator[list[list[Token]]]:
    """Runs without a stop, cut at their relations: ``[side, [relation], side, [relation], side ...]``."""
    parts: list[list[Token]] = [[]]
    for token in (*found, None):
        if token is None or token.kind == "stop":
            if len(parts) > 1:
                yield parts
            parts = [[]]
        elif token.kind == "rel":
            parts += [[token], []]
        else:
            parts[-1].append(token)


def _equation(before: list[Token], relation: Token, after: list[Token], text: str) -> Equation | None:
    if len(before) < 2 and len(after) < 2:
        return None
    try:
        left, start, doubtful = _ending(before[-MOST_TOKENS:], whole=len(before) <= MOST_TOKENS)
        right, end, roughly = _beginning(after[:MOST_TOKENS])
    except Unreadable:
        return None
    if left[0].operations + right[0].operations == 0 or (left[0].operations == 0 and left[0].named):
        return None
    roughly = roughly or relation.text == "≈"
    holds = any(_equal(one, other, roughly) for one in left for other in right)
    if not holds and (doubtful or _may_differ(left[0], right[0], after, text)):
        return None
    return Equation(written=text[start.start : end.end], left=left[0].value, right=right[0].value, holds=holds)


def _ending(side: list[Token], *, whole: bool) -> tuple[list[Quantity], Token, bool]:
    """The longest expression that ends a side, its first token, and whether its beginning is in doubt."""
    for start, token in enumerate(side):
        before = side[start - 1] if start else None
        if before is None and not whole:
            continue
        if before is not None and not _may_begin_after(before, token):
            continue
        try:
            found = [each for each in readings(side, start, left=True) if each.end == len(side)]
        except Unreadable:
            continue
        if not found or (token.kind == "op" and token.text == "+"):
            continue
        if before is not None and found[0].operations == 0:
            break  # "Week 2 = ..." and "the rest is 5 = ...": a label, or half a sentence
        return found, token, _doubtful(side, start)
    raise Unreadable("no expression ends here")


def _doubtful(side: Sequence[Token], start: int) -> bool:
    """Whether what goes before may be a part of the expression: a bracket, or the whole of ``19 and 5/6``."""
    if start == 0:
        return False
    fraction = [token.kind for token in side[start : start + 2]] == ["num", "op"] and side[start + 1].text == "/"
    mixed = side[start - 1].text.lower() == "and" and start > 1 and side[start - 2].kind == "num" and fraction
    return side[start - 1].kind == "close" or mixed


def _may_begin_after(before: Token, token: Token) -> bool:
    if before.kind == "close":
        return token.spaced
    if before.kind != "word" or not token.spaced:
        return False
    word = before.text
    return (len(word) > 1 or word in _ARTICLES) and word.lower() not in _MODIFIERS


def _beginning(side: list[Token]) -> tuple[list[Quantity], Token, bool]:
    """The expression that begins a side, its last token, and whether it is said to be approximate."""
    start = 0
    while start < len(side) and side[start].kind == "word" and side[start].text.lower() in _APPROXIMATELY:
        start += 1
    first = readings(side, start, left=False)
    found = [each for each in first if not _goes_on(side, each)]
    if not found:
        raise Unreadable("it goes on in a way that is not understood")
    return found, side[found[0].end - 1], start > 0


def _goes_on(side: Sequence[Token], quantity: Quantity) -> bool:
    """Whether what follows an expression may belong to it."""
    rest = side[quantity.end :]
    if not rest:
        return False
    token = rest[0]
    if token.kind == "word":
        if token.text.lower() == "and" and len(rest) > 2 and rest[1].kind == "num":
            return rest[2].text == "/" or bool(quantity.measures)  # 3 and 1/2; 12 dollars and 50 cents
        variable = len(token.text) == 1 and token.text not in _ARTICLES
        return variable or token.text.lower() in _REMAINDERS
    return not (token.kind in ("close", "mark", "op") or (token.kind == "open" and token.spaced))


def _equal(one: Quantity, other: Quantity, roughly: bool) -> bool:
    difference = abs(one.value - other.value)
    if difference == 0:
        return True
    largest = max(abs(one.value), abs(other.value))
    if roughly and difference <= _ROUGHLY * largest:
        return True
    for written, exact in ((one, other.value), (other, one.value)):
        number = written.written
        if number is None:
            continue
        if roughly and difference <= number.significant / 2:
            return True
        cut = number.unit < Fraction(1, 10) and abs(written.value) < abs(exact) and difference < number.unit
        if number.rounded and (difference <= number.unit / 2 or cut):
            return True
    return False


def _may_differ(left: Quantity, right: Quantity, after: Sequence[Token], text: str) -> bool:
    """Whether unequal sides may be right all the same."""
    measures = left.measures | right.measures
    dimensions = [dimension for dimension, _ in measures]
    if len(set(dimensions)) < len(dimensions) and not (left.rated or right.rated):
        return True  # units are converted on the way
    price = text[max(0, after[0].start - 1) : after[0].start] == "$"
    if ("money", "cent") in measures and "$" in text:
        return True
    if left.additive and left.named and (price or right.measures - left.measures):
        return True  # "2 sodas + 4 bars = $3" says what they cost together
    difference = abs(left.value - right.value)
    if difference > _INHERITED * max(abs(left.value), abs(right.value)):
        return False
    whole = difference < 1 and 1 in (left.value.denominator, right.value.denominator)
    return whole or left.decimals or right.decimals  # a rounded number goes in
