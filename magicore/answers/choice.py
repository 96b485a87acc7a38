"""Choice questions: the letter that a response chooses, as apart from letters that it mentions or rejects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from magicore.answers.latex import without_wrappers
from magicore.answers.markers import Site
from magicore.answers.number import parse_number
from magicore.answers.readings import Found, Nothing, Reading, Reason
from magicore.answers.refusals import declines
from magicore.answers.response import Response, Sentence, closing_sentences, sentences

_MENTION: Final = re.compile(
    r"""
    (?P<named>(?:\b(?:options?|choices?|letter|alternative|answer)|\u9009\u9879|\u9078\u629e\u80a2|\u9009|\u9078)\s?[:\s]?["'*(\[]{0,3})(?P<n>[A-Za-z])(?![A-Za-z0-9_'])
    | (?<![A-Za-z0-9_)])\(\s?["'*]{0,2}(?P<b>[A-Za-z])["'*]{0,2}\s?\)
    | (?<![\w\]])\[\s?(?P<s>[A-Z])[\])]
    | \\(?:text|mathrm|textbf|mathbf)\s?\{\s?\(?(?P<t>[A-Z])\)?[\s.:}]
    | \*\*\(?(?P<m>[A-Z])\)?[.:)]?\*\*
    | (?<![A-Za-z0-9_(/\\^$'-])(?P<c>[A-Z])\)
    | (?<![A-Za-z0-9_([/\\^{$'.-])(?P<bare>[A-Z])(?![A-Za-z0-9_'^=+*/({-])
    """,
    re.VERBOSE,
)
_STRONG: Final = ("n", "b", "s", "t", "m", "c")
_OPENING: Final = re.compile(
    r"[\s*_\"'`$\\]*+(?:(?:text|textbf|mathrm|mathbf)\s?\{\s*+)?(?:the\s++)?(?:(?:option|choice|letter|answer)s?\s*+[:#]?\s*+)?[\"'*(\[{]*+"
    r"(?P<letter>[A-Za-z])(?![\w'])",
    re.IGNORECASE,
)
_GLUED: Final = re.compile(r"[\s*_\"'`$(\[{]*+(?P<letters>[A-Z]{2,8})(?![A-Za-z0-9'-])[ \t*_.)\]}]*+(?:\n|$)")
_LISTED: Final = re.compile(r"[\s*_\"'`$(\[{]*+(?P<letters>[A-Z](?:\s?,\s?[A-Z])++)(?!\w)[ \t*_.)\]}]*+(?:\n|$)")
_WORD_AFTER: Final = re.compile(r"\s+(?!because|since|as\b|and|or\b|is\b|was\b|not|rather|but|with|for\b|if\b|by\b)[a-z]+")
_PRONOUN: Final = re.compile(r"\s+[a-z']")
_NEGATED: Final = re.compile(
    r"(?:\b(?:not|neither|nor|rather\ than|instead\ of|except|other\ than|eliminate[sd]?|rules?\ out|exclude[sd]?)|n't|\u4e0d\u662f|\u975e|\bnon|\bpas)"
    r"(?>[\s\"'(),:\[\]*\\]|\b(?:be|options?|choices?|answers?|statements?|chose|chosen|selected|picked|stated|the|my|was|to|an|or|and|for|it|make|sense|both|either|[A-Z])\b)*+$",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"[\"')\]*.]*\s?(?:(?!is\b|are\b|was\b|and\b|which\b)[^\s.,;()]{1,20}\s){0,4}(?:(?:is|are|was|were|would\ be|could\ be|seems?)\s(?:also\s|both\s|all\s)?(?:not\b|incorrect|wrong|false|invalid|eliminated|ruled\ out|out\b)|isn't|aren't|wasn't|can(?:not|'t)|doesn't|does\snot|\u4e0d\u5bf9|\u9519|\u4e0d\u6b63\u786e)",
    re.IGNORECASE,
)
_LEADS: Final = re.compile(
    r"(?:\b(?:is|be|are|it's|was|remains?|becomes|pick|picked|choose|choosing|select|selected|chose|go\ with|choice|option|answer|say|to|as|with|therefore|thus|hence|so|sure)|[:=]|\u9009|\u9078|\u662f)"
    r"[\s\"'*,:(\[$\\]*(?:for\ sure|therefore|option|choice|letter|the)?[\s\"'*(\[$\\{]*(?:text\{)?$",
    re.IGNORECASE,
)
_PICKS: Final = re.compile(
    r"\b(?:it's|it is|it to be|pick(?:ed|ing)?|choos(?:e|ing)|chose|select(?:ed|ing)?|go(?:ing)? with|therefore|thus|hence|so|sure)[,:]?[\s\"'*(\[]*$",
    re.IGNORECASE,
)
_CONFIRMED: Final = re.compile(
    r"[\"')\]*]*\s(?:is|must be|would be)\s(?:therefore\s|thus\s|clearly\s)?(?:the\s)?(?:only\s|most\s)?(?:right|correct|best|accurate|true|answer)\b"
)
_ENDS_PICK: Final = re.compile(r"[\"')\]*]*\s*(?:[.,;:!?\u2014\u3002]|$|-\s|because|since|as\b|\u4e0d)")
_NONE: Final = re.compile(
    r"\bnone\ of\ (?:the|these|those|them)\b|\bno(?:ne)?\ (?:correct|suitable|matching|valid|appropriate|accurate|of\ the)\s*(?:answer|option|choice)"
    r"|\bnot\ (?:\w+\s+)?(?:among|listed|one\ of|provided|available|included|present)\b|\bN/A\b"
    r"|\bno\ (?:option|choice)s?\b|\bdo(?:es)?\s?n[o']t\ (?:match|correspond|fit|appear)\b",
    re.IGNORECASE,
)
_LINK: Final = re.compile(r"[\"')\]*.]*(?:[^.;()]{0,60}\s(?:and|or)|\s?[&/,])\s?(?:options?\s|choices?\s)?[\"'(\[*]*", re.IGNORECASE)
_EITHER: Final = re.compile(r"^[^.;]{0,60}\bor\b[\s\"'(\[*]*(?:option\s|choice\s)?[\s\"'(\[*]*$", re.IGNORECASE)
_CLOSING: Final = re.compile(r"\bconfiden(?:ce|t)\b\W{0,3}(?:level|score|in|:|\()", re.IGNORECASE)
_SHORT: Final = 40
"""A whole response of so many characters may be an option's letter or text and nothing else."""
_PLACEHOLDER: Final = "X"
_SOFT: Final[frozenset[Reason]] = frozenset({"no such option", "none of the options"})
"""Reasons that a letter in another sentence of the answer overrules: "not among the choices. (E) None of these"."""
_LOWER_ANYWHERE: Final = frozenset("abcdefgh")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """A letter in the text that could name an option."""

    letter: str
    start: int
    end: int
    strong: bool


@dataclass(frozen=True, kw_only=True)
class ChoiceReader:
    """Reads one response for the option it chooses.

    Attributes:
        response: The response.
        options: Option letters and their texts, "" where the text is not known; None where the options are not known.
            Then every letter but X, the usual placeholder in prompts, may be an option.
    """

    response: Response
    options: Mapping[str, str] | None = None
    _texts: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        texts = {letter: folded(text) for letter, text in (self.options or {}).items() if folded(text)}
        object.__setattr__(self, "_texts", texts)

    def is_option(self, letter: str) -> bool:
        """Whether `letter` (upper case) names an option."""
        return letter in self.options if self.options is not None else letter != _PLACEHOLDER

    def read(self, site: Site) -> Reading:
        """The choice at a place that states an answer."""
        if site.content is None:
            return None
        start, end = site.content
        parts = [part for part in sentences(self.response.text, start, end) if not _CLOSING.search(part.text)]
        if parts and self._offers_several(parts[-1]):
            return Nothing(reason="conflicting answers")
        opening = self._opening(start, end, exact=site.exact)
        if opening is not None or not parts:
            return opening
        return self._among(parts)

    def _among(self, parts: Sequence[Sentence]) -> Reading:
        """The choice in an answer of several sentences: the first one's, else the last one's that chooses."""
        order = (parts[0], *reversed(parts[1:]))
        doubt: Nothing | None = None
        for bare in (False, True):
            for part in order:
                reading = self._sentence(part, bare=bare, stated=True)
                if isinstance(reading, Found) or (isinstance(reading, Nothing) and reading.reason not in _SOFT):
                    return reading
                doubt = doubt or reading
        return doubt

    def fallback(self) -> Reading:
        """The last sentence that chooses one option, where nothing marks an answer."""
        text = self.response.text
        body = text.strip()
        if body and len(body) <= _SHORT:
            start = text.index(body)
            alone = self._opening(start, start + len(body), exact=True)
            if isinstance(alone, Found) and _closed_letter(text, alone.end, start + len(body)):
                return Found(value=alone.value, start=alone.start, end=alone.end, marker="whole-text")
        doubt: Nothing | None = None
        parts = closing_sentences(text)
        for part in reversed(parts):
            if _CLOSING.search(part.text):
                continue
            reading = self._sentence(part, bare=True, stated=False)
            if isinstance(reading, Found):
                return Found(value=reading.value, start=reading.start, end=reading.end, marker="last-letter")
            if isinstance(reading, Nothing):
                if reading.reason != "conflicting answers" or self._offers_several(part):
                    return doubt or reading
                doubt = doubt or reading
        return doubt or (self._by_text(parts[-1].text, parts[-1].start, parts[-1].end) if parts else None)

    def _offers_several(self, sentence: Sentence) -> bool:
        """Whether a sentence leaves several options open: "(A) or (B)"."""
        chosen = [m for m in self._mentions(sentence.start, sentence.end) if m.strong and self.is_option(m.letter)]
        pairs = zip(chosen, chosen[1:], strict=False)
        return any(
            a.letter != b.letter and _EITHER.search(self.response.text[a.end : b.start]) and not self._rejected(b, sentence)
            for a, b in pairs
        )

    def _opening(self, start: int, end: int, *, exact: bool) -> Reading:
        """A letter, or several, at the very start of an answer."""
        text = self.response.text
        for pattern in (_GLUED, _LISTED):
            several = pattern.match(text, start, end)
            letters = sorted(set(re.sub(r"\W", "", several["letters"]))) if several else []
            if several and len(letters) == len(re.sub(r"\W", "", several["letters"])) and self._all_options(letters):
                return Found(value="".join(letters), start=several.start("letters"), end=several.end("letters"))
        match = _OPENING.match(text, start, end)
        if match is None or not self._stands_alone(match, end, exact=exact):
            return self._by_text(text[start:end], start, end) if exact else None
        letter = match["letter"].upper()
        if not self.is_option(letter):
            return None
        first = Mention(letter=letter, start=match.start("letter"), end=match.end("letter"), strong=True)
        line_end = text.find("\n", first.end, end)
        others = self._mentions(first.end, end if line_end < 0 else line_end)
        if self._joined(first, others):
            return Nothing(reason="conflicting answers")
        return Found(value=letter, start=first.start, end=first.end)

    def _all_options(self, letters: Iterable[str]) -> bool:
        known = self.options if self.options is not None else "ABCDEFGH"
        return all(letter in known for letter in letters)

    def _stands_alone(self, match: re.Match[str], end: int, *, exact: bool) -> bool:
        """Whether the letter is a choice, not an article, a pronoun, a variable or the start of a formula."""
        text, letter, after = self.response.text, match["letter"], match.end("letter")
        opened = text[match.start("letter") - 1 : match.start("letter")] in {"(", "[", "*", "{", '"'}
        closed = _closed_letter(text, after, end)
        if letter.islower():
            return closed or (letter in _LOWER_ANYWHERE - {"a"} and opened) or after >= end
        if not closed and not opened and _WORD_AFTER.match(text, after, end):
            return False
        return not exact or closed or after >= end or text[after] in " ,:;}"

    def _sentence(self, sentence: Sentence, *, bare: bool, stated: bool) -> Reading:
        """The one option that a sentence chooses; `bare` letters count only where no letter is marked as an option."""
        mentions = self._mentions(sentence.start, sentence.end)
        strong = [m for m in mentions if m.strong]
        pool = strong or [m for m in mentions if bare and (stated or self._picked(m, sentence))]
        known = [m for m in pool if self.is_option(m.letter)]
        chosen = [m for m in known if not self._rejected(m, sentence)]
        letters = dict.fromkeys(m.letter for m in chosen)
        if len(letters) == 1:
            return Found(value=chosen[0].letter, start=chosen[0].start, end=chosen[0].end)
        if len(letters) > 1:
            return self._one_led(chosen, sentence)
        if strong and not known:
            return Nothing(reason="no such option")
        if _NONE.search(sentence.text):
            return Nothing(reason="none of the options")
        if declines(sentence.text):
            return Nothing(reason="refusal")
        return self._by_text(sentence.text, sentence.start, sentence.end) if stated else None

    def _one_led(self, chosen: Sequence[Mention], sentence: Sentence) -> Reading:
        """Of several options, the one after "is", "choose" or "answer", unless another is joined to it."""
        led = [m for m in chosen if self._led(m, sentence)]
        letters = {m.letter for m in led}
        if len(letters) == 1 and not self._joined(led[-1], [m for m in chosen if m.start > led[-1].start]):
            return Found(value=led[-1].letter, start=led[-1].start, end=led[-1].end)
        return Nothing(reason="conflicting answers")

    def _joined(self, first: Mention, others: Sequence[Mention]) -> bool:
        """Whether another option follows `first`, joined by "and" or "or"."""
        text = self.response.text
        for other in others:
            if other.letter != first.letter and self.is_option(other.letter):
                link = _LINK.fullmatch(text[first.end : other.start])
                if link and (other.strong or not link.group().strip(" )*\"'").startswith(",")):
                    return True
        return False

    def _mentions(self, start: int, end: int) -> list[Mention]:
        found: list[Mention] = []
        for match in _MENTION.finditer(self.response.text, start, end):
            group = next(name for name in (*_STRONG, "bare") if match[name])
            letter = match[group]
            if letter.islower() and (letter not in _LOWER_ANYWHERE or group == "n" and letter == "a"):
                continue
            if group == "bare" and letter in "AI" and _WORD_AFTER.match(self.response.text, match.end(group), end):
                continue
            if group == "c" and self.response.text.count("(", start, match.start()) > self.response.text.count(
                ")", start, match.start()
            ):
                continue  # the bracket closes one that opened earlier: "(our need of vitamin A)"
            if group == "n" and letter in "aAI" and _PRONOUN.match(self.response.text, match.end(group), end):
                continue
            found.append(
                Mention(letter=letter.upper(), start=match.start(group), end=match.end(group), strong=group != "bare")
            )
        return found

    def _rejected(self, mention: Mention, sentence: Sentence) -> bool:
        before = self.response.text[max(sentence.start, mention.start - 80) : mention.start]
        return bool(_NEGATED.search(before) or _DENIED.match(self.response.text, mention.end, sentence.end))

    def _led(self, mention: Mention, sentence: Sentence) -> bool:
        before = self.response.text[max(sentence.start, mention.start - 40) : mention.start]
        if not before.strip(" \"'(*["):
            return mention.strong or not _WORD_AFTER.match(self.response.text, mention.end, sentence.end)
        return _LEADS.search(before) is not None

    def _picked(self, mention: Mention, sentence: Sentence) -> bool:
        """Whether an unmarked letter is said to be chosen: "I think it's B", "Therefore, B."."""
        before = self.response.text[max(sentence.start, mention.start - 40) : mention.start]
        alone = not before.strip(" \"'(*[")
        if _CONFIRMED.match(self.response.text, mention.end, sentence.end):
            return True
        return (alone or _PICKS.search(before) is not None) and _ENDS_PICK.match(
            self.response.text, mention.end, sentence.end
        ) is not None

    def _by_text(self, body: str, start: int, end: int) -> Reading:
        """The option whose text stands in `body`: as all of it, or as the only option text in it."""
        if not self._texts:
            return None
        words = folded(body)
        value = parse_number(body)
        whole = [letter for letter, text in self._texts.items() if text == words or _same_number(value, text)]
        within = [letter for letter, text in self._texts.items() if f" {text} " in f" {words} "]
        for letters in (whole, within):
            if len(letters) == 1:
                return Found(value=letters[0], start=start, end=end)
        reason: Reason = "conflicting answers"
        return Nothing(reason=reason) if len(within) > 1 else None


def _closed_letter(text: str, after: int, end: int) -> bool:
    return after >= end or re.match(r"[)\]}.:*\"'$]|\s*\n|\s*$", text[after:end][:4]) is not None


def _same_number(value: object, text: str) -> bool:
    other = parse_number(text)
    return value is not None and other is not None and getattr(value, "value", None) == other.value


def folded(text: str) -> str:
    """Words only, in lower case, single-spaced: for comparing option texts."""
    return " ".join(re.findall(r"\w+(?:[.,]\w+)*|[-+<>=/%$]", without_wrappers(text).casefold()))
