"""The inspect_ai solver and scorer, inside real evaluations on inspect_ai's own mock model."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai")

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER
from inspect_ai.solver import generate, system_message

from magicore.errors import CapabilityError, InputError, UnknownNameError
from magicore.harness.inspect_ai import grade, solve

pytestmark = pytest.mark.filterwarnings("default")

SAMPLES = [
    Sample(id="a", input="How many legs have 3 cats?", target="12"),
    Sample(id="b", input="How many legs have 2 ants?", target="12"),
    Sample(id="c", input="How many legs has a snake?", target="0"),
]
REPLIES = {
    "3 cats": ["The answer is 12.", "The answer is 8.", "I think the answer is $12.00."],
    "2 ants": ["The answer is 10.", "The answer is 12.", "So the answer is 10."],
    "a snake": ["I cannot say.", "Hm.", "No idea."],
}


class Replies:
    """What the mock model answers, by question; it keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[list[Any], Any]] = []
        self._given: dict[str, int] = {}

    def __call__(self, messages: list[Any], tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        self.sent.append((messages, config))
        key = next(key for key in REPLIES if key in messages[-1].text)
        number = self._given.get(key, 0)
        self._given[key] = number + 1
        output = ModelOutput.from_content("mockllm/model", REPLIES[key][number % 3])
        output.usage = ModelUsage(input_tokens=7, output_tokens=5, total_tokens=12)
        return output


def evaluate(task: Task, replies: Replies, log_dir: Path, **options: Any) -> Any:
    model = get_model("mockllm/model", custom_outputs=replies, memoize=False)
    [log] = inspect_ai.eval(task, model=model, log_dir=str(log_dir), display="none", **options)
    gc.collect()  # inspect_ai leaves streams unclosed, which is warned of here and not at the session's end
    assert log.status == "success", log.error
    return log


def scores(log: Any) -> dict[str, Any]:
    return {sample.id: next(iter(sample.scores.values())).value for sample in log.samples}


def test_the_solver_runs_a_method_on_the_evaluation_s_model(tmp_path: Path) -> None:
    replies = Replies()
    solver = [system_message("Count."), solve("self-consistency:k=3")]
    task = Task(dataset=SAMPLES, solver=solver, scorer=grade())
    log = evaluate(task, replies, tmp_path, temperature=0.3, max_tokens=77)
    assert scores(log) == {"a": CORRECT, "b": INCORRECT, "c": NOANSWER}
    assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(1 / 3)
    assert len(replies.sent) == 9
    messages, config = replies.sent[0]
    assert [message.role for message in messages] == ["system", "user"]
    assert (config.temperature, config.top_p, config.max_tokens) == (0.3, 0.95, 77)
    assert len({config.seed for _, config in replies.sent}) == 9
    by_id = {sample.id: sample for sample in log.samples}
    assert by_id["a"].output.completion == "The answer is 12."
    told = by_id["a"].metadata["magicore"]
    assert told["answer"] == "12" and told["votes"][0]["count"] == 2 and told["kind"] == "number"
    assert by_id["a"].messages[-1].role == "assistant"
    assert "no chain states an answer" in by_id["c"].metadata["magicore"]["warnings"][-1]


def test_every_epoch_draws_chains_of_its_own(tmp_path: Path) -> None:
    replies = Replies()
    task = Task(dataset=SAMPLES[:1], solver=solve("self-consistency:k=2"), scorer=grade())
    log = evaluate(task, replies, tmp_path, epochs=3, seed=5)
    assert len({config.seed for _, config in replies.sent}) == len(replies.sent) == 6
    seeds = [sample.metadata["magicore"]["seed"] for sample in sorted(log.samples, key=lambda one: one.epoch)]
    assert seeds[0] == 5 and len(set(seeds)) == 3


def test_the_scorer_grades_any_solver_s_output_by_value(tmp_path: Path) -> None:
    log = evaluate(Task(dataset=SAMPLES, solver=generate(), scorer=grade()), Replies(), tmp_path)
    assert scores(log) == {"a": CORRECT, "b": INCORRECT, "c": NOANSWER}
    listed = Sample(id="d", input="3 cats (A) 8 (B) 12 (C) 10?", target="B", choices=["8", "12", "10"])
    log = evaluate(Task(dataset=[listed], solver=generate(), scorer=grade("choice")), Replies(), tmp_path)
    assert scores(log)["d"] == CORRECT


def test_inspect_finds_both_by_name(tmp_path: Path) -> None:
    probe = (
        "from inspect_ai._util.registry import registry_lookup\n"
        "assert registry_lookup('solver', 'magicore/solve') and registry_lookup('scorer', 'magicore/grade')"
    )
    # In a folder and a process of its own: inspect_ai takes a checkout in the working folder for no installation.
    done = subprocess.run(
        [sys.executable, "-I", "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_wrong_options_are_said_before_anything_is_asked() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mars'"):
        solve("marz")
    with pytest.raises(InputError, match="kinds are"):
        grade("poem")
    with pytest.raises(CapabilityError, match="-S orm=NAME and -S prm=NAME"):
        solve("magicore")


def test_a_method_may_come_as_the_list_that_the_command_line_makes_of_it(tmp_path: Path) -> None:
    replies = Replies()
    task = Task(dataset=SAMPLES[:1], solver=solve(["magicore:k=2", "router=easy"], orm="random", prm="arithmetic"))
    log = evaluate(task, replies, tmp_path)
    assert len(replies.sent) == 2 and log.samples[0].metadata["magicore"]["verdict"]["router"] == "easy"


def test_equal_runs_share_a_cache(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache.sqlite")
    for sent in (9, 0):
        replies = Replies()
        task = Task(dataset=SAMPLES, solver=solve("self-consistency:k=3", cache=cache), scorer=grade())
        log = evaluate(task, replies, tmp_path / "logs")
        assert scores(log) == {"a": CORRECT, "b": INCORRECT, "c": NOANSWER} and len(replies.sent) == sent
    assert json.dumps(log.samples[0].metadata)
