r"""From a tidy text to the shape of the answer: sets, tuples, intervals, relations, matrices, units, words, numbers.

Only the outermost layer is read at a time, by one walk over the tokens; what is inside is read the same way. What is
left is a single expression: closed arithmetic is computed here, the rest becomes a request to a worker.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from magicore.answers import numeric
from magicore.answers.arithmetic import LONG_DECIMAL, MAX_LITERAL, closed, literal, significant_digits
from magicore.answers.forms import (
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    REALS,
    Combined,
    Fixed,
    Grid,
    Items,
    Leaf,
    Named,
    Node,
    NotParsed,
    Span,
    Words,
)
from magicore.answers.measures import NO_MEASURE, Measure, is_known, measure
from magicore.answers.notation import FUNCTION_NAMES
from magicore.answers.number import parse_number
from magicore.answers.numerals import SCALES
from magicore.answers.units import CURRENCY, CURRENCY_SIGNS

MAX_DEPTH: Final = 12
MAX_LENGTH: Final = 200_000
MAX_ITEMS: Final = 50_000
MAX_EXPRESSION: Final = 20_000

_TOKEN: Final = re.compile(
    r"\\text\s*\{[^{}]*\}|\\begin\s*\{[a-zA-Z]+\*?\}|\\end\s*\{[a-zA-Z]+\*?\}|\\[a-zA-Z]+|\\.|[a-zA-Z]+|\d+|\s+|.",
    re.DOTALL,
)
_OPENING: Final = frozenset(["(", "[", "{", r"\{", r"\langle", r"\lfloor", r"\lceil"])
_CLOSING: Final = frozenset([")", "]", "}", r"\}", r"\rangle", r"\rfloor", r"\rceil"])

Tokens = list[str]


def parse(text: str) -> Node:
    """The shape of `text`, which `notation.tidy` has been over.

    Raises:
        NotParsed: It has none that is known, or is past a limit.
    """
    if len(text) > MAX_LENGTH:
        raise NotParsed("too long")
    return _parse(text, 0)


def _parse(text: str, depth: int) -> Node:
    text = text.strip()
    if depth > MAX_DEPTH:
        raise NotParsed("too deeply nested")
    simple = _plain_number(text)
    if simple is not None:
        return simple
    for read in (_words, _compound, _list, _relation, _set_operation, _plus_minus, _enclosed, _ratio):
        node = read(text, depth + 1)
        if node is not None:
            return node
    return _scalar(text)


# Splitting at the outermost level.


def _tokens(text: str) -> Tokens:
    return _TOKEN.findall(text)


def _is_opening(token: str) -> bool:
    return token in _OPENING or token.startswith(r"\begin")


def _is_closing(token: str) -> bool:
    return token in _CLOSING or token.startswith(r"\end")


def _split(tokens: Tokens, separator: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """The parts between the outermost separators, and what `separator` called each of these."""
    parts, found, depth, start = list[str](), list[str](), 0, 0
    for index, token in enumerate(tokens):
        depth += _is_opening(token) - (depth > 0 and _is_closing(token))
        name = separator(token) if depth == 0 else None
        if name is not None:
            parts.append("".join(tokens[start:index]))
            found.append(name)
            start = index + 1
    parts.append("".join(tokens[start:]))
    return parts, found


def _closes_last(tokens: Tokens) -> bool:
    """Whether the bracket that opens `tokens` is closed by the last of them."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += _is_opening(token) - _is_closing(token)
        if depth == 0:
            return index == len(tokens) - 1
    return False


# Numbers and words.

_NUMBER: Final = re.compile(r"([-+]?)(0*\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")


def _plain_number(text: str) -> Leaf | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = match[2].replace(",", "")
    if len(digits) > MAX_LITERAL and not match[3]:
        digest = hashlib.sha256(digits.lstrip("0").encode()).hexdigest()
        return Leaf(known=["digits", match[1].strip("+"), digest])
    value = literal(digits + (match[3] or ""))
    if value is None:
        raise NotParsed("too long a number")
    long_decimal = significant_digits(digits + (match[3] or "")) >= LONG_DECIMAL
    return Leaf(number=-value if match[1] == "-" else value, long_decimal=long_decimal)


