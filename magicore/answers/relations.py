r"""Equations, inequalities and memberships, with the name of what they define taken off."""

import re
from collections.abc import Sequence
from typing import Final

from magicore.answers.forms import (
    INFINITY,
    MINUS_INFINITY,
    REALS,
    Combined,
    Fixed,
    Items,
    Leaf,
    Named,
    Node,
    NotParsed,
    Parse,
    Span,
)
from magicore.answers.notation import FUNCTION_NAMES
from magicore.answers.quantities import infinity, is_closed, plain_number, scalar
from magicore.answers.scan import TEXT_COMMAND, split, tokenize

_RELATIONS: Final = {
    "=": "=", "<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\ne": "!=", r"\in": "in", r"\approx": "~",
}  # fmt: skip
_UNKNOWN_RELATIONS: Final = frozenset(
    [r"\equiv", r"\sim", r"\cong", r"\to", r"\rightarrow", r"\implies", r"\Rightarrow", r"\mapsto", r"\iff", r"\mid",
     r"\subset", r"\subseteq", r"\supset", r"\notin", r"\propto", r"\pmod", r"\perp", r"\parallel"]
)  # fmt: skip
_INDEX: Final = r"(?:_(?:\{[^{}]*\}|[a-zA-Z0-9]))"
_NO_LETTERS: Final = "|".join([*FUNCTION_NAMES, "frac", "sqrt", "binom", "pi", "infty", "emptyset", "mathbb", "text"])
_LETTER: Final = rf"(?:\{{?[a-zA-Z]\}}?|\\(?!{_NO_LETTERS})[a-zA-Z]+\s?){_INDEX}?'*"
_VARIABLE: Final = re.compile(_LETTER)
_NAME: Final = re.compile(
    rf"(?:\\text\s*\{{[^{{}}]*\}}|[A-Za-z]{{4,}}"
    rf"|m?\s*\\(?:angle|triangle|overline|vec|hat|bar|widehat)\s*\{{?[A-Za-z' ]+\}}?"
    rf"|\|[A-Z]{{2,4}}\||[A-Z]{{2,4}}|\\frac\s*\{{d[a-z]?\}}\s*\{{d[a-z]\}}"
    rf"|{_LETTER}(?:\^\s*\{{?-1\}}?)?(?:\s*\([^-+*/^()=<>]*\))?)"
)
_NAME_TUPLE: Final = re.compile(rf"\(\s*{_LETTER}(?:\s*,\s*{_LETTER})+\s*\)")
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def relation(text: str, parse: Parse) -> Node | None:
    """Sides joined by signs of relation."""
    tokens = tokenize(text)
    sides, operators = split(tokens, _relation_sign)
    sides = [side.strip() for side in sides]
    if not operators:
        return None
    if "unknown" in operators:
        raise NotParsed("a relation that is not known")
    if "~" in operators:
        return _approximation(sides, operators, parse)
    if not all(sides):
        raise NotParsed("a relation without a side")
    if any(r"\cup" in side for side in sides) and _FLIPPED.keys() >= set(operators):
        return parse(text.replace(r"\cup", r"\lor "))
    if operators == ["in"]:
        return Named(name=sides[0], node=parse(sides[1])) if is_name(sides[0]) else _unknown()
    if "in" in operators:
        raise NotParsed("a membership inside a relation")
    if set(operators) == {"="}:
        return _equation(sides, parse)
    return _inequalities(sides, operators, parse)


def _relation_sign(token: str) -> str | None:
    return "unknown" if token in _UNKNOWN_RELATIONS else _RELATIONS.get(token)


def _unknown() -> Node:
    raise NotParsed("a relation that is not known")


def is_name(text: str) -> bool:
    """Whether `text` only names what is sought: x, f(x), AB, the angle ABC, (x, y), an area."""
    return bool(_NAME.fullmatch(text) or _NAME_TUPLE.fullmatch(text))


def _approximation(sides: list[str], operators: list[str], parse: Parse) -> Node:
    """What stands before the sign, unless that is only a name."""
    cut = operators.index("~") + 1
    kept = sides[:cut]
    if cut == 1 and (is_name(sides[0]) or not sides[0]):
        return parse(sides[1])
    joined = "".join(side + sign for side, sign in zip(kept, [*_written(operators[: cut - 1]), ""], strict=True))
    return parse(joined)


