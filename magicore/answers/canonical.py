"""The canonical key of an answer: what it is equal by, computed once, cached, and kept as text.

k answers need k keys and no comparison of pairs. `canonical_keys` reads many answers with few round trips to the
worker processes; reading never evaluates anything.
"""

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from magicore.answers import numeric, pool, structure, wording
from magicore.answers.arithmetic import LONG_DECIMAL, significant_digits
from magicore.answers.extract import Options, lettered
from magicore.answers.forms import Leaf, Node, NotParsed, Request, Value, compose, leaves
from magicore.answers.kinds import Kind
from magicore.answers.measures import NO_MEASURE, Measure, measure
from magicore.answers.notation import tidy
from magicore.answers.number import ParsedNumber, parse_number

CACHE_SIZE: Final = 50_000
CACHED_LENGTH: Final = 500
"""Longer answers are read anew each time."""
_SHOWN: Final = 200

MAX_WORDED: Final = 20_000
"""Characters of a choice, yes/no, date or text answer that are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """What an answer is equal by. Keys with the same value and unit are equal and hash alike.

    Attributes:
        value: The canonical value, JSON, in base units.
        unit: The dimension it has ("m", "$", "°"), empty for none.
        bare: The value as written, before the unit was applied: what an answer without a unit must show to agree.
        approximate: Whether a decimal of 12 or more digits stands in it, which agrees with every value it rounds to.
        reason: Why the answer could not be read, None if it was. Such a key equals keys of the same text only.
    """

    value: str
    unit: str = ""
    bare: str | None = field(default=None, compare=False)
    approximate: bool = field(default=False, compare=False)
    reason: str | None = field(default=None, compare=False)

    @property
    def parsed(self) -> bool:
        """Whether the answer was understood."""
        return self.reason is None

    def to_text(self) -> str:
        """The key as one line of JSON."""
        return json.dumps([self.value, self.unit, self.bare, self.approximate, self.reason])

    @classmethod
    def from_text(cls, text: str) -> "Key":
        """The key that `to_text` wrote.

        Raises:
            ValueError: `text` is no such line.
        """
        parts = json.loads(text)
        if not isinstance(parts, list) or len(parts) != len(cls.__dataclass_fields__):
            raise ValueError(f"not the text of an answer's key: {text[:_SHOWN]!r}")
        value, unit, bare, approximate, reason = parts
        return cls(value=value, unit=unit, bare=bare, approximate=approximate, reason=reason)


def canonical_key(answer: str | None, kind: Kind, options: Options | None = None) -> Key | None:
    """The key of one answer, None for a missing or blank one.

    Args:
        answer: What was extracted from a response.
        kind: How to read it.
        options: For "choice": the options' texts by letter, or in order.

    Raises:
        WorkerError: The answer needs a worker process and none can be started.
    """
    return canonical_keys([answer], kind, options)[0]


def canonical_keys(answers: Sequence[str | None], kind: Kind, options: Options | None = None) -> list[Key | None]:
    """The keys of many answers, in order; see `canonical_key`."""
    listed = tuple((lettered(options) or {}).items())
    wanted = {answer: (answer, kind, listed) for answer in answers if answer is not None and answer.strip()}
    keys = {answer: key for answer, place in wanted.items() if (key := _cache.get(place)) is not None}
    pending: dict[str, Node] = {}
    for answer in wanted:
        if answer not in keys:
            read = _read(answer, kind, listed)
            if isinstance(read, Key):
                keys[answer] = read
            else:
                pending[answer] = read
    replies = _replies(pending.values())
    for answer, node in pending.items():
        keys[answer] = _key(answer, node, replies)
    for answer, place in wanted.items():
        if len(answer) <= CACHED_LENGTH and keys[answer].reason not in _PASSING:
            _cache.put(place, keys[answer])
    return [None if answer is None else keys.get(answer) for answer in answers]


_PASSING: Final = frozenset(["the worker ended"])
"""Reasons that say nothing of the answer itself and are not remembered."""

Listed: TypeAlias = tuple[tuple[str, str], ...]


class _Cache:
    """The keys used most recently; safe from any thread."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Any, Key] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Any) -> Key | None:
        with self._lock:
            key = self._entries.get(place)
            if key is not None:
                self._entries.move_to_end(place)
            return key

    def put(self, place: Any, key: Key) -> None:
        with self._lock:
            self._entries[place] = key
            self._entries.move_to_end(place)
            while len(self._entries) > CACHE_SIZE:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