def _computed(text: str, unit: Measure = NO_MEASURE) -> Leaf | None:
    try:
        result = closed(text)
    except numeric.Unrepresentable as error:
        raise NotParsed(str(error)) from None
    return None if result is None else Leaf(number=result.value, long_decimal=result.long_decimal, measure=unit)


_EMPTY_WORDS: Final = re.compile(
    r"(?:there (?:is|are) )?no (?:real |valid |such )?(?:solutions?|roots?)(?: exists?)?|(?:the )?(?:empty|null) set"
)
_REAL_WORDS: Final = re.compile(r"(?:all|any|every) (?:real numbers?|reals?)(?: [a-z])?|(?:the )?real (?:numbers|line)")
_TEXT_COMMAND: Final = re.compile(r"\\text\s*\{([^{}]*)\}")
_PROSE: Final = re.compile(r"[A-Za-z][A-Za-z' .,!?-]*")
_CONNECTIVES: Final = frozenset(["and", "or", "per", *FUNCTION_NAMES])
_SHORT_WORD, _LONG_WORD = 3, 4


def _words(text: str, depth: int) -> Node | None:
    """Prose: at least one word that can be no product of variables."""
    body = _TEXT_COMMAND.sub(r" \1 ", text)
    if not _PROSE.fullmatch(body.strip()):
        return None
    runs = [run.lower() for run in re.findall(r"[A-Za-z]+", body)]
    if not any(_is_word(run) for run in runs):
        return None
    prose = " ".join(re.findall(r"[a-z'-]+", body.lower()))
    if _EMPTY_WORDS.fullmatch(prose):
        return Fixed(value=EMPTY)
    if _REAL_WORDS.fullmatch(prose):
        return Fixed(value=REALS)
    number = parse_number(body)
    if number is not None:
        return Leaf(number=number.value, measure=measure(number.unit or "") or NO_MEASURE)
    if _split(_tokens(text), _separator)[1]:
        return None
    return Words(text=prose)


def _is_word(run: str) -> bool:
    if run in _CONNECTIVES:
        return False
    return len(run) >= _LONG_WORD or (len(run) == _SHORT_WORD and any(char in "aeiou" for char in run))


# Lists.

_SEPARATORS: Final = {",": "comma", ";": "comma", r"\lor": "or", r"\vee": "or", r"\land": "and", r"\wedge": "and"}


def _separator(token: str) -> str | None:
    if token in {"and", "or"}:
        return token
    match = _TEXT_COMMAND.fullmatch(token)
    if match and match[1].strip().strip(",").strip() in {"and", "or"}:
        return match[1].strip().strip(",").strip()
    return _SEPARATORS.get(token)


_THOUSANDS: Final = re.compile(r"(?<![\d.,(\[{])0*\d{1,3}(?:,\d{3})+(?![\d,])")


def _list(text: str, depth: int) -> Node | None:
    """Values separated by commas, semicolons, "and" or "or"; commas between thousands separate nothing."""
    grouped = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    parts, found = _split(_tokens(grouped), _separator)
    if not found:
        return _parse(grouped, depth) if grouped != text else None
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    items = [part.strip() for part in parts if part.strip()]
    if any(item == r"\ldots" for item in items):
        return Items(kind="sequence", items=tuple(_sequence_item(item, depth) for item in items))
    items = [item for item in items if not _DOMAIN.fullmatch(item)] or items
    nodes = [_parse(item, depth) for item in items]
    if len(nodes) == 1:
        return nodes[0]
    return _joined_relations(nodes, found) or Items(kind="list", items=tuple(nodes))


_DOMAIN: Final = re.compile(r"[a-zA-Z](?:_\w)?\s*\\in\s*\\mathbb\s*\{?[A-Z]\}?(?:\^[+*])?")
"""What says only what kind of number a variable is: "k in Z" after a family of solutions."""


def _sequence_item(item: str, depth: int) -> Node:
    return Words(text="...") if item == r"\ldots" else _parse(item, depth)


def _joined_relations(nodes: Sequence[Node], separators: Sequence[str]) -> Node | None:
    """Inequalities of one variable joined by "and", "or" or a comma."""
    if not any(isinstance(node, Named) and _is_condition(node.node) for node in nodes):
        return None
    names = {node.name for node in nodes if isinstance(node, Named)}
    if len(names) != 1 or not all(isinstance(node, Named) for node in nodes):
        return None
    operators = {separator for separator in separators if separator != "comma"} or {"comma"}
    if len(operators) > 1:
        raise NotParsed('relations joined by both "and" and "or"')
    joined = Combined(operator=operators.pop(), items=tuple(_as_set(node) for node in nodes))
    return Named(name=names.pop(), node=joined)


