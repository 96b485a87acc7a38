"""Letters in running text that could name an option, and how the words around them speak of them."""

import re
from dataclasses import dataclass
from typing import Final

from magicore.answers.response import Sentence

_MENTION: Final = re.compile(
    r"""
    (?:(?:\b(?:options?|choices?|letter|alternative|answer)|选项|選択肢|选|選)\s?[:\s]?["'*(\[]{0,3})
        (?P<named>[A-Za-z])(?![A-Za-z0-9_'])
    | (?<![A-Za-z0-9_)])\(\s?["'*]{0,2}(?P<round>[A-Za-z])["'*]{0,2}\s?\)
    | (?<![\w\]])\[\s?(?P<square>[A-Z])[\])]
    | \\(?:text|mathrm|textbf|mathbf)\s?\{\s?\(?(?P<font>[A-Z])\)?[\s.:}]
    | \*\*\(?(?P<bold>[A-Z])\)?[.:)]?\*\*
    | (?<![A-Za-z0-9_(/\\^$'-])(?P<closed>[A-Z])\)
    | (?<![A-Za-z0-9_([/\\^{$'.-])(?P<bare>[A-Z])(?![A-Za-z0-9_'^=+*/({-])
    """,
    re.VERBOSE,
)
_BRACKETS: Final = re.compile(r"[()]")
_WORD_AFTER: Final = re.compile(
    r"\s+(?!because|since|as\b|and|or\b|is\b|was\b|not|rather|but|with|for\b|if\b|by\b)[a-z]+"
)
_WORD_NEXT: Final = re.compile(r"\s+[a-z']")
_SMALL_LETTERS: Final = frozenset("abcdefgh")

_FILL: Final = (
    r"be|options?|choices?|answers?|statements?|chose|chosen|selected|picked|stated|the|my|was|to|an|or|and|for|it"
    r"|make|sense|both|either"
)
_NEGATED: Final = re.compile(
    r"(?:\b(?:not|neither|nor|rather than|instead of|except|other than|eliminate[sd]?|rules? out|exclude[sd]?)"
    rf"|n't|不是|非|\bnon|\bpas)(?>[\s\"'(),:\[\]*\\]|\b(?:{_FILL}|[A-Z])\b)*+$",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"[\"')\]*.]*\s?(?:(?!is\b|are\b|was\b|and\b|which\b)[^\s.,;()]{1,20}\s){0,4}"
    r"(?:(?:is|are|was|were|would be|could be|seems?)\s(?:also\s|both\s|all\s)?"
    r"(?:not\b|incorrect|wrong|false|invalid|eliminated|ruled out|out\b)"
    r"|isn't|aren't|wasn't|can(?:not|'t)|doesn't|does\snot|不对|错|不正确)",
    re.IGNORECASE,
)
_LEADS: Final = re.compile(
    r"(?:\b(?:is|be|are|it's|was|remains?|becomes|pick|picked|choose|choosing|select|selected|chose|go with|choice"
    r"|option|answer|say|to|as|with|therefore|thus|hence|so|sure)|[:=]|选|選|是)"
    r"[\s\"'*,:(\[$\\]*(?:for sure|therefore|option|choice|letter|the)?[\s\"'*(\[$\\{]*(?:text\{)?$",
    re.IGNORECASE,
)
_PICKS: Final = re.compile(
    r"\b(?:it's|it is|it to be|pick(?:ed|ing)?|choos(?:e|ing)|chose|select(?:ed|ing)?|go(?:ing)? with|therefore|thus"
    r"|hence|so|sure)[,:]?[\s\"'*(\[]*$",
    re.IGNORECASE,
)
_CONFIRMED: Final = re.compile(
    r"[\"')\]*]*\s(?:is|must be|would be)\s(?:therefore\s|thus\s|clearly\s)?(?:the\s)?(?:only\s|most\s)?"
    r"(?:right|correct|best|accurate|true|answer)\b"
)
_ENDS_PICK: Final = re.compile(r"[\"')\]*]*\s*(?:[.,;:!?\u2014\u3002]|$|-\s|because|since|as\b|不)")
_NEAR: Final = 40
_NEGATION_REACH: Final = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """A letter in the text that could name an option; `strong` if brackets, bold or a word such as "option" mark it."""

    letter: str
    start: int
    end: int
    strong: bool


def mentions(text: str, start: int, end: int) -> list[Mention]:
    """The letters in `text[start:end]` that could name options: neither articles nor pronouns nor variables."""
    found: list[Mention] = []
    depth, counted = 0, start
    for match in _MENTION.finditer(text, start, end):
        for bracket in _BRACKETS.finditer(text, counted, match.start()):
            depth += 1 if bracket.group() == "(" else -1
        counted = match.start()
        group = match.lastgroup or "bare"
        if _names_option(text, match, group, end, inside_brackets=depth > 0):
            letter = match[group].upper()
            found.append(Mention(letter=letter, start=match.start(group), end=match.end(group), strong=group != "bare"))
    return found


def _names_option(text: str, match: re.Match[str], group: str, end: int, *, inside_brackets: bool) -> bool:
    letter, after = match[group], match.end(group)
    if letter.islower() and (letter not in _SMALL_LETTERS or (group == "named" and letter == "a")):
        return False
    if group == "closed":
        return not inside_brackets  # else it closes a bracket that opened earlier: "(our need of vitamin A)"
    if group == "bare":
        return not (letter in "AI" and _WORD_AFTER.match(text, after, end))
    return not (group == "named" and letter in "AI" and _WORD_NEXT.match(text, after, end))


def is_rejected(text: str, mention: Mention, sentence: Sentence) -> bool:
    """Whether a sentence says that an option is not chosen or not right."""
    before = text[max(sentence.start, mention.start - _NEGATION_REACH) : mention.start]
    return bool(_NEGATED.search(before) or _DENIED.match(text, mention.end, sentence.end))


def is_led(text: str, mention: Mention, sentence: Sentence) -> bool:
    """Whether an option follows "is", "choose", "answer" and the like, or opens the sentence."""
    before = text[max(sentence.start, mention.start - _NEAR) : mention.start]
    if _opens(before):
        return mention.strong or not is_followed_by_word(text, mention.end, sentence.end)
    return _LEADS.search(before) is not None


def is_picked(text: str, mention: Mention, sentence: Sentence) -> bool:
    """Whether an unmarked letter is said to be chosen: "I think it's B", "Therefore, B.", "B is the best choice"."""
    if _CONFIRMED.match(text, mention.end, sentence.end):
        return True
    before = text[max(sentence.start, mention.start - _NEAR) : mention.start]
    if not _opens(before) and not _PICKS.search(before):
        return False
    return _ENDS_PICK.match(text, mention.end, sentence.end) is not None


def is_followed_by_word(text: str, at: int, end: int) -> bool:
    """Whether a word in small letters follows that makes a letter an article, a pronoun or a name."""
    return _WORD_AFTER.match(text, at, end) is not None


def _opens(before: str) -> bool:
    return not before.strip(" \"'(*[")
