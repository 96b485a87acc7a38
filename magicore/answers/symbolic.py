r"""Expressions with symbols, parsed by Math-Verify's LaTeX grammar, told apart by their values. Runs in workers only.

Two expressions are equal where both are defined if they agree at `POINTS` fixed rational points, to 45 digits; the
points depend on the symbols' names alone, so that one parse of each expression is enough. Even roots and logarithms
of negative numbers are undefined unless the imaginary unit is written, so \sqrt{x^2} is not x. Nothing is simplified,
solved or evaluated by SymPy; its tree is walked and computed by `numeric`.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias

from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
from sympy import Basic, srepr
from sympy.core.function import AppliedUndef

from magicore.answers import forms, numeric
from magicore.answers.forms import INFINITY, MINUS_INFINITY, NotParsed, Request, Value
from magicore.answers.numeric import Number, Unrepresentable

POINTS: Final = 5
MAX_EXPRESSION: Final = 6000
MAX_NESTING: Final = 60
MAX_TERMS: Final = 2000
_CONVERSION: Final = ConversionConfig(interpret_as_mixed_fractions=True, lowercase_symbols=False)
_REFUSED: Final = re.compile(
    r"\\(?:begin|end|text|operatorname|gcd|lcm|det|bmod|pmod|mod|in|cup|cap|vec|mathbb|ldots)(?![a-zA-Z])"
)

Environment: TypeAlias = Mapping[str, Number]


class NotReal(Unrepresentable):
    """An expression without the imaginary unit has no real value at a point."""


def answer(request: Request) -> Value:
    """The canonical value that `request` asks for.

    Raises:
        NotParsed: The text is not understood.
        Unrepresentable: Its value cannot be computed within bounds.
    """
    if request[0] == "value":
        return _Function(request[1]).value()
    _, operator, left, right = request
    return _relation(operator, _Function(left), _Function(right))


# From the tidy notation to the converter's.

_TOKEN: Final = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d*)?|\.\d+|\s+|.", re.DOTALL)
_DEGREES: Final = re.compile(r"(\d+(?:\.\d+)?|(?<![a-zA-Z\\])[a-zA-Z]|\\[a-zA-Z]+)\s*\^\s*\\circ\s?")
_GAMMA: Final = re.compile(r"\\gamma(?![a-zA-Z])(?!\s*_)")
_PRIMES: Final = re.compile(r"([a-zA-Z])\s*(?:\^\s*\{?\s*((?:\\prime\s*)+)\}?|('+))")


def dialect(text: str) -> str:
    r"""`text` as the converter reads it the way it is meant: braces around exponents, `a/b` as `\frac`, radians."""
    text = _PRIMES.sub(_primed, text)
    if "'" in text:
        raise NotParsed("a prime that belongs to no letter")
    text = _GAMMA.sub(r"\\vartheta_{gamma}", text)  # the converter takes it for Euler's constant
    text = _DEGREES.sub(r"(\1\\cdot\\frac{\\pi}{180})", text).replace("%", r"\cdot\frac{1}{100}")
    return _rewritten(_TOKEN.findall(text))


def _primed(match: re.Match[str]) -> str:
    """A letter with primes as a letter with an index, which the converter keeps."""
    count = len(match[3]) if match[3] else match[2].count("\\")
    return f"{match[1]}_{{prime{count}}}"


def _rewritten(tokens: list[str]) -> str:
    out: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token == "/":
            end = _factor_end(tokens, index + 1)
            out.append(r"\cdot\frac{1}{" + _rewritten(tokens[index + 1 : end]) + "}")
            index = end
        elif token == "^" or (token == r"\sqrt" and _next_solid(tokens, index + 1) not in {"[", "{"}):
            end = _exponent_end(tokens, index + 1)
            out.append(token + "{" + _rewritten(_bare(tokens[index + 1 : end])) + "}")
            index = end
        else:
            out.append(token)
            index += 1
    return "".join(out)


def _next_solid(tokens: list[str], index: int) -> str:
    while index < len(tokens) and tokens[index].isspace():
        index += 1
    return tokens[index] if index < len(tokens) else ""


def _bare(tokens: list[str]) -> list[str]:
    """`tokens` without the brackets around all of them."""
    solid = [token for token in tokens if not token.isspace()]
    if solid and solid[0] in {"{", "("} and _group_end(solid, 0) == len(solid):
        return solid[1:-1]
    return tokens


_CLOSERS: Final = {"{": "}", "(": ")", "[": "]"}


def _group_end(tokens: list[str], index: int) -> int:
    """The place after the bracket group that starts at `index`."""
    opening, closing, depth = tokens[index], _CLOSERS[tokens[index]], 0
    for place in range(index, len(tokens)):
        depth += (tokens[place] == opening) - (tokens[place] == closing)
        if depth == 0:
            return place + 1
    raise NotParsed("brackets that do not match")


def _exponent_end(tokens: list[str], index: int) -> int:
    """The place after an exponent: signs, then one group, number, letter or command with its arguments."""
    while index < len(tokens) and (tokens[index].isspace() or tokens[index] in {"+", "-"}):
        index += 1
    return _atom_end(tokens, index)


def _factor_end(tokens: list[str], index: int) -> int:
    """The place after a factor: an atom with factorials and exponent; a function takes in what it applies to."""
    end = _exponent_end(tokens, index)
    while end < len(tokens) and (tokens[end] in {"!", "^"} or tokens[end].isspace()):
        if tokens[end].isspace() and _next_solid(tokens, end) not in {"!", "^"}:
            break
        end = _exponent_end(tokens, end + 1) if tokens[end] == "^" else end + 1
    name = tokens[index : index + 1]
    if name and name[0][1:] in _WRITTEN_FUNCTIONS and end < len(tokens):
        return _factor_end(tokens, end)
    return end


def _atom_end(tokens: list[str], index: int) -> int:
    if index >= len(tokens):
        raise NotParsed("an operator without an operand")
    token = tokens[index]
    if token in _CLOSERS:
        return _group_end(tokens, index)
    index += 1
    if token.startswith("\\"):
        while index < len(tokens) and tokens[index] in {"{", "["}:
            index = _group_end(tokens, index)
        return index
    if index < len(tokens) and tokens[index] == "_":
        return _exponent_end(tokens, index + 1)
    return index


# Evaluation.


class _Function:
    """An expression as a function of its symbols.

    Attributes:
        symbols: Names of the symbols that take a value at each point.
        imaginary: Whether the imaginary unit is written in it.
    """

    def __init__(self, text: str) -> None:
        self.tree = _tree(text)
        nodes = list(_walk(self.tree))
        names = {node.name for node in nodes if node.is_Symbol}
        self.symbols = sorted((names - {"i"}) | _opaque_names(nodes))
        self.imaginary = "i" in names or any(type(node).__name__ == "ImaginaryUnit" for node in nodes)

    def at(self, point: int, given: Environment | None = None, *, real: bool = True) -> Number:
        """The value at a fixed point, with `given` values instead of some of the symbols' own."""
        environment = {name: coordinate(name, point) for name in self.symbols} | dict(given or {})
        value = _Evaluation(environment, real=real and not self.imaginary).of(self.tree)
        return numeric.snapped(value)

    def value(self) -> Value:
        infinite = {"Infinity": INFINITY, "NegativeInfinity": MINUS_INFINITY}.get(type(self.tree).__name__)
        if infinite:
            return infinite
        if not self.symbols:
            return numeric.encode(self.at(0, real=False))
        return fingerprint(lambda point, real: self.at(point, real=real))