def _is_condition(node: Node) -> bool:
    return isinstance(node, Span | Combined)


def _as_set(node: Node) -> Node:
    inner = node.node if isinstance(node, Named) else node
    return inner if _is_condition(inner) or isinstance(inner, Fixed) else Items(kind="set", items=(inner,))


# Relations.

_RELATIONS: Final = {
    "=": "=", "<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\ne": "!=", r"\in": "in", r"\approx": "~",
}  # fmt: skip
_UNKNOWN_RELATIONS: Final = frozenset(
    [r"\equiv", r"\sim", r"\cong", r"\to", r"\rightarrow", r"\implies", r"\Rightarrow", r"\mapsto", r"\iff", r"\mid",
     r"\subset", r"\subseteq", r"\supset", r"\notin", r"\propto", r"\pmod", r"\perp", r"\parallel"]
)  # fmt: skip
_INDEX: Final = r"(?:_(?:\{[^{}]*\}|[a-zA-Z0-9]))"
_LETTER: Final = rf"(?:\{{?[a-zA-Z]\}}?|\\(?!frac|sqrt|pi|ln|log|sin|cos|tan)[a-zA-Z]+\s?){_INDEX}?'*"
_VARIABLE: Final = re.compile(_LETTER)
_NAME: Final = re.compile(
    rf"(?:\\text\s*\{{[^{{}}]*\}}|[A-Za-z]{{4,}}"
    rf"|m?\s*\\(?:angle|triangle|overline|vec|hat|bar|widehat)\s*\{{?[A-Za-z' ]+\}}?"
    rf"|\|[A-Z]{{2,4}}\||[A-Z]{{2,4}}|\\frac\s*\{{d[a-z]?\}}\s*\{{d[a-z]\}}"
    rf"|{_LETTER}(?:\^\s*\{{?-1\}}?)?(?:\s*\([^()=<>]*\))?)"
)
_NAME_TUPLE: Final = re.compile(rf"\(\s*{_LETTER}(?:\s*,\s*{_LETTER})+\s*\)")
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def _relation(text: str, depth: int) -> Node | None:
    tokens = _tokens(text)
    sides, operators = _split(tokens, _relation_sign)
    sides = [side.strip() for side in sides]
    if not operators:
        return None
    if "unknown" in operators:
        raise NotParsed("a relation that is not known")
    if "~" in operators:
        return _approximation(sides, operators, depth)
    if not all(sides):
        raise NotParsed("a relation without a side")
    if operators == ["in"]:
        return Named(name=sides[0], node=_parse(sides[1], depth)) if _is_name(sides[0]) else _unknown()
    if "in" in operators:
        raise NotParsed("a membership inside a relation")
    if set(operators) == {"="}:
        return _equation(sides, depth)
    return _inequalities(sides, operators, depth)


def _relation_sign(token: str) -> str | None:
    return "unknown" if token in _UNKNOWN_RELATIONS else _RELATIONS.get(token)


def _unknown() -> Node:
    raise NotParsed("a relation that is not known")


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text) or _NAME_TUPLE.fullmatch(text))


def _approximation(sides: list[str], operators: list[str], depth: int) -> Node:
    """What stands before the sign, unless that is only a name."""
    cut = operators.index("~") + 1
    kept = sides[:cut]
    if cut == 1 and (_is_name(sides[0]) or not sides[0]):
        return _parse(sides[1], depth)
    joined = "".join(side + sign for side, sign in zip(kept, [*_written(operators[: cut - 1]), ""], strict=True))
    return _parse(joined, depth)


def _written(operators: Sequence[str]) -> list[str]:
    signs = {name: sign + " " for sign, name in _RELATIONS.items()}
    return [signs[operator] for operator in operators]


def _equation(sides: list[str], depth: int) -> Node:
    """A value with its name taken off, or an equation proper."""
    first, last = sides[0], sides[-1]
    if _is_name(first) and not _is_name(last) and not _mentions(last, first):
        return Named(name=_compact(first), node=_parse(last, depth))
    if _is_name(first) and _is_name(last) and not _VARIABLE.fullmatch(first):
        return Named(name=_compact(first), node=_parse(last, depth))
    if _is_name(last) and not _is_name(first) and len(sides) == 2 and _is_closed(first):  # noqa: PLR2004
        return Named(name=_compact(last), node=_parse(first, depth))
    if len(sides) > 2 or (_is_closed(first) and _is_closed(last)):  # noqa: PLR2004
        return _parse(last, depth)
    return Leaf(request=("relation", "=", first, last))