def _written(operators: Sequence[str]) -> list[str]:
    signs = {name: sign + " " for sign, name in _RELATIONS.items()}
    return [signs[operator] for operator in operators]


def _equation(sides: list[str], parse: Parse) -> Node:
    """A value with its name taken off, or an equation proper."""
    first, last = sides[0], sides[-1]
    if is_name(first) and not is_name(last) and not _mentions(last, first):
        return Named(name=_compact(first), node=parse(last))
    if is_name(first) and is_name(last) and not _VARIABLE.fullmatch(first):
        return Named(name=_compact(first), node=parse(last))
    if is_name(last) and not is_name(first) and len(sides) == 2 and is_closed(first):
        return Named(name=_compact(last), node=parse(first))
    if len(sides) > 2 or (is_closed(first) and is_closed(last)):
        return parse(last)
    return Leaf(request=("relation", "=", first, last))


def _compact(text: str) -> str:
    return re.sub(r"[\s{}]", "", text)


def _mentions(text: str, name: str) -> bool:
    """Whether the variable `name` occurs in `text`."""
    if not _VARIABLE.fullmatch(name):
        return False
    plain = TEXT_COMMAND.sub(" ", text)
    if not name.startswith("\\"):
        plain = re.sub(r"\\[a-zA-Z]+", " ", plain)
    return re.search(rf"{re.escape(name.strip())}(?![a-zA-Z_])", plain) is not None


def _inequalities(sides: list[str], operators: list[str], parse: Parse) -> Node:
    nodes = [
        _inequality(left, operator, right, parse)
        for left, operator, right in zip(sides[:-1], operators, sides[1:], strict=True)
    ]
    if len(nodes) == 1:
        return nodes[0]
    names = {node.name for node in nodes if isinstance(node, Named)}
    if len(names) == 1 and all(isinstance(node, Named) for node in nodes):
        return Named(name=names.pop(), node=Combined(operator="and", items=tuple(as_set(node) for node in nodes)))
    return Combined(operator="and", items=tuple(nodes))


def _inequality(left: str, operator: str, right: str, parse: Parse) -> Node:
    """A half line if one side is a name and the other closed, else a request."""
    if operator == "=":
        return _equation([left, right], parse)
    if is_name(right) and not is_name(left):
        left, operator, right = right, _FLIPPED[operator], left
    size = _ABSOLUTE.fullmatch(left)
    if size and operator in _SIZES and is_closed(right):
        return _sized(size[1], operator, right, parse)
    bound = _bound(right) if is_name(left) else None
    if bound is None:
        return Leaf(request=("relation", operator, left, right))
    low, high = Leaf(known=MINUS_INFINITY), Leaf(known=INFINITY)
    if operator == "!=":
        node: Node = Combined(operator="difference", items=(Fixed(value=REALS), Items(kind="set", items=(bound,))))
    elif operator in {"<", "<="}:
        node = Span(low=low, high=bound, low_closed=False, high_closed=operator == "<=")
    else:
        node = Span(low=bound, high=high, low_closed=operator == ">=", high_closed=False)
    return Named(name=_compact(left), node=node)


_ABSOLUTE: Final = re.compile(r"\|([^|]+)\|")
_SIZES: Final = {"<": "and", "<=": "and", ">": "or", ">=": "or"}


def _sized(inner: str, operator: str, bound: str, parse: Parse) -> Node:
    """|A| < b as -b < A < b, and |A| > b as its opposite."""
    above = _inequality(inner, operator, bound, parse)
    below = _inequality(inner, _FLIPPED[operator], f"-({bound})", parse)
    return Combined(operator=_SIZES[operator], items=(above, below))


def _bound(text: str) -> Leaf | None:
    node = infinity(text) or plain_number(text)
    if node is None and (is_closed(text) or TEXT_COMMAND.search(text) or r"\circ" in text):
        found = scalar(text)
        node = found if isinstance(found, Leaf) and found.number is not None else None
    return node


def is_condition(node: Node) -> bool:
    """Whether `node` is the solution set of an inequality."""
    return isinstance(node, Span | Combined)


def as_set(node: Node) -> Node:
    """A condition or a value as a set."""
    inner = node.node if isinstance(node, Named) else node
    return inner if is_condition(inner) or isinstance(inner, Fixed) else Items(kind="set", items=(inner,))