def fingerprint(at: Callable[[int, bool], Number]) -> Value:
    """The values at all points; one number if they do not differ. Where nothing is real, complex values."""
    numbers = [_defined(at, point, real=True) for point in range(POINTS)]
    if all(number is None for number in numbers):
        numbers = [_defined(at, point, real=False) for point in range(POINTS)]
    if all(number is None for number in numbers):
        raise Unrepresentable("undefined at every point")
    values = [None if number is None else numeric.encode_rounded(number) for number in numbers]
    if all(value == values[0] for value in values):
        return numeric.encode(numbers[0])
    return ["expression", *values]


def _defined(at: Callable[[int, bool], Number], point: int, *, real: bool) -> Number | None:
    try:
        return at(point, real)
    except NotReal:
        return None
    except Unrepresentable as error:
        if str(error) in {"division by zero", "logarithm of zero"}:
            return None
        raise


def coordinate(name: str, point: int) -> Fraction:
    """The value of the symbol `name` at a point: rational with an odd denominator, size 0.7 to 1.45, either sign."""
    digest = hashlib.sha256(f"{point}:{name}".encode()).digest()
    size = Fraction(7, 10) + Fraction(3, 4) * Fraction(int.from_bytes(digest[:4], "big"), 2**32)
    size = Fraction(round(size * _DENOMINATOR), _DENOMINATOR)
    signs = (1, -1, 1, -1 if digest[4] % 2 else 1, -1 if digest[5] % 2 else 1)
    return signs[point] * size