def _compact(text: str) -> str:
    return re.sub(r"[\s{}]", "", text)


def _mentions(text: str, name: str) -> bool:
    """Whether the variable `name` occurs in `text`."""
    if not _VARIABLE.fullmatch(name):
        return False
    plain = _TEXT_COMMAND.sub(" ", text)
    if not name.startswith("\\"):
        plain = re.sub(r"\\[a-zA-Z]+", " ", plain)
    return re.search(rf"{re.escape(name.strip())}(?![a-zA-Z_])", plain) is not None


def _is_closed(text: str) -> bool:
    try:
        return _plain_number(text) is not None or closed(text) is not None
    except (numeric.Unrepresentable, NotParsed):
        return False


def _inequalities(sides: list[str], operators: list[str], depth: int) -> Node:
    nodes = [
        _inequality(left, operator, right, depth)
        for left, operator, right in zip(sides[:-1], operators, sides[1:], strict=True)
    ]
    if len(nodes) == 1:
        return nodes[0]
    names = {node.name for node in nodes if isinstance(node, Named)}
    if len(names) == 1 and all(isinstance(node, Named) for node in nodes):
        return Named(name=names.pop(), node=Combined(operator="and", items=tuple(_as_set(node) for node in nodes)))
    return Combined(operator="and", items=tuple(nodes))


def _inequality(left: str, operator: str, right: str, depth: int) -> Node:
    """A half line if one side is a name and the other closed, else a request."""
    if operator == "=":
        return _equation([left, right], depth)
    if _is_name(right) and not _is_name(left):
        left, operator, right = right, _FLIPPED[operator], left
    size = _ABSOLUTE.fullmatch(left)
    if size and operator in _SIZES and _is_closed(right):
        return _sized(size[1], operator, right, depth)
    bound = _bound(right) if _is_name(left) else None
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


def _sized(inner: str, operator: str, bound: str, depth: int) -> Node:
    """|A| < b as -b < A < b, and |A| > b as its opposite."""
    above = _inequality(inner, operator, bound, depth)
    below = _inequality(inner, _FLIPPED[operator], f"-({bound})", depth)
    return Combined(operator=_SIZES[operator], items=(above, below))


def _bound(text: str) -> Leaf | None:
    node = _infinity(text) or _plain_number(text)
    if node is None and (_is_closed(text) or _TEXT_COMMAND.search(text) or r"\circ" in text):
        scalar = _scalar(text)
        node = scalar if isinstance(scalar, Leaf) and scalar.number is not None else None
    return node


# Set operations, plus-minus, ratios.

_SET_OPERATORS: Final = {
    r"\cup": "union", r"\cap": "intersection", r"\setminus": "difference", r"\backslash": "difference",
}  # fmt: skip


def _set_operation(text: str, depth: int) -> Node | None:
    parts, operators = _split(_tokens(text), _SET_OPERATORS.get)
    if not operators:
        return None
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many sets")
    node = _parse(parts[0], depth)
    for operator, part in zip(operators, parts[1:], strict=True):
        right = _parse(part, depth)
        if operator == "union" and isinstance(node, Combined) and node.operator == "union":
            node = Combined(operator="union", items=(*node.items, right))
        else:
            node = Combined(operator=operator, items=(node, right))
    return node


_SIGNS: Final = re.compile(r"\\(pm|mp)(?![a-zA-Z])")


def _plus_minus(text: str, depth: int) -> Node | None:
    """Both readings of an expression or tuple with plus-minus signs."""
    if not _SIGNS.search(text) or text.startswith(r"\{"):
        return None
    upper = _SIGNS.sub(lambda match: "+" if match[1] == "pm" else "-", text)
    lower = _SIGNS.sub(lambda match: "-" if match[1] == "pm" else "+", text)
    return Items(kind="set", items=(_parse(upper, depth), _parse(lower, depth)))


_CLOCK: Final = re.compile(r"\d{1,2}\s*:\s*[0-5]\d")


