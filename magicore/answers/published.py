"""The strict readings of two published pipelines, so that their figures can be compared like with like.

Both misread answers that a person reads easily; `magicore.answers.extract` is the reading to use for anything else.

* MARS (xwang97/MARS at 3b64dcb, `utils.py`): :func:`mars_answer`, :func:`mars_decision`, :func:`mars_correct` and, with
  an unread answer voting as None, :func:`mars_vote`.
* Multi-agent peer review (HITsz-TMG/Multi-agent-peer-review at a470948, `eval.py`): :func:`peer_review_answer`,
  :func:`peer_review_correct` and, over the answers that were read, :func:`peer_review_vote`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, assert_never

AnswerType = Literal["number", "letter", "yesno"]
"""What the recorded question asks for."""

_AFTER_ANSWER: Final = re.compile(r"answer:(.*)", re.IGNORECASE | re.DOTALL)
_MARS_NUMBER: Final = re.compile(r"\d+/\d+|\d+\.\d+%?|\d+%?")
_MARS_LETTERS: Final = (
    re.compile(r"Answer:\s*([ABCD])", re.IGNORECASE),
    re.compile(r"I would say that\s+([ABCD])", re.IGNORECASE),
)
_MARS_LAST_LETTER: Final = re.compile(r"\b([ABCD])[).]")
_MARS_DECISION: Final = re.compile(r"Decision:\s*(\w+-?\w*)")
_MARS_VERDICT: Final = re.compile(r"right|wrong|Right|Wrong")
_MARS_TOLERANCE: Final = 0.01

_BRACED_NUMBER: Final = re.compile(r"\{([-0-9.,$]*)\}")
_BARE_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_BRACKETED_LETTER: Final = re.compile(r"\((\w)\)")
_YES_OR_NO: Final = re.compile(r"\b(YES|Yes|yes|NO|No|no)\b")


def mars_answer(text: str, answer_type: AnswerType) -> float | str | None:
    """What MARS reads: a number (float) or one of A to D.

    Numbers: on the lines after the first "answer:", the last number of the last line that has one; no sign, no
    thousands separators, a percentage as its hundredth. Letters: the letter after the first "Answer:" whatever follows
    it, after "I would say that", or the last letter before a bracket or full stop.

    Raises:
        ValueError: For yes/no questions, which MARS asks as lettered options.
    """
    match answer_type:
        case "number":
            return _mars_number(text)
        case "letter":
            return _mars_letter(text)
        case "yesno":
            raise ValueError("MARS has no reading for yes/no answers; it asks them as options A and B")
        case _:
            assert_never(answer_type)


def _mars_number(text: str) -> float | None:
    after = _AFTER_ANSWER.search(text)
    if after is None:
        return None
    for line in reversed(after[1].splitlines()):
        for token in reversed(_MARS_NUMBER.findall(line)):
            if token.endswith("%"):
                return float(token[:-1]) / 100
            if not re.fullmatch(r"\d+/0+", token):
                return float(Fraction(token))
    return None


def _mars_letter(text: str) -> str | None:
    for pattern in _MARS_LETTERS:
        found = pattern.search(text)
        if found:
            return found[1].upper()
    letters = _MARS_LAST_LETTER.findall(text)
    return letters[-1] if letters else None


def mars_correct(answer: float | str | None, gold: float | str) -> bool:
    """Whether MARS counts `answer` right: numbers within 0.01 of the gold, letters equal to it."""
    if isinstance(answer, str) or isinstance(gold, str):
        return answer == gold
    return answer is not None and abs(answer - gold) <= _MARS_TOLERANCE


def mars_vote(answers: Sequence[float | str | None]) -> float | str | None:
    """The most frequent answer; an answer that was not read votes as None, and the first seen wins a tie."""
    return Counter(answers).most_common(1)[0][0] if answers else None


def mars_decision(text: str) -> str:
    """The word after "Decision:", else the first "right" or "wrong" anywhere, else "right"."""
    stated = _MARS_DECISION.search(text)
    if stated:
        return stated[1]
    verdict = _MARS_VERDICT.search(text)
    return verdict.group() if verdict else "right"


def peer_review_answer(text: str, answer_type: AnswerType) -> str | None:
    """What the peer-review pipeline reads, as a string.

    Numbers: the last one alone in braces, else the last one anywhere. Letters: the last in round brackets, X passed
    over unless it is the only one. Yes/no: the last such word.
    """
    match answer_type:
        case "number":
            numbers = _BRACED_NUMBER.findall(text) or _BARE_NUMBER.findall(text)
            bare = [re.sub(r"[^-0-9.]", "", number) for number in reversed(numbers)]
            return next(filter(None, bare), bare[-1] if bare else None)
        case "letter":
            letters = [letter.upper() for letter in reversed(_BRACKETED_LETTER.findall(text))]
            return next((letter for letter in letters if letter != "X"), letters[-1] if letters else None)
        case "yesno":
            words = _YES_OR_NO.findall(text)
            return words[-1].capitalize() if words else None
        case _:
            assert_never(answer_type)


def peer_review_correct(answer: str | None, gold: float | str) -> bool:
    """Whether peer review counts `answer` right: the same float, with no tolerance, or the same string."""
    if isinstance(gold, str) or answer is None:
        return answer == gold
    try:
        return float(answer) == float(gold)
    except ValueError:
        return False


def peer_review_vote(answers: Sequence[str | None]) -> str | None:
    """The most frequent string among the answers that were read; the first seen wins a tie."""
    read = [answer for answer in answers if answer]
    return Counter(read).most_common(1)[0][0] if read else None