_DENOMINATOR: Final = 9973


def _tree(text: str) -> Basic:
    if len(text) > MAX_EXPRESSION:
        raise NotParsed("too long an expression")
    refused = _REFUSED.search(text)
    if refused:
        raise NotParsed(f"{refused[0]} inside an expression")
    written = dialect(text)
    if _nesting(written) > MAX_NESTING:
        raise NotParsed("too deeply nested")
    try:
        tree = latex2sympy(written, is_real=True, normalization_config=None, conversion_config=_CONVERSION)
    except (MemoryError, TimeoutError):
        raise
    except Exception as error:  # the grammar raises bare Exception, SymPy almost anything
        raise NotParsed("not a mathematical expression") from error
    if not isinstance(tree, Basic) or tree.is_Relational or tree.is_Boolean or getattr(tree, "is_set", False):
        raise NotParsed("not a single expression")
    return tree


def _nesting(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        deepest = max(deepest, depth)
    return deepest


def _walk(tree: Basic) -> list[Basic]:
    """The nodes that are computed; an opaque node is one, whatever is in it."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if not _is_opaque(node):
            stack.extend(node.args)
    return nodes


def _is_opaque(node: Basic) -> bool:
    name = type(node).__name__
    return name in {"Integral", "Limit", "Derivative", "Subs"} or (name in {"Sum", "Product"} and _range(node) is None)


def _opaque_names(nodes: list[Basic]) -> set[str]:
    names = {srepr(node) for node in nodes if _is_opaque(node)}
    return names | {f"{node.func.__name__}()" for node in nodes if isinstance(node, AppliedUndef)}


def _range(node: Basic) -> tuple[str, int, int] | None:
    """Index, first and last of a short finite sum or product."""
    if len(node.args) != 2:
        return None
    index, low, high = node.args[1]
    if not (low.is_Integer and high.is_Integer) or not 0 <= int(high) - int(low) < MAX_TERMS:
        return None
    return index.name, int(low), int(high)


class _Evaluation:
    """The value of a tree at one point."""

    def __init__(self, environment: Mapping[str, Number], *, real: bool) -> None:
        self.environment = dict(environment)
        self.real = real

    def of(self, node: Basic) -> Number:
        if node.is_Symbol:
            return self.symbol(node.name)
        if node.is_Rational:
            return Fraction(int(node.p), int(node.q))
        if node.is_Float:
            return Fraction(str(node))
        if _is_opaque(node):
            return self.environment[srepr(node)]
        name = type(node).__name__
        if name in _CONSTANTS:
            return numeric.constant(_CONSTANTS[name])
        if name in {"Sum", "Product"}:
            return self.repeated(node, name)
        arguments = [self.of(argument) for argument in node.args]
        if isinstance(node, AppliedUndef):
            return self.unknown(node.func.__name__, arguments)
        operation = _OPERATIONS.get(name)
        if operation is None:
            raise NotParsed(f"{name} is not known")
        return self.checked(operation(*arguments))

    def checked(self, value: Number) -> Number:
        if self.real and numeric.is_complex(value):
            raise NotReal("not real")
        return value

    def symbol(self, name: str) -> Number:
        if name in self.environment:
            return self.environment[name]
        if name == "i":
            return numeric.constant("i")
        raise NotParsed(f"{name} has no value")

    def unknown(self, name: str, arguments: list[Number]) -> Number:
        """A function that is not known: one value for each name, point and arguments."""
        written = ",".join(str(numeric.encode_rounded(argument)) for argument in arguments)
        return coordinate(f"{self.environment[f'{name}()']}({written})", 0)

    def repeated(self, node: Basic, name: str) -> Number:
        limits = _range(node)
        if limits is None:
            raise NotParsed("a sum without bounds")
        index, low, high = limits
        outer = self.environment.get(index)
        combine = numeric.add if name == "Sum" else numeric.multiply
        total: Number = Fraction(0 if name == "Sum" else 1)
        for step in range(low, high + 1):
            self.environment[index] = Fraction(step)
            total = combine(total, self.of(node.args[0]))
        if outer is None:
            del self.environment[index]
        else:
            self.environment[index] = outer
        return total


def _sum(*terms: Number) -> Number:
    total: Number = Fraction(0)
    for term in terms:
        total = numeric.add(total, term)
    return total


def _product(*factors: Number) -> Number:
    total: Number = Fraction(1)
    for factor in factors:
        total = numeric.multiply(total, factor)
    return total


def _extreme(choose: Callable[..., Number]) -> Callable[..., Number]:
    def chosen(*values: Number) -> Number:
        if any(numeric.is_complex(value) for value in values):
            raise NotReal("not real")
        return choose(values, key=numeric.order)

    return chosen


def _applied(name: str) -> Callable[[Number], Number]:
    return lambda argument: numeric.apply(name, argument)


_CONSTANTS: Final = {"Pi": "pi", "Exp1": "e", "ImaginaryUnit": "i"}
_OPERATIONS: Final[dict[str, Callable[..., Number]]] = {
    "Add": _sum,
    "Mul": _product,
    "Pow": numeric.power,
    "exp": numeric.exponential,
    "log": numeric.logarithm,
    "Abs": numeric.absolute,
    "floor": numeric.floor,
    "ceiling": numeric.ceiling,
    "factorial": numeric.factorial,
    "gamma": numeric.gamma,
    "binomial": numeric.binomial,
    "Max": _extreme(max),
    "Min": _extreme(min),
    "UnevaluatedExpr": lambda value: value,
    **{name: _applied(name) for name in numeric.UNARY_FUNCTIONS},
}
_WRITTEN_FUNCTIONS: Final = frozenset([*numeric.UNARY_FUNCTIONS, "ln", "log", "exp"])


# Relations.

_STRICT: Final = {"<": True, ">": True, "<=": False, ">=": False}


def _relation(operator: str, left: _Function, right: _Function) -> Value:
    """A solution if the relation is linear in one variable, else its two sides' difference up to a factor."""
    if operator in {">", ">="}:
        left, right = right, left
    symbols = sorted({*left.symbols, *right.symbols})

    def difference(point: int, real: bool = True, given: Environment | None = None) -> Number:
        return numeric.add(left.at(point, given, real=real), numeric.negate(right.at(point, given, real=real)))

    if not symbols:
        raise NotParsed("a relation without a variable")
    if len(symbols) == 1 or (operator == "=" and "y" in symbols):
        variable = symbols[0] if len(symbols) == 1 else "y"
        solved = _solved(operator, variable, difference, alone=len(symbols) == 1)
        if solved is None and len(symbols) == 1 and operator != "=":
            solved = _quadratic(operator, variable, difference)
        if solved is not None:
            return solved
    return _scaled(operator, difference)


def _solved(operator: str, variable: str, difference: Callable[..., Number], *, alone: bool) -> Value | None:
    """The solution for `variable`, None if the difference of the sides is not linear in it with a constant slope."""
    try:
        lines = [_line(variable, difference, point) for point in range(POINTS)]
    except Unrepresentable:
        return None
    slopes = {str(numeric.encode_rounded(slope)) if slope is not None else None for slope, _ in lines}
    slope = lines[0][0]
    if len(slopes) != 1 or slope is None or slope == 0 or numeric.is_complex(slope):
        return None
    roots = [numeric.negate(numeric.divide(start, slope)) for _, start in lines]
    solution = fingerprint(lambda point, real: roots[point])
    if operator == "=" or not alone:
        return solution if operator == "=" else None
    if not isinstance(solution, str):
        return None
    return _half_line(operator, solution, rising=bool(numeric.order(slope) > 0))


def _half_line(operator: str, root: str, *, rising: bool) -> Value:
    """Where a line that crosses zero at `root` is below (or not above, or not at) zero."""
    if operator == "!=":
        return ["region", [[MINUS_INFINITY, False, root, False], [root, False, INFINITY, False]]]
    closed = not _STRICT[operator]
    return ["region", [[MINUS_INFINITY, False, root, closed] if rising else [root, closed, INFINITY, False]]]


def _line(variable: str, difference: Callable[..., Number], point: int) -> tuple[Number | None, Number]:
    """Slope and start at a point; no slope if three points are not on a line."""
    start, one, two = (difference(point, given={variable: Fraction(step)}) for step in range(3))
    slope = numeric.add(one, numeric.negate(start))
    again = numeric.add(two, numeric.negate(one))
    return (slope if numeric.encode_rounded(slope) == numeric.encode_rounded(again) else None), start


def _quadratic(operator: str, variable: str, difference: Callable[..., Number]) -> Value | None:
    """The reals where a quadratic is below (or not above, or not at) zero; None if the difference is no quadratic."""
    try:
        values = [difference(0, given={variable: Fraction(step)}) for step in range(5)]
        first = [numeric.add(b, numeric.negate(a)) for a, b in pairwise(values)]
        second = [numeric.add(b, numeric.negate(a)) for a, b in pairwise(first)]
    except Unrepresentable:
        return None
    if len({str(numeric.encode_rounded(value)) for value in second}) != 1 or second[0] == 0:
        return None
    if any(numeric.is_complex(value) for value in values):
        return None
    # With F(0) = c, the first difference a + b and the second 2a, the roots are (-b -+ sqrt(b^2 - 4ac)) / 2a.
    double = second[0]
    slope = numeric.add(first[0], numeric.divide(double, Fraction(-2)))
    product = numeric.multiply(Fraction(-2), numeric.multiply(double, values[0]))
    square = numeric.add(numeric.multiply(slope, slope), product)
    roots: list[str] = []
    if numeric.order(square) >= 0:
        spread = numeric.power(square, Fraction(1, 2)) if square != 0 else Fraction(0)
        sides = (numeric.negate(spread), spread)
        roots = [str(numeric.encode(numeric.divide(numeric.add(numeric.negate(slope), s), double))) for s in sides]
    return _between(operator, roots, opens_up=bool(numeric.order(double) > 0))


def _between(operator: str, roots: list[str], *, opens_up: bool) -> Value:
    """Where a parabola with these roots is below (or not above, or not at) zero."""
    points = forms.region([[root, True, root, True] for root in roots])
    if operator == "!=":
        return forms.complement(points)
    low, high = sorted(roots, key=forms.size) if roots else ("0", "0")
    below = forms.region([[low, False, high, False]] if roots else [])
    if not opens_up:
        below = forms.complement(forms.union(below, points))
    return below if _STRICT[operator] else forms.union(below, points)


def _scaled(operator: str, difference: Callable[..., Number]) -> Value:
    """The sides' difference divided by its first value: by its size alone for an inequality, whose sign matters."""
    values = [_number_or_none(difference, point) for point in range(POINTS)]
    first = next((value for value in values if value is not None and value != 0), None)
    if first is None:
        raise NotParsed("a relation that always or never holds")
    unit = first if operator in {"=", "!="} else numeric.absolute(first)
    scaled = [None if value is None else numeric.encode_rounded(numeric.divide(value, unit)) for value in values]
    kind = {"=": "equation", "!=": "inequation"}.get(operator, "strict" if _STRICT.get(operator) else "weak")
    return [kind, *scaled]


def _number_or_none(difference: Callable[..., Number], point: int) -> Number | None:
    try:
        return difference(point)
    except NotReal:
        return None