def _ratio(text: str, depth: int) -> Node | None:
    parts, colons = _split(_tokens(text), {":": ":"}.get)
    if not colons:
        return None
    if not all(_is_closed(part.strip()) for part in parts):
        raise NotParsed("a colon that is no ratio")
    if _CLOCK.fullmatch(text):
        return Words(text=re.sub(r"\s", "", text))
    return Items(kind="ratio", items=tuple(_parse(part, depth) for part in parts))


# Brackets.

_MATRIX: Final = re.compile(r"\\begin\s*\{([pbBvV]?(?:small)?matrix|array)\*?\}")
_ARRAY_COLUMNS: Final = re.compile(r"\s*\{[lcr|\s]*\}")
_ENTRY_WORDS: Final = frozenset([r"\hline"])
_REVERSED: Final = re.compile(r"\]\s*([^][]*)[,;]([^][]*)\[")


def _enclosed(text: str, depth: int) -> Node | None:
    if r"\begin" in text:
        return _matrix(text, depth)
    reversed_open = _REVERSED.fullmatch(text)
    if reversed_open:
        low, high = (_parse(part, depth) for part in reversed_open.groups())
        return Span(low=low, high=high, low_closed=False, high_closed=False)
    if text.startswith("Matrix(") and text.endswith(")"):
        return _parse(text[len("Matrix(") : -1], depth)
    tokens = _tokens(text)
    if not tokens or tokens[0] not in _OPENING or not _closes_last(tokens):
        return None
    inner = "".join(tokens[1:-1])
    return _bracketed(tokens[0], tokens[-1], inner, depth)


def _bracketed(opening: str, closing: str, inner: str, depth: int) -> Node | None:
    if opening in {r"\lfloor", r"\lceil"}:
        return None
    if not inner.strip():
        return Fixed(value=EMPTY) if opening in {"{", r"\{"} else _empty_brackets()
    if opening == r"\{":
        return _set(inner, depth)
    parts, commas = _split(_tokens(inner), {",": ",", ";": ","}.get)
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    if not commas:
        return _parse(inner, depth)
    if opening == "{":
        return _set(inner, depth)
    if opening == "[" and all(part.strip().startswith("[") for part in parts):
        return Grid(rows=tuple(_row(part, depth) for part in parts))
    nodes = tuple(_parse(part, depth) for part in parts)
    if len(nodes) == 2 and opening in {"(", "["} and (opening, closing) != ("(", ")"):  # noqa: PLR2004
        return Span(low=nodes[0], high=nodes[1], low_closed=opening == "[", high_closed=closing == "]")
    if (opening, closing) in {("(", ")"), ("[", "]"), (r"\langle", r"\rangle")}:
        return Items(kind="tuple", items=nodes)
    raise NotParsed("brackets that do not match")


def _empty_brackets() -> Node:
    raise NotParsed("empty brackets")


def _set(inner: str, depth: int) -> Node:
    """The members of a set, or the condition of one that is described."""
    described, bars = _split(_tokens(inner), {"|": "|", r"\mid": "|", ":": "|"}.get)
    if bars and len(described) == 2 and _is_name(described[0].split(r"\in")[0].strip()):  # noqa: PLR2004
        return _parse(described[1], depth)
    parts, _ = _split(_tokens(inner), _separator)
    if len(parts) > MAX_ITEMS:
        raise NotParsed("too many values")
    return Items(kind="set", items=tuple(_parse(part, depth) for part in parts if part.strip()))


def _row(text: str, depth: int) -> tuple[Node, ...]:
    tokens = _tokens(text.strip())
    if tokens[0] != "[" or not _closes_last(tokens):
        raise NotParsed("a matrix row that is no list")
    parts, _ = _split(tokens[1:-1], {",": ",", ";": ","}.get)
    return tuple(_parse(part, depth) for part in parts)


