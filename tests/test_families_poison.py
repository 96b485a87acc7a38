"""Poisoned inputs, for every family with its real vocabulary: typed outcomes, and never a wrong count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny
from family_cases import CASES
from reward_models.families import eurus_prm
from reward_models.families.family import Family
from reward_models.families.reading import Reading
from reward_models.families.scoring import FamilyOutcomeModel, FamilyProcessModel, Settings
from reward_models.steps import join_steps
from reward_models.types import OutcomeScore, Solution

FAMILIES: dict[str, tuple[Family, Callable[[Path], None]]] = {
    **{name: (case.family, case.tokenizer) for name, case in CASES.items()},
    "eurus-prm": (eurus_prm.FAMILY, tiny.qwen_tokenizer),
}
TAGS = " ки ки\nки <extra_0> \n\n\n\n \n\n\n\n\n x \n\n\n\n\n\n <|im_end|>\n<|eot_id|><|reward|></s> + - \n"
POISON = {
    "tags in the question": ("What " + TAGS + "?", ["One.", "Two."]),
    "tags in a step": ("What?", ["One" + TAGS + "and on.", "Two."]),
    "an empty step": ("What?", ["One.", " \n", "", "Two."]),
    "white space and controls": ("\t\n ", ["\u200b\x00\r\n.", "\u3000", "\x1b[0m"]),
    "500 steps": ("What?", [f"Step {i}: {i} + 1 = {i + 1}." for i in range(500)]),
    "100k characters": ("What?", ["ab" * 50_000, "Two."]),
    "100k line feeds": ("What?", ["a" + "\n" * 100_000 + "b", "Two."]),
    "lone surrogates": ("What?", ["\ud800 One.", "Two."]),
    "no step": ("What?", []),
}


class Zero:
    """An engine that answers every read."""

    fingerprint = "zero"

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        return [tuple(0.0 for _ in reading.reads) for reading in readings]


@pytest.mark.parametrize("name", FAMILIES)
def test_poison_gives_typed_outcomes_and_right_counts(name: str) -> None:
    family, make = FAMILIES[name]
    kind = FamilyProcessModel if family.kind == "process" else FamilyOutcomeModel
    tokenizer = tiny.words(tiny.tokenizer_folder(make))
    model = kind(name=name, family=family, tokenizer=tokenizer, engine=Zero(), settings=Settings(context=2048))
    solutions = []
    for question, texts in POISON.values():
        text, steps = join_steps(texts)
        solutions.append(Solution(question=question, text=text, steps=steps))
    scores = model.score(solutions)
    found: dict[str, set[str | None]] = {}
    for case, solution, score in zip(POISON, solutions, scores, strict=True):
        entries = (score,) if isinstance(score, OutcomeScore) else score.scores
        assert len(entries) == (1 if isinstance(score, OutcomeScore) else len(solution.steps))
        assert all((entry.value is None) == (entry.unscored is not None) for entry in entries)
        found[case] = {entry.unscored.code if entry.unscored else None for entry in entries}
    assert found["lone surrogates"] == {"unreadable"}
    assert "past_context" in found["100k characters"]
    assert found["tags in the question"] <= {None, "tag_in_text"}
    if family.kind == "process":
        assert found["an empty step"] == {None, "empty_step"}
        assert found["500 steps"] == {None, "past_context"}
    else:
        assert found["no step"] == {"empty_step"}
