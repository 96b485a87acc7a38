r"""What is inside brackets and environments: sets, tuples, intervals, matrices, determinants."""

import re
from fractions import Fraction
from typing import Final

from magicore.answers import numeric
from magicore.answers.forms import EMPTY, Fixed, Grid, Items, Leaf, Node, NotParsed, Parse, Span
from magicore.answers.quantities import computed, plain_number
from magicore.answers.relations import is_name
from magicore.answers.scan import MAX_ITEMS, OPENING, closes_last, separator, split, tokenize

_MATRIX: Final = re.compile(r"\\begin\s*\{([pbBvV]?(?:small)?matrix|array)\*?\}")
_FRAMED: Final = re.compile(r"([^(|]*?)([(|]|\[)\s*(\\begin.*\\end\s*\{[a-zA-Z]+\*?\})\s*([)|\]])", re.DOTALL)
_ARRAY_COLUMNS: Final = re.compile(r"\s*\{[lcr|\s]*\}")
_ENTRY_WORDS: Final = frozenset([r"\hline"])
_OUTWARD: Final = re.compile(r"([][])([^][]*)[,;]([^][]*)([][])")


def outward(text: str, parse: Parse) -> Node | None:
    """An interval whose open ends are brackets turned outward: ]0, 1]."""
    match = _OUTWARD.fullmatch(text)
    if match is None or (match[1], match[4]) == ("[", "]"):
        return None
    low, high = (parse(part) for part in match.group(2, 3))
    return Span(low=low, high=high, low_closed=match[1] == "[", high_closed=match[4] == "]")


def enclosed(text: str, parse: Parse) -> Node | None:
    """One bracket or environment around everything."""
    if r"\begin" in text:
        return _matrix(text, parse)
    if text.startswith("Matrix(") and text.endswith(")"):
        return parse(text[len("Matrix(") : -1])
    tokens = tokenize(text)
    if not tokens or tokens[0] not in OPENING or not closes_last(tokens):
        return None
    inner = "".join(tokens[1:-1])
    return _bracketed(tokens[0], tokens[-1], inner, parse)


def _bracketed(opening: str, closing: str, inner: str, parse: Parse) -> Node | None:
    if opening in {r"\lfloor", r"\lceil"}:
        return None
    if not inner.strip():
        return Fixed(value=EMPTY) if opening in {"{", r"\{"} else _empty_brackets()
    if opening == r"\{":
        return _set(inner, parse)
    parts, commas = split(tokenize(inner), {",": ",", ";": ","}.get)
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    if not commas:
        return parse(inner)
    if opening == "{":
        return _set(inner, parse)
    if opening == "[" and all(part.strip().startswith("[") for part in parts):
        return Grid(rows=tuple(_row(part, parse) for part in parts))
    nodes = tuple(parse(part) for part in parts)
    if len(nodes) == 2 and opening in {"(", "["} and (opening, closing) != ("(", ")"):
        return Span(low=nodes[0], high=nodes[1], low_closed=opening == "[", high_closed=closing == "]")
    if (opening, closing) in {("(", ")"), ("[", "]"), (r"\langle", r"\rangle")}:
        return Items(kind="tuple", items=nodes)
    raise NotParsed("brackets that do not match")


def _empty_brackets() -> Node:
    raise NotParsed("empty brackets")


def _set(inner: str, parse: Parse) -> Node:
    """The members of a set, or the condition of one that is described."""
    described, bars = split(tokenize(inner), {"|": "|", r"\mid": "|", ":": "|"}.get)
    if bars and len(described) == 2 and is_name(described[0].split(r"\in")[0].strip()):
        return parse(described[1])
    parts, _ = split(tokenize(inner), separator)
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    return Items(kind="set", items=tuple(parse(part) for part in parts if part.strip()))


def _row(text: str, parse: Parse) -> tuple[Node, ...]:
    tokens = tokenize(text.strip())
    if tokens[0] != "[" or not closes_last(tokens):
        raise NotParsed("a matrix row that is no list")
    parts, _ = split(tokens[1:-1], {",": ",", ";": ","}.get)
    return tuple(parse(part) for part in parts)


def _matrix(text: str, parse: Parse) -> Node | None:
    """A matrix environment, scaled by a closed factor before it; a determinant is computed."""
    framed = _FRAMED.fullmatch(text)
    if framed and (framed[2], framed[4]) in {("(", ")"), ("[", "]"), ("|", "|")}:
        text = framed[1] + (r"\det" if framed[2] == "|" else "") + framed[3]
    match = _MATRIX.search(text)
    tokens = tokenize(text[match.start() :]) if match else []
    if match is None or not tokens[-1].startswith(r"\end") or not closes_last(tokens):
        raise NotParsed("an environment that is no matrix")
    body = text[match.end() : text.rindex(r"\end")]
    if match[1] == "array":
        body = _ARRAY_COLUMNS.sub("", body, count=1)
    rows = [_entries(row) for row in split(tokenize(body), {r"\\": "row"}.get)[0] if row.strip()]
    rows = [row for row in rows if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows) or sum(map(len, rows)) > MAX_ITEMS:
        raise NotParsed("a matrix whose rows differ in length")
    factor = text[: match.start()].strip().removesuffix(r"\cdot").strip()
    if match[1].startswith(("v", "V")) or factor.endswith(r"\det"):
        return _determinant(rows, factor.removesuffix(r"\det").strip(), parse)
    if factor:
        rows = [[f"{'-' if factor == '-' else factor}({entry})" for entry in row] for row in rows]
    return Grid(rows=tuple(tuple(parse(entry) for entry in row) for row in rows))


def _entries(row: str) -> list[str]:
    tokens = [token for token in tokenize(row) if token not in _ENTRY_WORDS]
    return [part.strip() for part in split(tokens, {"&": "&"}.get)[0]]


_MAX_DETERMINANT: Final = 6


def _determinant(rows: list[list[str]], factor: str, parse: Parse) -> Node:
    if len(rows) != len(rows[0]) or len(rows) > _MAX_DETERMINANT:
        raise NotParsed("a determinant that is not square or too large")
    numbers = [[plain_number(entry) or computed(entry) for entry in row] for row in rows]
    values = [[leaf.number for leaf in row if leaf is not None and leaf.number is not None] for row in numbers]
    if any(len(row) != len(rows) for row in values) or factor:
        if len(rows) != 2:
            raise NotParsed("a determinant of expressions")
        (a, b), (c, d) = rows
        return parse(f"{factor}(({a})({d})-({b})({c}))")
    return Leaf(number=_expanded(values))


def _expanded(rows: list[list[numeric.Number]]) -> numeric.Number:
    """The determinant, along the first row."""
    if len(rows) == 1:
        return rows[0][0]
    total: numeric.Number = Fraction(0)
    for column, entry in enumerate(rows[0]):
        minor = _expanded([[*row[:column], *row[column + 1 :]] for row in rows[1:]])
        term = numeric.multiply(entry, minor)
        total = numeric.add(total, numeric.negate(term) if column % 2 else term)
    return total