def _matrix(text: str, depth: int) -> Node | None:
    """A matrix environment, scaled by a closed factor before it; a determinant is computed."""
    match = _MATRIX.search(text)
    tokens = _tokens(text[match.start() :]) if match else []
    if match is None or not tokens[-1].startswith(r"\end") or not _closes_last(tokens):
        raise NotParsed("an environment that is no matrix")
    body = text[match.end() : text.rindex(r"\end")]
    if match[1] == "array":
        body = _ARRAY_COLUMNS.sub("", body, count=1)
    rows = [_entries(row) for row in _split(_tokens(body), {r"\\": "row"}.get)[0] if row.strip()]
    rows = [row for row in rows if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows) or sum(map(len, rows)) > MAX_ITEMS:
        raise NotParsed("a matrix whose rows differ in length")
    factor = text[: match.start()].strip().removesuffix(r"\cdot").strip()
    if match[1].startswith(("v", "V")):
        return _determinant(rows, factor, depth)
    if factor:
        rows = [[f"{'-' if factor == '-' else factor}({entry})" for entry in row] for row in rows]
    return Grid(rows=tuple(tuple(_parse(entry, depth) for entry in row) for row in rows))


def _entries(row: str) -> list[str]:
    tokens = [token for token in _tokens(row) if token not in _ENTRY_WORDS]
    return [part.strip() for part in _split(tokens, {"&": "&"}.get)[0]]


_MAX_DETERMINANT: Final = 6


def _determinant(rows: list[list[str]], factor: str, depth: int) -> Node:
    if len(rows) != len(rows[0]) or len(rows) > _MAX_DETERMINANT:
        raise NotParsed("a determinant that is not square or too large")
    numbers = [[_plain_number(entry) or _computed(entry) for entry in row] for row in rows]
    values = [[leaf.number for leaf in row if leaf is not None and leaf.number is not None] for row in numbers]
    if any(len(row) != len(rows) for row in values) or factor:
        if len(rows) != 2:  # noqa: PLR2004
            raise NotParsed("a determinant of expressions")
        (a, b), (c, d) = rows
        return _parse(f"{factor}(({a})({d})-({b})({c}))", depth)
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


# Single expressions with their units.

_INFINITY: Final = re.compile(r"([-+]?)\s*\\infty")
_SCALE: Final = re.compile(
    rf"(.*[\d)}}])\s*(?:\\text\s*\{{\s*)?({'|'.join(SCALES)})s?\b\s*\}}?\s*(.*)", re.IGNORECASE | re.DOTALL
)
_CODES: Final = r"(?:USD|EUR|GBP|INR|JPY|CNY|RMB|Rs\.?)(?![a-zA-Z])"
_CURRENCY: Final = re.compile(
    rf"([-+]?)\s*(?:\\text\s*\{{)?(US\$|[{re.escape(CURRENCY_SIGNS)}]|{_CODES})\}}?\s*(.*)", re.DOTALL
)
_SYMBOL: Final = re.compile(r"[a-zA-Z]")


def _infinity(text: str) -> Leaf | None:
    match = _INFINITY.fullmatch(text)
    return None if match is None else Leaf(known=MINUS_INFINITY if match[1] == "-" else INFINITY)


_ENGINEERING: Final = re.compile(r"[-+]?\s*\d*\.?\d+\s*[-+]\s*\d*\.?\d*\s*j")
_REAL_SYMBOLS: Final = {r"\mathbb{R}": REALS, r"\emptyset": EMPTY}


def _scalar(text: str) -> Node:
    if not text:
        raise NotParsed("nothing between separators")
    if text in _REAL_SYMBOLS:
        return Fixed(value=_REAL_SYMBOLS[text])
    if _ENGINEERING.fullmatch(text):
        text = text[:-1] + "i"
    simple = _infinity(text) or _with_currency(text) or _scaled(text, NO_MEASURE) or _computed(text)
    if simple is not None:
        return simple
    return _with_unit(text) or _expression(text, NO_MEASURE)


def _expression(text: str, unit: Measure) -> Leaf:
    if len(text) > MAX_EXPRESSION:
        raise NotParsed("too long an expression")
    if not _SYMBOL.search(text):
        raise NotParsed("not a mathematical expression")
    return Leaf(request=("value", text), measure=unit)


def _with_currency(text: str) -> Leaf | None:
    """A sign or code before or after the amount."""
    match = _CURRENCY.fullmatch(text)
    if match:
        sign, name, rest = match.groups()
        unit = measure(CURRENCY[name.lower()])
    elif text[-1] in CURRENCY_SIGNS:
        sign, rest, unit = "", text[:-1], measure(CURRENCY.get(text[-1], text[-1]))
    else:
        return None
    amount = rest.strip()
    leaf = _plain_number(amount) or _scaled(amount, unit or NO_MEASURE) or _computed(amount) or _with_unit(amount)
    if leaf is None or leaf.number is None or unit is None:
        return None
    number = numeric.negate(leaf.number) if sign == "-" else leaf.number
    return Leaf(number=number, measure=unit, long_decimal=leaf.long_decimal)


