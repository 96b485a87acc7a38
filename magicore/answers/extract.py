"""Reading a response: what it says its answer is, where it says so, or why it says none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never, get_args

from magicore.answers.choice import ChoiceReader
from magicore.answers.date import DateReader
from magicore.answers.kinds import KINDS, Kind
from magicore.answers.markers import Marker, Site, sites
from magicore.answers.math_reading import MathReader
from magicore.answers.number_reading import NumberReader
from magicore.answers.readings import Found, Nothing, Reader, Reason
from magicore.answers.response import Response, prepare
from magicore.answers.text import TextReader
from magicore.answers.yesno import YesNoReader

Certainty = Literal["stated", "boxed", "fallback"]
"""How an answer was given: in a box or tag, after words that announce it, or only as what the response ends on."""

Asked = Literal["boxed", "tag", "hash", "final-answer", "answer", "letter"]
"""The format that a prompt asked for: a box, a tag, "####", "final answer", "Answer:", a lone letter."""

Options = Mapping[str, str] | Sequence[str]
"""Options of a choice question: letter to text, or texts in order from A; "" for a text that is not known."""

MOST_SITES: Final = 64
"""How many places that announce an answer are read, from the last one back."""

_MARKERS_OF: Final[Mapping[str, frozenset[Marker]]] = {
    "boxed": frozenset({"boxed"}),
    "tag": frozenset({"tag"}),
    "hash": frozenset({"hash"}),
    "final-answer": frozenset({"final-answer"}),
    "answer": frozenset({"final-answer", "answer-colon", "answer-is"}),
    "letter": frozenset(),
}


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """What was read from a response.

    Attributes:
        value: The answer in canonical text, or None. Numbers: a decimal or fraction, a percentage with its sign.
            Mathematics, dates and text: as written, trimmed. Choices: upper-case letters. Yes/no: "yes" or "no".
        text: The answer as written.
        span: Where `text` stands in the response, as start and end offsets.
        marker: What it was read from; for no answer, the place that said so, if one did.
        certainty: How the answer was given; None without an answer.
        reason: Why there is no answer; None with one.
    """

    value: str | None
    text: str | None = None
    span: tuple[int, int] | None = None
    marker: Marker | None = None
    certainty: Certainty | None = None
    reason: Reason | None = None


def extract(
    text: str, kind: Kind, *, options: Options | None = None, stop: str = "stop", asked: str | None = None
) -> Extraction:
    """Reads the answer that a response states.

    The last place that announces an answer wins: a box, a tag, "####", "the final answer is", "Answer:" or "the answer
    is" (also in several other languages); without one, what the closing sentences say. Two different answers, a range,
    a refusal, an option that does not exist give no answer, with the reason.

    Args:
        text: The response. A thinking part before `</think>` and turns of other speakers are not read.
        kind: What sort of answer is looked for.
        options: The options of a choice question; without them any letter but X may be one.
        stop: Why the chain stopped. For anything but "stop" an answer counts only if it was stated and something
            follows it, so that a chain cut off in the middle has none.
        asked: The format that the prompt asked for (one of `Asked`), if known; its places are read before all others.

    Returns:
        The answer with its place, or the reason why there is none.

    Raises:
        ValueError: For a kind or an asked format that does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is no answer kind; use one of {', '.join(KINDS)}")
    if asked is not None and asked not in _MARKERS_OF:
        raise ValueError(f"asked={asked!r} is no answer format; use one of {', '.join(get_args(Asked))}")
    complete = stop == "stop"
    response = prepare(text, cut=not complete)
    reader = _reader(response, kind, options)
    wanted = _MARKERS_OF[asked] if asked else frozenset()
    for site in sorted(reversed(sites(response.text)), key=lambda site: site.marker not in wanted)[:MOST_SITES]:
        reading = reader.read(site)
        if isinstance(reading, Found) and not complete and not _survives(reading, site, response):
            return Extraction(value=None, marker=site.marker, reason="truncated")
        if reading is not None:
            return _extraction(reading, site.marker, response, "boxed" if site.exact else "stated")
    if not complete:
        return Extraction(value=None, reason="truncated")
    return _extraction(reader.fallback() or Nothing(reason="no answer stated"), None, response, "fallback")


def _reader(response: Response, kind: Kind, options: Options | None) -> Reader:
    match kind:
        case "number":
            return NumberReader(response=response)
        case "math":
            return MathReader(response=response)
        case "choice":
            return ChoiceReader(response=response, options=lettered(options))
        case "yesno":
            return YesNoReader(response=response)
        case "date":
            return DateReader(response=response)
        case "text":
            return TextReader(response=response)
        case _:
            assert_never(kind)


def lettered(options: Options | None) -> dict[str, str] | None:
    """Options as upper-case letter to text."""
    if options is None:
        return None
    if isinstance(options, Mapping):
        return {letter.strip(" ().").upper(): text for letter, text in options.items()}
    return {chr(ord("A") + index): text for index, text in enumerate(options)}


def _survives(found: Found, site: Site, response: Response) -> bool:
    """Whether an answer in a chain that was cut off is whole: closed, or followed by something."""
    return site.exact or bool(response.text[found.end :].strip(" *_$.)]}"))


def _extraction(
    reading: Found | Nothing, marker: Marker | None, response: Response, certainty: Certainty
) -> Extraction:
    if isinstance(reading, Nothing):
        return Extraction(value=None, marker=marker, reason=reading.reason)
    return Extraction(
        value=reading.value,
        text=response.raw[reading.start : reading.end],
        span=(reading.start, reading.end),
        marker=reading.marker or marker or "last-sentence",
        certainty=certainty,
    )
