"""Results as objects of results.jsonl, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from difficulty import Verdict
from magicore.answers.kinds import KINDS
from magicore.store.rows import Row
from magicore.types import Abstention, ClassVotes, Failure, Result, ResultStop, RoleUsage, Usage

RESULT_KEYS: Final = (
    "id",
    "answer",
    "answer_text",
    "gold",
    "correct",
    "kind",
    "method",
    "chain",
    "verdict",
    "votes",
    "abstained",
    "rounds",
    "stop",
    "error",
    "usage",
    "warnings",
)
_KNOWN: Final = frozenset(RESULT_KEYS)
_STOPS: Final[tuple[ResultStop, ...]] = get_args(ResultStop)


@dataclass(frozen=True, kw_only=True)
class ResultRecord:
    """A result as a file holds it: ``rounds`` is how many there were (their chains are in chains.jsonl)."""

    result: Result
    rounds: int
    extra: Mapping[str, Any] = field(default_factory=dict)


def result_row(result: Result) -> dict[str, Any]:
    """A result as an object of results.jsonl, keys in the order of the format.

    ``rounds`` counts the rounds of the result, the first sampling (round 0) among them. A role's usage has
    ``unmetered`` only where some of its calls came without token counts, which makes the counts a lower bound.
    """
    return {
        "id": result.id,
        "answer": result.answer,
        "answer_text": result.answer_text,
        "gold": result.gold,
        "correct": result.correct,
        "kind": result.kind,
        "method": result.method,
        "chain": result.chain,
        "verdict": None if result.verdict is None else _verdict_row(result.verdict),
        "votes": [{"answer": vote.answer, "count": vote.count, "weight": vote.weight} for vote in result.votes],
        "abstained": [{"chain": one.chain, "reason": one.reason} for one in result.abstained],
        "rounds": len(result.rounds),
        "stop": result.stop,
        "error": None if result.error is None else {"type": result.error.type, "message": result.error.message},
        "usage": list(map(_usage_row, result.usage)),
        "warnings": list(result.warnings),
    }


def read_result_row(values: Mapping[str, Any], where: str) -> ResultRecord:
    """An object of results.jsonl as a result without its rounds.

    Raises:
        InputError: A field is missing or of another type; says which.
    """
    row = Row(values, where)
    error = row.optional_object("error")
    verdict = row.optional_object("verdict")
    return ResultRecord(
        result=Result(
            id=row.text("id"),
            kind=row.one_of("kind", KINDS),
            method=row.text("method"),
            answer=row.optional_text("answer"),
            answer_text=row.optional_text("answer_text"),
            gold=row.optional_text("gold"),
            correct=row.optional_flag("correct"),
            chain=row.optional_text("chain"),
            verdict=None if verdict is None else _read_verdict(verdict),
            votes=tuple(
                ClassVotes(
                    answer=vote.text("answer"), count=vote.integer("count"), weight=vote.optional_number("weight")
                )
                for vote in row.objects("votes")
            ),
            abstained=tuple(
                Abstention(chain=one.text("chain"), reason=one.text("reason")) for one in row.objects("abstained")
            ),
            stop=row.one_of("stop", _STOPS),
            error=None if error is None else Failure(type=error.text("type"), message=error.text("message")),
            usage=tuple(map(_read_usage, row.objects("usage"))),
            warnings=row.texts("warnings"),
        ),
        rounds=row.integer("rounds"),
        extra=row.beyond(_KNOWN),
    )


def _verdict_row(verdict: Verdict) -> dict[str, Any]:
    return {
        "router": verdict.router,
        "easy": verdict.easy,
        "condition_1": verdict.condition_1,
        "condition_2": verdict.condition_2,
        "z": verdict.z,
        "confidence_orm": verdict.confidence_orm,
        "confidence_prm": verdict.confidence_prm,
    }


def _read_verdict(row: Row) -> Verdict:
    return Verdict(
        router=row.text("router"),
        easy=row.flag("easy"),
        condition_1=row.optional_flag("condition_1"),
        condition_2=row.optional_flag("condition_2"),
        z=row.optional_number("z"),
        confidence_orm=row.optional_number("confidence_orm"),
        confidence_prm=row.optional_number("confidence_prm"),
    )


def _usage_row(spent: RoleUsage) -> dict[str, Any]:
    usage = spent.usage
    row: dict[str, Any] = {
        "role": spent.role,
        "model": spent.model,
        "prompt": usage.prompt,
        "completion": usage.completion,
        "reasoning": usage.reasoning,
        "calls": usage.calls,
    }
    return row | {"unmetered": usage.unmetered} if usage.unmetered else row


def _read_usage(row: Row) -> RoleUsage:
    return RoleUsage(
        role=row.text("role"),
        model=row.text("model"),
        usage=Usage(
            prompt=row.integer("prompt"),
            completion=row.integer("completion"),
            reasoning=row.integer("reasoning"),
            calls=row.integer("calls"),
            unmetered=row.optional_integer("unmetered") or 0,
        ),
    )
