r"""Several values side by side: lists, set operations, plus-minus, ratios."""

import re
from collections.abc import Sequence
from typing import Final

from magicore.answers.forms import Combined, Items, Named, Node, NotParsed, Parse, Words
from magicore.answers.quantities import is_closed
from magicore.answers.relations import as_set, is_condition
from magicore.answers.scan import MAX_ITEMS, separator, split, tokenize

_THOUSANDS: Final = re.compile(r"(?<![\d.,(\[{])0*\d{1,3}(?:,\d{3})+(?![\d,])")


def listed(text: str, parse: Parse) -> Node | None:
    """Values separated by commas, semicolons, "and" or "or"; commas between thousands separate nothing."""
    grouped = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    parts, found = split(tokenize(grouped), separator)
    if not found:
        return parse(grouped) if grouped != text else None
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    items = [part.strip() for part in parts if part.strip()]
    if any(item == r"\ldots" for item in items):
        return Items(kind="sequence", items=tuple(_sequence_item(item, parse) for item in items))
    items = [item for item in items if not _DOMAIN.fullmatch(item)] or items
    nodes = [parse(item) for item in items]
    if len(nodes) == 1:
        return nodes[0]
    return _joined_relations(nodes, found) or Items(kind="list", items=tuple(nodes))


_DOMAIN: Final = re.compile(r"[a-zA-Z](?:_\w)?\s*\\in\s*\\mathbb\s*\{?[A-Z]\}?(?:\^[+*])?")
"""What says only what kind of number a variable is: "k in Z" after a family of solutions."""


def _sequence_item(item: str, parse: Parse) -> Node:
    return Words(text="...") if item == r"\ldots" else parse(item)


def _joined_relations(nodes: Sequence[Node], separators: Sequence[str]) -> Node | None:
    """Inequalities of one variable joined by "and", "or" or a comma."""
    if not any(isinstance(node, Named) and is_condition(node.node) for node in nodes):
        return None
    names = {node.name for node in nodes if isinstance(node, Named)}
    if len(names) != 1 or not all(isinstance(node, Named) for node in nodes):
        return None
    operators = {separator for separator in separators if separator != "comma"} or {"comma"}
    if len(operators) > 1:
        raise NotParsed('relations joined by both "and" and "or"')
    joined = Combined(operator=operators.pop(), items=tuple(as_set(node) for node in nodes))
    return Named(name=names.pop(), node=joined)


_SET_OPERATORS: Final = {
    r"\cup": "union", r"\cap": "intersection", r"\setminus": "difference", r"\backslash": "difference",
}  # fmt: skip


def set_operation(text: str, parse: Parse) -> Node | None:
    """Unions, intersections and differences, from the left."""
    parts, operators = split(tokenize(text), _SET_OPERATORS.get)
    if not operators:
        return None
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many sets")
    node = parse(parts[0])
    for operator, part in zip(operators, parts[1:], strict=True):
        right = parse(part)
        if operator == "union" and isinstance(node, Combined) and node.operator == "union":
            node = Combined(operator="union", items=(*node.items, right))
        else:
            node = Combined(operator=operator, items=(node, right))
    return node


_SIGNS: Final = re.compile(r"\\(pm|mp)(?![a-zA-Z])")


def plus_minus(text: str, parse: Parse) -> Node | None:
    """Both readings of an expression or tuple with plus-minus signs."""
    if not _SIGNS.search(text) or text.startswith(r"\{"):
        return None
    upper = _SIGNS.sub(lambda match: "+" if match[1] == "pm" else "-", text)
    lower = _SIGNS.sub(lambda match: "-" if match[1] == "pm" else "+", text)
    return Items(kind="set", items=(parse(upper), parse(lower)))


_CLOCK: Final = re.compile(r"\d{1,2}\s*:\s*[0-5]\d")


def ratio(text: str, parse: Parse) -> Node | None:
    """Closed terms joined by colons; a time of day is left as it is."""
    parts, colons = split(tokenize(text), {":": ":"}.get)
    if not colons:
        return None
    if not all(is_closed(part.strip()) for part in parts):
        raise NotParsed("a colon that is no ratio")
    if _CLOCK.fullmatch(text):
        return Words(text=re.sub(r"\s", "", text))
    return Items(kind="ratio", items=tuple(parse(part) for part in parts))
