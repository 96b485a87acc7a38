"""Runs for the report's tests: real ones with scripted models, and synthetic ones of any size."""

from __future__ import annotations

import json
import random
from pathlib import Path

import magicore
from difficulty import Verdict
from family import TableORM, TablePRM
from magicore.config import RunConfig, config_toml
from magicore.evaluate import summarise
from magicore.llms.base import Request
from magicore.llms.scripted import ScriptedModel
from magicore.runtime.directory import CONFIG, directory_writer
from magicore.types import (
    Abstention,
    Chain,
    ClassVotes,
    Failure,
    Result,
    Review,
    RoleUsage,
    Round,
    ScoredChain,
    Usage,
)
from reward_models.types import OutcomeScore, Step, StepScore, StepScores, Unscored

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m\u202e {{ 7 * 7 }} & \u2028"
"""What must come out as text, wherever a model writes it."""


def questions(folder: Path, rows: list[dict[str, object]]) -> Path:
    """A problems file."""
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def solution(name: str, value: object) -> str:
    """Two steps that end on ``value``."""
    return f"Step 1: {name}\nStep 2: The final answer is {value}."


SCRIPTED_PROBLEMS: list[dict[str, object]] = [
    {"id": "easy", "question": "What is 40 + 2?", "answer": "42"},
    {"id": "fixed", "question": "How many jars?", "answer": "72"},
    {"id": "broken", "question": "How many pens?", "answer": "5"},
    {"id": "silent", "question": "How many <b>stars</b>?", "answer": "9"},
]
_FIRST = {
    "easy": [("e0", 42), ("e1", 42), ("e2", 42), ("e3", 41)],
    "fixed": [("f0", 72), ("f1", 8), ("f2", 6), ("f3", 7)],
    "broken": [("b0", 6), ("b1", 7), ("b2", 8), ("b3", 5)],
    "silent": [("s0", None), ("s1", None), ("s2", None), ("s3", None)],
}
_SECOND = {"fixed": ("g", 72), "broken": ("c", 6), "silent": ("t", 9)}


def scripted_run(folder: Path, out: Path, *, method: str = "magicore", orm: bool = True, prm: bool = True) -> Path:
    """Four problems with four chains and one round: one easy, one fixed, one broken, one that answers after a round."""
    data = questions(folder, SCRIPTED_PROBLEMS)
    names = {str(row["question"]): str(row["id"]) for row in SCRIPTED_PROBLEMS}
    scores: dict[str, float] = {}
    steps: dict[str, list[float]] = {}
    texts: dict[tuple[str, str, int], str] = {}
    for name, chains in _FIRST.items():
        for index, (label, value) in enumerate(chains):
            text = solution(label, value) if value is not None else f"Step 1: {label}\nStep 2: I do not know."
            texts[name, "solver", index] = text
            scores[text] = 0.95 if name == "easy" else 0.2 + 0.01 * index
            steps[text] = [0.9, 0.95] if name == "easy" else [0.6, 0.3]
    for name, (label, value) in _SECOND.items():
        for index in range(4):
            text = solution(f"{label}{index}", value)
            texts[name, "refiner", index] = text
            scores[text], steps[text] = 0.9, [0.9, 0.9]

    def script(request: Request, index: int) -> str:
        if request.key.role == "reviewer":
            return f"Step 2 is wrong. {HOSTILE}"
        name = next(n for q, n in names.items() if q in str(request.messages))
        return texts[name, request.key.role, index]

    reward = {"orm": TableORM(scores) if orm else None, "prm": TablePRM(steps) if prm else None}
    options = {"iterations": 1} if method == "magicore" else {}
    magicore.solve_batch(
        data=str(data),
        model=ScriptedModel(script),
        method=method,
        k=4,
        out=out,
        progress=False,
        **{name: model for name, model in reward.items() if model is not None},
        **options,
    )
    return out


def synthetic_run(
    out: Path,
    n: int,
    k: int,
    *,
    seed: int = 0,
    gold: bool = True,
    failed: int = 0,
    skill: float = 0.5,
    steps: int = 4,
) -> Path:
    """A run as if it had been made: chains right with a problem's own probability, scores that know a little of it.

    Every fourth hard problem is fixed and every seventh broken in its one round; the last ``failed`` problems failed.
    """
    draw = random.Random(seed)
    out.mkdir(parents=True)
    data = questions(out.parent, [{"id": f"p{i}", "question": _question(i), "answer": str(i)} for i in range(n)])
    config = RunConfig(model="scripted", orm="table-orm", prm="table-prm", data=str(data), options={"k": k})
    (out / CONFIG).write_text(config_toml(config))
    results = []
    with directory_writer(out) as writer:
        for i in range(n):
            result = _failed(i) if i >= n - failed else _synthetic(i, k, draw, gold=gold, skill=skill, steps=steps)
            results.append(result)
            writer.add(result, {"seconds": 1.0})
        writer.finish(None, summarise(results, config=config, wall_s=12.5))
    return out


def _question(i: int) -> str:
    return f"Problem {i}: a jar holds {i % 17 + 3} marbles and {i % 5 + 2} jars stand on each of the shelves; how many?"


