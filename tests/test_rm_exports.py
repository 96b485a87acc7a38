"""The package's public names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import reward_models


def test_public_names_are_sorted_and_there() -> None:
    assert reward_models.__all__ == sorted(reward_models.__all__)
    assert all(hasattr(reward_models, name) for name in reward_models.__all__)
    assert {"Solution", "load_process_model", "register_process", "split_steps", "Batcher"} <= set(
        reward_models.__all__
    )


def test_importing_is_light() -> None:
    heavy = "{'torch', 'transformers', 'numpy', 'sympy', 'httpx2', 'openai'}"
    code = f"import sys, reward_models; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_readme_example_of_the_package() -> None:
    model = reward_models.load_process_model("arithmetic")
    [scores] = model.score([reward_models.Solution(question="3 + 4, doubled?", text="3 + 4 = 7. 7 * 2 = 15.")])
    assert [score.value for score in scores.scores] == [1.0, 0.05]