_cache = _Cache()


def clear_cache() -> None:
    """Forgets all keys (for measurements)."""
    _cache.clear()


# Reading.


def _read(answer: str, kind: Kind, options: Listed) -> Key | Node:
    """The key, or a node whose leaves have to be asked for."""
    if kind not in {"number", "math"}:
        return _worded(answer, kind, options)
    if _PLAIN_INTEGER.fullmatch(answer):
        return Key(value=f'"{int(answer)}"')
    try:
        node = (_number(answer) if kind == "number" else None) or structure.parse(tidy(answer))
    except (NotParsed, numeric.Unrepresentable) as error:
        return _unparsed(answer, str(error))
    return node if any(leaf.request for leaf in leaves(node)) else _key(answer, node, {})


_PLAIN_INTEGER: Final = re.compile(r"-?[0-9]{1,300}")
"""Most answers are no more than this and need no further reading."""


def _worded(answer: str, kind: Kind, options: Listed) -> Key:
    value = wording.READERS[kind](answer[:MAX_WORDED], dict(options) if options else None)
    return _unparsed(answer.casefold(), f"no {kind}") if value is None else Key(value=json.dumps([kind, value]))


def _number(answer: str) -> Leaf | None:
    parsed = parse_number(answer)
    if parsed is None:
        return None
    unit = measure(parsed.unit) if parsed.unit else NO_MEASURE
    return Leaf(number=parsed.value, measure=unit or NO_MEASURE, long_decimal=_is_long(parsed))


def _is_long(parsed: ParsedNumber) -> bool:
    if not parsed.decimals:
        return False
    scaled = parsed.value * (100 if parsed.percent else 1) * 10**parsed.decimals
    return significant_digits(f"{abs(int(scaled))}.") >= LONG_DECIMAL


def _unparsed(answer: str, reason: str) -> Key:
    """A key that equals only keys of the same text."""
    text = "".join(answer.split())
    if len(text) > _SHOWN:
        text = "sha256:" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return Key(value=json.dumps(["unparsed", text]), reason=reason)


def _replies(nodes: Iterable[Node]) -> dict[Request, pool.Reply]:
    requests = list(dict.fromkeys(leaf.request for node in nodes for leaf in leaves(node) if leaf.request))
    return dict(zip(requests, pool.answer(requests), strict=True))


def _key(answer: str, node: Node, replies: Mapping[Request, pool.Reply]) -> Key:
    """The key of a node whose leaves are known."""
    found = list(leaves(node))
    measures = {leaf.measure for leaf in found if leaf.measure.dimension}
    try:
        if len(measures) != 1:
            unit, bare = _shared_dimension(measures), None
            value = compose(node, lambda leaf: _leaf_value(leaf, leaf.measure, replies, tagged=not unit))
        else:
            common = measures.pop()
            scalable = all(leaf.number is not None for leaf in found)
            unit = common.dimension if scalable else f"{common.size} {common.dimension}"
            bare = json.dumps(compose(node, lambda leaf: _leaf_value(leaf, NO_MEASURE, replies)))
            value = compose(node, lambda leaf: _leaf_value(leaf, common if scalable else NO_MEASURE, replies))
    except (NotParsed, numeric.Unrepresentable) as error:
        return _unparsed(answer, str(error))
    approximate = any(leaf.long_decimal for leaf in found)
    return Key(value=json.dumps(value), unit=unit, bare=bare, approximate=approximate)


def _shared_dimension(measures: set[Measure]) -> str:
    """The dimension of all units, empty if there is none or more than one."""
    dimensions = {unit.dimension for unit in measures}
    return dimensions.pop() if len(dimensions) == 1 else ""


def _leaf_value(leaf: Leaf, unit: Measure, replies: Mapping[Request, pool.Reply], *, tagged: bool = False) -> Value:
    """The value of a leaf in base units; `tagged` with its dimension where an answer mixes several."""
    if leaf.known is not None:
        return leaf.known
    if leaf.request is not None:
        reply = replies[leaf.request]
        if reply.value is None:
            raise NotParsed(reply.reason or "not parsed")
        return reply.value
    value = numeric.encode(leaf.number if unit.size == 1 else numeric.multiply(leaf.number, unit.size))
    return ["unit", unit.dimension, value] if tagged and unit.dimension else value
