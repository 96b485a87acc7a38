"""Split a solution into steps, losing nothing.

The coarsest structure a text really has decides, in this order:

1. ``Step 1:`` headings, of any number of digits and in the dress models give them (``**Step 3:**``, ``### Step 3``,
   ``Step 3.``, a line's start or the middle of a line);
2. paragraphs, set apart by blank lines;
3. lines;
4. sentences.

A structure that only sets the final answer apart from everything else does not count, and the next one is tried.
Lists and formulas stay with the step they belong to; code fences and LaTeX displays are never torn.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reward_models import protected
from reward_models.protected import Span
from reward_models.sentences import sentence_starts
from reward_models.types import Solution, Step, StepPart

_COLONS = ":\uff1a"
_WORD_NUMBERS = "one two three four five six seven eight nine ten".split()
_NUMBER = rf"(?:\d++(?:\.\d++)*+|(?:{'|'.join(_WORD_NUMBERS)})\b)"
_NAME = "(?:step|schritt|étape|etape|paso|passo|шаг|步骤|ステップ)"
_AFTER = (  # what tells a heading from a sentence that begins with "Step 2 gives ..."
    rf"(?=[^\S\r\n]*+(?:[{_COLONS})\]}}*_–—]|\.(?!\d)|-(?!\d)|/\s?\d|of\s\d|\([^()\r\n]{{1,80}}\)\W{{0,2}}:"
    rf"|{protected.NEWLINE}|\Z))"
)
_LINE_HEADING = re.compile(
    r"\s*+(?:>[ \t]?+)*+(?:[-+*•][ \t]++)?+(?:\#{1,6}+[ \t]*+)?+(?:\d{1,3}[.)][ \t]++)?+(?:[*_\[(]|\\textbf\{)*+"
    rf"(?:{_NAME}[^\S\r\n]*+[\#-]?[^\S\r\n]*+(?P<number>{_NUMBER}){_AFTER}|第[^\S\r\n]*+(?P<cjk>\d++)[^\S\r\n]*+步)",
    re.IGNORECASE,
)
_INLINE_HEADING = re.compile(rf"(?<=\s)(?:\*\*|__)?Step[ \t]?(?P<number>\d{{1,6}})(?=\s?[{_COLONS}]|(?:\*\*|__)\s?:)")
# "as in Step 2: ..." speaks of a step and begins none.
_REFERRING = re.compile(
    r"(?:\b(?:above|after|and|at|before|by|following|for|from|go|in|into|of|on|or|per|previous|repeat|see|the|this|to|"
    r"under|using|via|with)|[,(/&-])\s++\Z",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[\d=\\$^+×÷√≈≤≥]")
_MOST_WORDS_OF_FILLER = 30
_FILLER = re.compile(
    r"\W*(?:sure|certainly|of course|okay|ok|alright|great|absolutely|here(?:'s|’s| is| are)|"
    r"(?:let(?:'s|’s| us| me)|to|we(?:'ll|’ll| will| can| need to)?|i(?:'ll|’ll| will| need to)?) "
    r"(?:solve|break|think|work|go|approach|tackle|find|answer|start|begin|help))\b",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"[\s#>*_\-]*+(?:(?:so|thus|therefore|hence|finally)\b,?\s*+)?(?:the\s++)?(?:\\boxed\b|\$*\\boxed\b|"
    r"(?:final\s++)?answer\b)|\s*+####",
    re.IGNORECASE,
)
_LONGEST_ANSWER = 160
_TAG = re.compile(r"<(?P<slash>/?)think(?:ing)?>", re.IGNORECASE)


def split_steps(text: str, *, part: StepPart = "text") -> tuple[Step, ...]:
    """Split a text into its steps.

    ``"".join(step.text for step in steps) == text`` for every text that is not blank; a blank text has no steps, and no
    step is blank: white space at the end of a step belongs to it, white space at the start of the text to the first.
    Words before the first heading are a step of their own only if they hold some content (a number, a formula, or more
    than a sentence's worth of words). Takes time linear in the text.

    Args:
        text: A solution, or the thinking part of one (see :func:`split_thinking`).
        part: What the steps are marked as.
    """
    if not text.strip():
        return ()
    rows = protected.lines(text)
    heads = [start for start, end in rows if _LINE_HEADING.match(text, start, end)]
    blocks = protected.blocks(text, rows, heads)
    starts = _heading_starts(text, heads, blocks)
    if starts is None:
        starts = _paragraph_starts(text, rows, blocks)
    return _steps(text, starts, part)


def split_thinking(text: str) -> tuple[str | None, str]:
    """Separate inline thinking from the rest: ``(thinking or None, rest)``, the tags left out, all else kept.

    Understands ``<think>`` and ``<thinking>`` blocks; a block that is never closed runs to the end (the rest is then
    what stood before it); a close without an open ends thinking that began with the text, as where the open tag is part
    of the prompt. Several blocks are joined by an empty line. Blank thinking counts as none. Offsets of steps count
    within each part.
    """
    thoughts: list[str] = []
    rest: list[str] = []
    position, depth = 0, 0
    for tag in _TAG.finditer(text):
        closes = bool(tag["slash"])
        if closes and not depth and (thoughts or rest):
            continue  # a stray close stays in the text
        before = text[position : tag.start()]
        if closes or depth:
            thoughts.append(before)
        else:
            rest.append(before)
        depth = 0 if closes else 1
        position = tag.end()
    (thoughts if depth else rest).append(text[position:])
    thinking = "\n\n".join(thought for thought in thoughts if thought.strip())
    return thinking or None, "".join(rest)


def with_steps(solution: Solution) -> Solution:
    """The solution with its steps filled in: those it has, else the steps of its thinking and then of its text.

    Inline ``<think>`` blocks move to ``thinking`` first, unless there is thinking already.
    """
    if solution.steps:
        return solution
    thinking, text = solution.thinking, solution.text
    if thinking is None:
        thinking, text = split_thinking(text)
    steps = split_steps(thinking or "", part="thinking") + split_steps(text)
    return replace(solution, text=text, thinking=thinking, steps=steps)


def join_steps(texts: Sequence[str], *, part: StepPart = "text") -> tuple[str, tuple[Step, ...]]:
    """The text and the steps of a solution that comes as a list of steps; a line break is added between two of them.

    Empty steps are kept, so that there is one score for each step given.
    """
    steps: list[Step] = []
    position = 0
    for index, given in enumerate(texts):
        last = index == len(texts) - 1
        text = given if last or given.endswith(("\n", "\r")) else given + "\n"
        steps.append(Step(text=text, start=position, end=position + len(text), part=part))
        position += len(text)
    return "".join(step.text for step in steps), tuple(steps)


def _steps(text: str, starts: Sequence[int], part: StepPart) -> tuple[Step, ...]:
    """Steps from the offsets at which they begin; blank passages join the step before, or the first."""
    cuts = [0]
    for start, following in zip(starts, [*starts[1:], len(text)], strict=True):
        if start > 0 and not text[start:following].isspace() and not text[cuts[-1] : start].isspace():
            cuts.append(start)
    ends = [*cuts[1:], len(text)]
    return tuple(Step(text=text[a:b], start=a, end=b, part=part) for a, b in zip(cuts, ends, strict=True))


# Headings


def _heading_starts(text: str, heads: Sequence[int], blocks: Sequence[Span]) -> list[int] | None:
    """Where the steps with headings begin, the preamble included; ``None`` if they are not this text's structure."""
    found = _all_headings(text, [head for head in heads if not protected.inside(blocks, head)], blocks)
    if not found:
        return None
    preamble = text[: found[0]]
    has_content = _has_content(preamble)
    if len(found) == 1 and has_content:
        return None
    return [0, *found] if has_content else [0, *found[1:]]


def _all_headings(text: str, heads: Sequence[int], blocks: Sequence[Span]) -> list[int]:
    """Headings at the start of a line, and those within a line that carry on the count."""
    numbers: dict[int, int | None] = {}
    for head in heads:
        match = _LINE_HEADING.match(text, head)
        numbers[head] = _ordinal((match["number"] or match["cjk"]) if match else None)
    spans = {match.start(): int(match["number"]) for match in _INLINE_HEADING.finditer(text)}
    found: list[int] = []
    last = 0 if {1, 2} <= set(spans.values()) else None
    line_end = -1  # of the heading at a line's start that was seen last: it is not found a second time within its line
    for position in sorted({**numbers, **spans}):
        if position in numbers:
            match = _LINE_HEADING.match(text, position)
            found.append(position)
            last = numbers[position] or last
            line_end = match.end() if match else position
        elif position >= line_end and last is not None and spans[position] == last + 1:
            refers = _REFERRING.search(text[max(0, position - 24) : position])
            if not refers and not protected.inside(blocks, position):
                found.append(position)
                last = spans[position]
    return found


def _ordinal(number: str | None) -> int | None:
    """The whole number a heading counts with, where it is one of reasonable size."""
    if number is None:
        return None
    whole = number.partition(".")[0].lower()
    if whole in _WORD_NUMBERS:
        return _WORD_NUMBERS.index(whole) + 1
    return int(whole) if len(whole) < 9 else None


def _has_content(preamble: str) -> bool:
    return bool(_CONTENT.search(preamble)) or len(preamble.split()) > _MOST_WORDS_OF_FILLER


# Paragraphs, lines, sentences


def _paragraph_starts(text: str, rows: Sequence[Span], blocks: Sequence[Span]) -> list[int]:
    whole = _whole_rows(rows, blocks)
    paragraphs = _merge(text, _paragraphs(text, whole), blocks, _never)
    if _enough(text, paragraphs):
        return paragraphs
    kept = [row for row in whole if not text[row[0] : row[1]].isspace()]
    lines = _merge(text, kept, blocks, _is_wrapped)
    if _enough(text, lines):
        return lines
    formulas = protected.inline(text)
    starts: list[int] = []
    for start, end in zip(lines, [*lines[1:], len(text)], strict=True):
        starts.append(start)
        sentences = sentence_starts(text, (start, end), formulas)
        starts += [sentence for sentence in sentences if not protected.inside(blocks, sentence)]
    return starts


def _enough(text: str, starts: Sequence[int]) -> bool:
    """Whether this structure says something: several steps, not counting a bare final answer."""
    if len(starts) != 2:
        return len(starts) > 1
    last = text[starts[1] :].strip()
    return not (len(last) <= _LONGEST_ANSWER and _ANSWER.match(last))


def _whole_rows(rows: Sequence[Span], blocks: Sequence[Span]) -> list[Span]:
    """Lines, those of one protected block joined into one."""
    found: list[Span] = []
    for start, end in rows:
        if found and protected.inside(blocks, start):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _paragraphs(text: str, rows: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    blank = True
    for start, end in rows:
        if text[start:end].isspace():
            blank = True
        elif blank:
            found.append((start, end))
            blank = False
        else:
            found[-1] = (found[-1][0], end)
    return found


_ITEM = re.compile(r"(?:[-+*•‣▪–]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)])(?=\s)")
_TITLE = re.compile(r"(?:#{1,6}\s[^\r\n]*+|(?:\*\*|__)[^\r\n*_]++(?:\*\*|__)[:.]?)\Z")
_OPERATOR = re.compile(r"(?:=(?![=>])|≈|≤|≥|<(?![<\w/])|>(?=\s)|\+(?=\s*[\w\\$(])|×|÷|\\times|\\div|\\cdot)")
_COLON = re.compile(rf"[{_COLONS}][*_\s]*\Z")
_TERMINAL = re.compile(r"[.!?\u3002\uff01\uff1f][*_)\"'\u201d\u2019\s]*\Z")
_CLAUSE = re.compile(rf"[.!?{_COLONS}][*_)\s]*\Z")
_SENTENCE = 8  # words that make an item without a full stop a sentence
_DISPLAY = ("\\[", "$$", "\\begin", "```", "~~~")
_WRAPPED_AT = 40


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """A paragraph or line, and what its looks say about where it belongs."""

    text: str
    start: int
    indent: int
    item: bool  # a list item
    display: bool  # nothing but a protected block


def _unit(text: str, span: Span, blocks: Sequence[Span]) -> _Unit:
    whole = text[span[0] : span[1]]
    content = whole.strip()
    indent = len(whole) - len(whole.lstrip())
    first = span[0] + indent
    display = content.startswith(_DISPLAY) and protected.inside(blocks, first + 1)
    display = display and protected.inside(blocks, first + len(content) - 1)
    return _Unit(text=content, start=span[0], indent=indent, item=bool(_ITEM.match(content)), display=display)


def _never(_before: _Unit, _unit: _Unit) -> bool:
    return False


def _is_wrapped(before: _Unit, unit: _Unit) -> bool:
    """A long line that ends in the middle of a sentence goes on in the next."""
    return len(before.text) >= _WRAPPED_AT and unit.text[0].islower() and not _TERMINAL.search(before.text[-8:])


def _merge(
    text: str, spans: Sequence[Span], blocks: Sequence[Span], continues: Callable[[_Unit, _Unit], bool]
) -> list[int]:
    """Where steps begin, after units that belong to the one before have joined it."""
    units = [_unit(text, span, blocks) for span in spans]
    starts: list[int] = []
    item_indent: int | None = None  # of the list item that the current step began with
    owned = False  # the current step holds a list of its own
    for index, unit in enumerate(units):
        before = units[index - 1] if index else None
        if before is None:
            joins = False
        elif unit.item and _COLON.search(before.text[-8:]) and not before.item:
            joins = index > 1 or not _is_worked_list(units, index)
            owned = joins
        elif owned and (unit.item or unit.indent > 0):
            joins = True
        else:
            owned = False
            deeper = item_indent is not None and unit.indent > item_indent
            joins = deeper or _belongs(before, unit) or continues(before, unit) or (index == 1 and _is_filler(before))
        if not joins:
            starts.append(unit.start)
            item_indent = unit.indent if unit.item else None
    return _without_filler(text, starts)


def _belongs(before: _Unit, unit: _Unit) -> bool:
    """Whether a unit is a part of the step before it, whatever the level."""
    if _TITLE.match(before.text) or _COLON.search(before.text[-8:]) or not any(map(str.isalnum, unit.text)):
        return True
    if unit.display and not _TERMINAL.search(before.text[-8:]):
        return True
    is_row = unit.text.startswith("|") and before.text.startswith("|")
    return is_row or bool(_OPERATOR.match(unit.text))


def _is_worked_list(units: Sequence[_Unit], first: int) -> bool:
    """Whether the list that opens a solution is its steps (titles, sentences, equations) and no mere enumeration."""
    items = [unit.text for unit in itertools.takewhile(lambda unit: unit.item, units[first:])]
    worked = sum("=" in item or bool(_CLAUSE.search(item[-8:])) or len(item.split()) >= _SENTENCE for item in items)
    return 2 * worked >= len(items)


def _is_filler(unit: _Unit) -> bool:
    return bool(_FILLER.match(unit.text)) and not _has_content(unit.text)


def _without_filler(text: str, starts: list[int]) -> list[int]:
    """Opening words such as "Let's go through it:" before a list of steps belong to the first step."""
    if len(starts) > 1 and not _has_content(text[: starts[1]]) and _COLON.search(text[: starts[1]].rstrip()[-8:]):
        return [starts[0], *starts[2:]]
    return starts
