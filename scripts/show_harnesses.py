"""lm-eval and inspect_ai, each a plain client of the gateway, against `magicore run` on the prompts that they logged.

    scripts/setup_harnesses.sh
    python scripts/show_harnesses.py [--model embedded] [--orm likelihood] [--k 4] [--questions 20]

Starts ``magicore serve`` in front of a model (unless one is named, a local endpoint that answers by rule), lets both
harnesses evaluate the same questions with ``weighted-self-consistency``, and then runs ``magicore run --prompts raw``
on each harness's logged prompts with the same cache and seed. The scores must be equal, and the run must find every
sample in the cache, which it does only if the solver was sent what the harness logged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import magicore
from magicore.datasets import generate
from magicore.store.run_store import RunStore
from magicore.testing.hostile import endpoint_process

SEED, TEMPERATURE, MAX_TOKENS = 1234, 0.8, 96
PRM = "arithmetic"
TASK = """\
task: magicore_shown
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{questions}"}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: [], do_sample: true, temperature: {temperature}, max_gen_toks: {max_tokens}}}
filter_list:
  - name: by-kind
    filter: [{{function: !function utils.Vote, kind: number}}, {{function: take_first}}]
  - name: own
    filter:
      - {{function: regex, regex_pattern: "(-?[0-9]+)[.]?$"}}
      - {{function: take_first}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
INSPECT_TASK = """\
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from magicore.harness.inspect_ai import grade


@task
def shown():
    fields = FieldSpec(input="question", target="answer", id="id")
    return Task(dataset=json_dataset({questions!r}, fields), solver=generate(), scorer=[grade(), match(numeric=True)])
"""


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """What a harness made of the questions: its scores and the prompts and golds in its log."""

    harness: str
    by_kind: float
    own: float
    prompts: list[dict[str, str]]


def main() -> int:
    """Run both harnesses and compare; 0 if everything agrees."""
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = options.model or stack.enter_context(endpoint_process()).name
        questions = _questions(folder / "questions.jsonl", options.questions)
        cache = folder / "cache.sqlite"
        url = stack.enter_context(_served(model, options.orm, cache))
        name = f"weighted-self-consistency:k={options.k}"
        found = [
            _lm_eval(options.python, url, name, questions, folder),
            _inspect(options.python, url, name, questions, folder),
        ]
        wrong = [one for one in found if not _agrees(one, model, options, cache)]
    return 1 if wrong else 0


def _agrees(one: Evaluated, model: str, options: Any, cache: Path) -> bool:
    """Run magicore on a harness's logged prompts, and say how the scores compare."""
    before = _cached(cache)
    run = magicore.solve_batch(
        one.prompts,
        model=model,
        orm=options.orm,
        prm=PRM,
        method="weighted-self-consistency",
        k=options.k,
        prompts="raw",
        kind="number",
        temperature=TEMPERATURE,
        max_tokens=MAX_TOKENS,
        seed=SEED,
        cache=str(cache),
        progress=False,
    )
    drawn = _cached(cache) - before
    accuracy = run.summary["accuracy"]
    same = accuracy == one.by_kind and drawn == 0
    sys.stdout.write(
        f"{one.harness}: {len(one.prompts)} questions; graded by kind {one.by_kind:.4f}, by the harness's own rule "
        f"{one.own:.4f}; magicore run {accuracy:.4f} on its prompts, {drawn} samples drawn anew: "
        f"{'equal' if same else 'NOT EQUAL'}\n"
    )
    return same


def _cached(cache: Path) -> int:
    store = RunStore(cache)
    try:
        return sum(1 for _ in store.completion_rows())
    finally:
        store.close()


def _questions(path: Path, n: int) -> Path:
    """Small sums and stories, as a local JSONL."""
    rows = [
        {"id": str(at), "question": problem.question, "answer": problem.answer}
        for at, problem in enumerate(generate("small", n, 7))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@contextmanager
def _served(model: str, orm: str, cache: Path) -> Iterator[str]:
    """``magicore serve`` for as long as the context lasts; its address."""
    command = [sys.executable, "-m", "magicore", "serve", "--model", model, "--orm", orm, "--prm", PRM]
    command += ["--kind", "number", "--cache", str(cache), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            if "serving at " not in said:
                raise RuntimeError(f"the gateway did not start: {said}{process.stderr.read()}")
            yield said.partition("serving at ")[2].partition(";")[0]
        finally:
            process.terminate()
            process.wait()


def _lm_eval(python: str, url: str, model: str, questions: Path, folder: Path) -> Evaluated:
    task, out = folder / "tasks", folder / "lm-eval"
    task.mkdir()
    text = TASK.format(questions=questions, temperature=TEMPERATURE, max_tokens=MAX_TOKENS)
    (task / "shown.yaml").write_text(text, encoding="utf-8")
    (task / "utils.py").write_text("from magicore.harness.lm_eval import Vote\n", encoding="utf-8")
    arguments = ["-m", "lm_eval", "run", "--model", "local-chat-completions", "--tasks", "magicore_shown"]
    arguments += ["--model_args", f"model={model},base_url={url}/chat/completions,num_concurrent=8,timeout=600"]
    arguments += ["--include_path", str(task), "--apply_chat_template", "--log_samples", "--output_path", str(out)]
    _run([python, *arguments], folder)
    [results] = out.rglob("results_*.json")
    scores = json.loads(results.read_text(encoding="utf-8"))["results"]["magicore_shown"]
    [samples] = out.rglob("samples_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    logged = {row["doc_id"]: row for row in rows}  # a row a filter
    return Evaluated(
        harness="lm-eval",
        by_kind=scores["exact_match,by-kind"],
        own=scores["exact_match,own"],
        prompts=[_logged_by_lm_eval(logged[at]) for at in sorted(logged)],
    )


def _logged_by_lm_eval(row: dict[str, Any]) -> dict[str, str]:
    prompt: Any = row["arguments"]["gen_args_0"]["arg_0"]
    if isinstance(prompt, list):
        [prompt] = prompt
    [turn] = json.loads(prompt)
    return {"id": str(row["doc_id"]), "question": turn["content"], "answer": str(row["target"])}


def _inspect(python: str, url: str, model: str, questions: Path, folder: Path) -> Evaluated:
    logs = folder / "inspect"
    (folder / "shown_task.py").write_text(INSPECT_TASK.format(questions=str(questions)), encoding="utf-8")
    arguments = ["-m", "inspect_ai", "eval", "shown_task.py", "--model", f"openai-api/magicore/{model}"]
    arguments += ["--seed", str(SEED), "--temperature", str(TEMPERATURE), "--max-tokens", str(MAX_TOKENS)]
    arguments += ["--log-dir", str(logs), "--log-format", "json", "--display", "none"]
    _run([python, *arguments], folder, MAGICORE_BASE_URL=url, MAGICORE_API_KEY="none")
    [log] = logs.glob("*.json")
    body = json.loads(log.read_text(encoding="utf-8"))
    if body["status"] != "success":
        raise RuntimeError(f"inspect_ai: {body.get('error')}")
    scores = {score["name"]: score["metrics"]["accuracy"]["value"] for score in body["results"]["scores"]}
    prompts = []
    for sample in body["samples"]:
        [turn] = [message for message in sample["messages"] if message["role"] != "assistant"]
        prompts.append({"id": str(sample["id"]), "question": turn["content"], "answer": str(sample["target"])})
    by_kind = next(value for name, value in scores.items() if name.endswith("grade"))
    return Evaluated(harness="inspect_ai", by_kind=by_kind, own=scores["match"], prompts=prompts)


def _run(command: list[str], folder: Path, **environment: str) -> None:
    """Run a harness's command.

    Raises:
        RuntimeError: It failed; with the end of what it said.
    """
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "TMPDIR": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **offline, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])} failed:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")


def _options() -> Any:
    folder = os.environ.get("MAGICORE_HARNESS_VENV", str(Path(__file__).parent.parent / ".venv-harness"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="the model behind the gateway; by default an endpoint that answers by rule")
    parser.add_argument(
        "--orm", default="likelihood", help="another where the model gives no log-probabilities: random"
    )
    parser.add_argument("--k", type=int, default=4, help="chains a question")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--python", default=f"{folder}/bin/python", help="the python that has both harnesses")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