def _scaled(text: str, unit: Measure) -> Leaf | None:
    """A number with a scale word, and perhaps a unit after it: "1.5 million dollars"."""
    match = _SCALE.fullmatch(text)
    if match is None:
        return None
    leaf = _plain_number(match[1].strip()) or _computed(match[1].strip())
    if leaf is None or leaf.number is None:
        return None
    rest = _TEXT_COMMAND.sub(r"\1", match[3]).strip()
    after = measure(rest) if rest else NO_MEASURE
    if after is None:
        return None
    number = numeric.multiply(leaf.number, Fraction(SCALES[match[2].lower()]))
    return Leaf(number=number, measure=after if after.dimension else unit)


_UNIT_TOKEN: Final = re.compile(r"\\text\s*\{[^{}]*\}|[^\W\d_]+|\s+|[/^.{}'()-]|[23]|\\cdot|\\circ|\\mu")
_SINGLE_LETTERS: Final = frozenset("mgshL")
_MAX_UNIT_TOKENS: Final = 24


def _with_unit(text: str) -> Leaf | None:
    """An expression and the unit after it; a bare letter is a unit only after a space and a plain number."""
    tokens = _tokens(text)
    first = len(tokens)
    while first > 0 and len(tokens) - first < _MAX_UNIT_TOKENS and _UNIT_TOKEN.fullmatch(tokens[first - 1]):
        first -= 1
    for start in range(first, len(tokens)):
        if start and _starts_unit(tokens[start:]):
            before, after = "".join(tokens[:start]), "".join(tokens[start:])
            leaf = _unit_reading(before, after)
            if leaf is not None:
                return leaf
    return None


def _starts_unit(tokens: Tokens) -> bool:
    return tokens[0][0].isalpha() or tokens[0].startswith(r"\text") or "".join(tokens[:2]).startswith(r"^\circ")


def _unit_reading(before: str, after: str) -> Leaf | None:
    written_as_text = r"\text" in after or r"\circ" in after
    body = _TEXT_COMMAND.sub(r" \1 ", after).replace("^\\circ", "°").strip()
    unit = measure(re.sub(r"°\s+(?=[CF]\b)", "°", body))
    if unit is None or (not written_as_text and not _is_bare_unit(before, body)):
        return None
    stripped = before.strip()
    leaf = _plain_number(stripped) or _computed(stripped)
    if leaf is not None:
        return Leaf(number=leaf.number, known=leaf.known, measure=unit, long_decimal=leaf.long_decimal)
    return _expression(stripped, unit) if written_as_text and _SYMBOL.search(stripped) else None


def _is_bare_unit(before: str, body: str) -> bool:
    """Whether letters after a number are a unit rather than variables."""
    words = re.findall(r"[^\W\d_]+", body)
    spaced = before.endswith(" ")
    if any(word in FUNCTION_NAMES for word in words) or not (_is_closed(before.strip())):
        return False
    if len(words[0]) == 1 and words[0].isascii():
        return spaced and _plain_number(before.strip()) is not None and words[0] in _SINGLE_LETTERS
    return is_known(words[0]) or all(_is_word(word.lower()) or is_known(word) for word in words)


_MEASURED: Final = r"(\d[\d.]*)\s*(?:\\text\s*\{\s*)?([a-zA-Z]+)\.?(?:\s*\})?"
_COMPOUND: Final = re.compile(rf"{_MEASURED}(?:\s*,)?\s+(?:(?:\\text\s*\{{\s*)?and(?:\s*\}})?\s+)?{_MEASURED}")


def _compound(text: str, depth: int) -> Node | None:
    """Two measures of one dimension, the second smaller: "2 hours and 4 minutes"."""
    match = _COMPOUND.fullmatch(text)
    if match is None:
        return None
    large, small = measure(match[2]), measure(match[4])
    if large is None or small is None or large.dimension != small.dimension or not large.size > small.size:
        return None
    whole, part = _computed(match[1]), _computed(match[3])
    if whole is None or part is None or whole.number is None or part.number is None:
        return None
    return Leaf(number=whole.number + part.number * small.size / large.size, measure=large)
