"""The case view's data: one short row a problem, and everything about it in chunks that are opened on demand."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magicore.report.html.graded import GradedProblem
from magicore.report.run_files import RunFiles
from magicore.store.chain_rows import ChainRecord
from magicore.types import Review
from reward_models.types import Step

TEXT_LIMIT = 20_000
"""Characters of one text that a report holds; ``magicore show`` has the rest."""
QUESTION_LIMIT = 4_000
CHUNK_BYTES = 400_000
"""JSON of so many bytes is packed together: some dozen problems of 16 chains."""
DIGITS = 4
"""Decimals of scores in the case view."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive problems' details, gzip-compressed JSON in base64; ``first`` is the index of the first one."""

    first: int
    packed: str


def case_rows(run: RunFiles, problems: Sequence[GradedProblem]) -> dict[str, list[Any]]:
    """What the list shows and searches, a column a key."""
    return {
        "id": [one.result.id for one in problems],
        "question": [
            _cut(one.problem.question.strip(), QUESTION_LIMIT) if one.result.id in run.problems else None
            for one in problems
        ],
        "gold": [one.result.gold for one in problems],
        "answer": [one.result.answer for one in problems],
        "right": [None if one.result.gold is None else int(one.result.correct is True) for one in problems],
        "easy": [None if one.result.verdict is None else int(one.result.verdict.easy) for one in problems],
        "change": [one.change for one in problems],
        "stop": [one.result.stop for one in problems],
        "rounds": [one.rounds for one in problems],
        "chains": [len(one.chains) for one in problems],
    }


def case_chunks(run: RunFiles, problems: Sequence[GradedProblem]) -> tuple[Chunk, ...]:
    """Every problem's details, in the order of :func:`case_rows`."""
    return tuple(_packed(run, problems))


def case_detail(run: RunFiles, one: GradedProblem) -> dict[str, Any]:
    """All that the case view shows of one problem; texts as they are, scores rounded."""
    result = one.result
    verdict = result.verdict
    return {
        "verdict": None
        if verdict is None
        else {
            "router": verdict.router,
            "easy": verdict.easy,
            "condition_1": verdict.condition_1,
            "condition_2": verdict.condition_2,
            "z": _rounded(verdict.z),
            "confidence_orm": _rounded(verdict.confidence_orm),
            "confidence_prm": _rounded(verdict.confidence_prm),
        },
        "votes": [[vote.answer, vote.count, _rounded(vote.weight)] for vote in result.votes],
        "abstained": [[one.chain, one.reason] for one in result.abstained],
        "chosen": result.chain,
        "error": None if result.error is None else [result.error.type, _cut(result.error.message, TEXT_LIMIT)],
        "warnings": list(result.warnings),
        "after": list(one.after),
        "usage": [
            [spent.role, spent.usage.prompt, spent.usage.completion, spent.usage.calls] for spent in result.usage
        ],
        "chains": [_chain(record, right) for record, right in zip(one.chains, one.right, strict=True)],
        "reviews": [_review(review) for review in run.reviews.get(result.id, ())],
    }


def _packed(run: RunFiles, problems: Sequence[GradedProblem]) -> Iterator[Chunk]:
    rows: list[bytes] = []
    size = 0
    first = 0
    for at, one in enumerate(problems):
        row = json.dumps(case_detail(run, one), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        rows.append(row.encode("utf-8", "backslashreplace"))
        size += len(rows[-1])
        if size >= CHUNK_BYTES or at == len(problems) - 1:
            whole = b"[" + b",".join(rows) + b"]"
            yield Chunk(first=first, packed=base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode("ascii"))
            rows, size, first = [], 0, at + 1


def _chain(record: ChainRecord, right: bool | None) -> dict[str, Any]:
    scored, chain = record.scored, record.scored.chain
    row: dict[str, Any] = {
        "id": chain.id,
        "round": chain.round,
        "index": chain.index,
        "role": chain.role,
        "parent": chain.parent,
        "answer": chain.answer,
        "right": right,
        "o": _rounded(scored.o),
        "s": _rounded(scored.s),
        "S": _rounded(scored.combined),
        "kept": list(record.kept),
        "tokens": chain.tokens,
        "text": _segments(scored.chain.text, "text", record),
    }
    if chain.thinking:
        row["thinking"] = _segments(chain.thinking, "thinking", record)
    if chain.answer is None:
        row["why"] = chain.no_answer
    if chain.stop != "stop":
        row["stop"] = chain.stop
    if scored.orm is not None and scored.orm.unscored is not None:
        row["unscored"] = scored.orm.unscored.code
    return row


def _segments(text: str, part: str, record: ChainRecord) -> list[list[Any]]:
    """The text in pieces: ``[text]`` between steps, ``[text, score]``, or ``[text, null, why it has none]``."""
    scored = record.scored
    steps: Sequence[Step] = scored.chain.steps if scored.prm is None else scored.prm.steps
    scores = None if scored.prm is None else scored.prm.scores
    found: list[list[Any]] = []
    at = 0
    for number, step in enumerate(steps):
        if step.part != part or step.start < at or step.start >= TEXT_LIMIT:
            continue
        if text[at : step.start].strip():
            found.append([text[at : step.start]])
        piece: list[Any] = [text[step.start : min(step.end, TEXT_LIMIT)]]
        if scores is not None:
            piece.append(_rounded(scores[number].value))
            reason = scores[number].unscored
            if reason is not None:
                piece.append(reason.code)
        found.append(piece)
        at = step.end
    if text[at:TEXT_LIMIT].strip():
        found.append([text[at:TEXT_LIMIT]])
    if len(text) > TEXT_LIMIT:
        found.append([f"\n[{len(text) - TEXT_LIMIT:,} more characters are not in this report; magicore show has them]"])
    return found


def _review(review: Review) -> dict[str, Any]:
    row: dict[str, Any] = {
        "chain": review.chain,
        "role": review.role,
        "instance": review.instance,
        "round": review.round,
        "decision": review.decision,
        "text": _cut(review.text, TEXT_LIMIT),
    }
    if review.confidence is not None:
        row["confidence"] = _rounded(review.confidence)
    if review.answer is not None:
        row["answer"] = review.answer
    return row


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters]"