def _failed(i: int) -> Result:
    return Result(
        id=f"p{i}",
        kind="number",
        method="magicore",
        gold=str(i),
        correct=False,
        stop="failed",
        error=Failure(type="ConnectionFailed", message=f"nothing answered {HOSTILE}"),
    )


def _synthetic(i: int, k: int, draw: random.Random, *, gold: bool, skill: float, steps: int) -> Result:
    level = min(0.98, max(0.02, draw.gauss(skill, 0.3)))
    first = [_chain(i, "solver", 0, index, draw, level, steps) for index in range(k)]
    share = sum(one.chain.answer == str(i) for one in first) / k
    z, sure = draw.gauss(3 * (share - 0.5), 0.7), min(1.0, max(0.2, draw.gauss(0.25 + 0.7 * abs(share - 0.4), 0.1)))
    easy = z >= 0 or sure >= 0.5
    right = share > 0.45
    verdict = Verdict(
        router="magicore",
        easy=easy,
        condition_1=z >= 0,
        condition_2=sure >= 0.5,
        z=z,
        confidence_orm=sure,
        confidence_prm=min(1.0, sure + 0.05),
    )
    rounds = [Round(number=0, chains=tuple(first), kept=tuple(one.chain.id for one in first), verdict=verdict)]
    answer = str(i) if right else str(i + 1)
    if not easy:
        answer = str(i) if i % 4 == 0 else str(i + 1) if i % 7 == 0 else answer
        new = [
            _chain(i, "refiner", 1, index, draw, 1.0 if answer == str(i) else 0.0, steps, parent=first[index].chain.id)
            for index in range(k)
        ]
        reviews = tuple(
            Review(chain=one.chain.id, role="reviewer", round=1, text=f"Step 2 forgets to carry. {HOSTILE}")
            for one in first
        )
        kept = tuple(one.chain.id for one in new)
        rounds.append(Round(number=1, chains=tuple(new), kept=kept, reviews=reviews, verdict=verdict))
    last = rounds[-1].chains
    silent = [one for one in last if one.chain.answer is None]
    counts = {value: sum(one.chain.answer == value for one in last) for value in (str(i), str(i + 1))}
    return Result(
        id=f"p{i}",
        kind="number",
        method="magicore",
        answer=answer,
        answer_text=answer,
        gold=str(i) if gold else None,
        correct=answer == str(i) if gold else None,
        chain=next((one.chain.id for one in last if one.chain.answer == answer), None),
        verdict=verdict,
        votes=tuple(
            ClassVotes(answer=value, count=count, weight=1.3 * count) for value, count in counts.items() if count
        ),
        abstained=tuple(Abstention(chain=one.chain.id, reason="cut off") for one in silent),
        rounds=tuple(rounds),
        usage=(
            RoleUsage(role="solver", model="scripted", usage=Usage(prompt=120, completion=90 * k, calls=1)),
            *(
                RoleUsage(role=role, model="scripted", usage=Usage(prompt=300 * k, completion=60 * k, calls=k))
                for role in (() if easy else ("reviewer", "refiner"))
            ),
            RoleUsage(role="orm", model="table-orm", usage=Usage(prompt=200 * k, calls=k)),
            RoleUsage(role="prm", model="table-prm", usage=Usage(prompt=200 * k, calls=k)),
        ),
    )


def _chain(
    i: int,
    role: str,
    number: int,
    index: int,
    draw: random.Random,
    level: float,
    steps: int,
    *,
    parent: str | None = None,
) -> ScoredChain:
    right = draw.random() < level
    cut = draw.random() < 0.03
    lines = [
        f"Step {at + 1}: on shelf {at + 1} there are {draw.randint(2, 90)} marbles, and so {draw.randint(2, 90)} more "
        f"than on the shelf above, which I add to what I had so far.\n"
        for at in range(steps - 1)
    ]
    lines.append(
        f"Step {steps}: The final answer is" if cut else f"Step {steps}: The final answer is {i + (not right)}."
    )
    text = "".join(lines)
    ends = [sum(map(len, lines[: at + 1])) for at in range(steps)]
    split = tuple(
        Step(text=line, part="text", start=end - len(line), end=end) for line, end in zip(lines, ends, strict=True)
    )
    values = [min(1.0, max(0.0, draw.gauss(0.75 if right else 0.5, 0.2))) for _ in split]
    scores = [StepScore(value=value, raw=value) for value in values]
    if index == 1:
        scores[0] = StepScore(value=None, unscored=Unscored(code="no_equation", reason="no equation in it"))
    o = min(1.0, max(0.0, draw.gauss(0.65 if right else 0.4, 0.2)))
    known = [score.value for score in scores if score.value is not None]
    return ScoredChain(
        chain=Chain(
            id=f"p{i}/{role}/0/{number}/{index}",
            problem=f"p{i}",
            role=role,
            round=number,
            index=index,
            parent=parent,
            text=text,
            stop="length" if cut else "stop",
            steps=split,
            answer=None if cut else str(i + (not right)),
            answer_text=None if cut else str(i + (not right)),
            no_answer="cut off" if cut else None,
            tokens=60 + 10 * steps,
        ),
        orm=OutcomeScore(value=o, raw=o),
        prm=StepScores(steps=split, scores=tuple(scores)),
        o=o,
        s=min(known, default=None),
        aggregation="min",
    )
