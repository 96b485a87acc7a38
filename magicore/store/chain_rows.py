"""Chains and their scores as objects of chains.jsonl, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from magicore.errors import InputError
from magicore.store.rows import Row
from magicore.types import Chain, Result, ScoredChain, StopReason
from reward_models.types import (
    Activation,
    OutcomeScore,
    Step,
    StepPart,
    StepScore,
    StepScores,
    Unscored,
    UnscoredCode,
)

CHAIN_KEYS: Final = (
    "id",
    "problem",
    "round",
    "index",
    "parent",
    "role",
    "text",
    "thinking",
    "steps",
    "orm",
    "prm",
    "combined",
    "scores",
    "token_logprobs",
    "answer",
    "answer_text",
    "stop",
    "kept",
    "tokens",
)
_MORE_KEYS: Final = ("no_answer", "top_logprobs")

_KNOWN: Final = frozenset((*CHAIN_KEYS, *_MORE_KEYS))
_STOPS: Final[tuple[StopReason, ...]] = get_args(StopReason)
_PARTS: Final[tuple[StepPart, ...]] = get_args(StepPart)
_ACTIVATIONS: Final[tuple[Activation, ...]] = get_args(Activation)
_CODES: Final[tuple[UnscoredCode, ...]] = get_args(UnscoredCode)


@dataclass(frozen=True, kw_only=True)
class ChainRecord:
    """A chain as a file holds it: ``kept`` are the rounds after which it was carried on, ``extra`` unknown keys."""

    scored: ScoredChain
    kept: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        """The object to write again; unknown keys come last."""
        row = chain_row(self.scored, self.kept)
        return row | {key: value for key, value in self.extra.items() if key not in row}


def chain_row(scored: ScoredChain, kept: Sequence[int] = ()) -> dict[str, Any]:
    """A scored chain as an object of chains.jsonl, keys in the order of the format.

    A step's ``unscored`` is ``code: reason``; ``scores.prm.scored`` and ``.unscored`` are counts. After the format's
    keys come, only where they have a value, ``no_answer`` and ``top_logprobs``, and inside ``scores`` the ``tokens``
    that scoring read, an ``activation`` of the process scores, and the ``recommended`` aggregation where another was
    used.

    Raises:
        ValueError: ``o`` is not the outcome score's value, or the process scores are of other steps than the chain's.
    """
    chain = scored.chain
    if scored.orm is not None and scored.orm.value != scored.o:
        raise ValueError(f"chain {chain.id}: o is {scored.o!r} and its outcome score {scored.orm.value!r}")
    row: dict[str, Any] = {
        "id": chain.id,
        "problem": chain.problem,
        "round": chain.round,
        "index": chain.index,
        "parent": chain.parent,
        "role": chain.role,
        "text": chain.text,
        "thinking": chain.thinking,
        "steps": _step_rows(chain, scored.prm),
        "orm": scored.o,
        "prm": scored.s,
        "combined": scored.combined,
        "scores": {"orm": _orm_row(scored.orm), "prm": _prm_row(scored)},
        "token_logprobs": _listed(chain.token_logprobs),
        "answer": chain.answer,
        "answer_text": chain.answer_text,
        "stop": chain.stop,
        "kept": list(kept),
        "tokens": chain.tokens,
    }
    if chain.no_answer is not None:
        row["no_answer"] = chain.no_answer
    if chain.top_logprobs is not None:
        row["top_logprobs"] = [list(position) for position in chain.top_logprobs]
    return row


def result_chain_records(result: Result) -> list[ChainRecord]:
    """Every chain of a result in the order of its rounds, each with the rounds after which it was kept."""
    rounds: dict[str, list[int]] = {}
    for one in result.rounds:
        for name in one.kept:
            rounds.setdefault(name, []).append(one.number)
    return [
        ChainRecord(scored=scored, kept=tuple(rounds.get(scored.chain.id, ())))
        for one in result.rounds
        for scored in one.chains
    ]


def read_chain_row(values: Mapping[str, Any], where: str) -> ChainRecord:
    """An object of chains.jsonl as a chain with its scores.

    Raises:
        InputError: A field is missing or of another type; says which.
    """
    row = Row(values, where)
    step_rows = row.objects("steps")
    chain = Chain(
        id=row.text("id"),
        problem=row.text("problem"),
        round=row.integer("round"),
        index=row.integer("index"),
        parent=row.optional_text("parent"),
        role=row.text("role"),
        text=row.text("text"),
        thinking=row.optional_text("thinking"),
        steps=tuple(map(_read_step, step_rows)),
        token_logprobs=row.optional_numbers("token_logprobs"),
        answer=row.optional_text("answer"),
        answer_text=row.optional_text("answer_text"),
        no_answer=row.optional_text("no_answer"),
        stop=row.one_of("stop", _STOPS),
        tokens=row.optional_integer("tokens"),
        top_logprobs=_read_top_logprobs(row),
    )
    scores = row.optional_object("scores") or Row({}, where)
    details = scores.optional_object("prm")
    return ChainRecord(
        scored=ScoredChain(
            chain=chain,
            orm=_read_orm(row, scores.optional_object("orm")),
            prm=None if details is None else _read_prm(chain.steps, step_rows, details),
            o=row.optional_number("orm"),
            s=row.optional_number("prm"),
            aggregation=None if details is None else details.text("aggregation"),
        ),
        kept=row.integers("kept"),
        extra=row.beyond(_KNOWN),
    )


def _step_rows(chain: Chain, prm: StepScores | None) -> list[dict[str, Any]]:
    """Steps and their scores. A chain that was not split takes the steps that the process model scored."""
    if prm is not None and chain.steps and prm.steps != chain.steps:
        raise ValueError(f"chain {chain.id}: the process scores are of other steps than the chain's")
    steps = chain.steps if prm is None else prm.steps
    scores: Iterable[StepScore | None] = [None] * len(steps) if prm is None else prm.scores
    return [
        {
            "text": step.text,
            "part": step.part,
            "start": step.start,
            "end": step.end,
            "score": None if score is None else score.value,
            "raw": None if score is None else score.raw,
            "unscored": None if score is None else _reason(score.unscored),
        }
        for step, score in zip(steps, scores, strict=True)
    ]


def _orm_row(orm: OutcomeScore | None) -> dict[str, Any] | None:
    if orm is None:
        return None
    row = {"raw": orm.raw, "activation": orm.activation, "unscored": _reason(orm.unscored)}
    return row if orm.tokens is None else row | {"tokens": orm.tokens}


def _prm_row(scored: ScoredChain) -> dict[str, Any] | None:
    prm = scored.prm
    if prm is None:
        return None
    count = sum(score.value is not None for score in prm.scores)
    how = scored.aggregation or prm.aggregation
    row: dict[str, Any] = {"aggregation": how, "scored": count, "unscored": len(prm.scores) - count}
    if prm.activation != "identity":
        row["activation"] = prm.activation
    if prm.aggregation != how:
        row["recommended"] = prm.aggregation
    return row if prm.tokens is None else row | {"tokens": prm.tokens}


def _reason(unscored: Unscored | None) -> str | None:
    return None if unscored is None else f"{unscored.code}: {unscored.reason}"


def _listed(values: Sequence[float] | None) -> list[float] | None:
    return None if values is None else list(values)


def _read_step(row: Row) -> Step:
    return Step(
        text=row.text("text"), part=row.one_of("part", _PARTS), start=row.integer("start"), end=row.integer("end")
    )


def _read_orm(row: Row, details: Row | None) -> OutcomeScore | None:
    if details is None:
        return None
    value = _read_unit(row, "orm")
    return OutcomeScore(
        value=value,
        raw=details.optional_number("raw"),
        activation=details.one_of("activation", _ACTIVATIONS),
        unscored=_read_reason(details, value),
        tokens=details.optional_integer("tokens"),
    )


def _read_prm(steps: tuple[Step, ...], rows: Sequence[Row], details: Row) -> StepScores:
    aggregation = details.text("aggregation")
    return StepScores(
        steps=steps,
        scores=tuple(map(_read_step_score, rows)),
        activation="identity"
        if details.values.get("activation") is None
        else details.one_of("activation", _ACTIVATIONS),
        aggregation=details.optional_text("recommended") or aggregation,
        tokens=details.optional_integer("tokens"),
    )


def _read_step_score(row: Row) -> StepScore:
    value = _read_unit(row, "score")
    return StepScore(value=value, raw=row.optional_number("raw"), unscored=_read_reason(row, value))


def _read_unit(row: Row, name: str) -> float | None:
    value = row.optional_number(name)
    if value is not None and not 0.0 <= value <= 1.0:
        raise InputError(f"{row.where}: `{name}` lies in [0, 1], this is {value!r}")
    return value


def _read_reason(row: Row, value: float | None) -> Unscored | None:
    text = row.optional_text("unscored")
    if (value is None) == (text is None):
        raise InputError(f"{row.where}: either a score or an `unscored` reason is expected, never both or neither")
    if text is None:
        return None
    name, _, reason = text.partition(": ")
    for code in _CODES:
        if code == name:
            return Unscored(code=code, reason=reason)
    raise InputError(f"{row.where}: `unscored` starts with one of {', '.join(_CODES)} and a colon, not {name[:40]!r}")


def _read_top_logprobs(row: Row) -> tuple[tuple[float, ...], ...] | None:
    value = row.values.get("top_logprobs")
    if value is None:
        return None
    if not isinstance(value, list):
        raise row.wrong("top_logprobs", "a list of lists of numbers")
    found = [Row({"top_logprobs": item}, row.where).optional_numbers("top_logprobs") for item in value]
    return tuple(item or () for item in found)
