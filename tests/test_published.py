"""Published figures: where they come from, and that they are shown beside the right runs only."""

from __future__ import annotations

import pytest

from magicore.evaluate.published import LABEL, published_figures, published_for
from magicore.methods import method_names


def test_every_figure_names_a_paper_and_a_method_and_has_something_to_compare() -> None:
    for figure in published_figures():
        assert "arXiv" in figure.source and figure.method in method_names() and figure.row["label"] == LABEL
        assert any(value is not None for value in (figure.accuracy, figure.difference, figure.tokens))
        assert figure.accuracy is None or 0 < figure.accuracy < 1


@pytest.mark.parametrize(
    ("model", "data", "methods"),
    [
        ("openai:gpt-4o-mini", "hf:Idavidrein/gpqa:gpqa_diamond:train", {"mars", "debate"}),
        ("openai:gpt-4o-mini-2024-07-18", "data/gpqa_diamond.jsonl", {"mars", "debate"}),
        ("hf:meta-llama/Meta-Llama-3-8B-Instruct", "questions/math500_test.jsonl", {"magicore", "best-of-k"}),
        ("openai:meta-llama/Meta-Llama-3-8B-Instruct@http://gpu:8000/v1", "SVAMP.json", {"magicore", "best-of-k"}),
        ("hf:meta-llama/Llama-3.1-8B-Instruct", "math.jsonl", set()),  # another model
        ("openai:gpt-4o-mini", "my_gpqa_copy.jsonl", set()),  # nothing is guessed from parts of names
        ("openai:gpt-4o-mini", None, set()),
        ("embedded", "demo", set()),
    ],
)
def test_a_run_is_matched_by_model_and_data(model: str, data: str | None, methods: set[str]) -> None:
    assert {figure.method for figure in published_for(model, data)} == methods


def test_a_table_of_the_paper_as_it_stands() -> None:
    rows = [f for f in published_for("hf:meta-llama/Meta-Llama-3-8B-Instruct", "math.jsonl") if f.setting]
    assert {f.setting: f.accuracy for f in rows if f.accuracy is not None} == {
        "k = 40, 3 iterations": 0.478,
        "k = 120": 0.414,
        "selective refinement only": 0.44,
        "error localisation only": 0.454,
        "iteration only": 0.364,
    }
