"""How well steps are judged: by the trained process reward model, by rule, and by the policy's own probabilities; and
how well automatic labels agree with the truth. After `scripts/train_embedded.py WORK`.

    python scripts/step_judges.py WORK                  the recipe's families, and prices, on which nothing was trained
    python scripts/step_judges.py WORK --seen stories --unseen prices --n 40 --k 4

The truth of every step is exact, since the problems are generated. AUROC is over all steps of a family's chains.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import magicore
from magicore.answers.kinds import Kind
from magicore.datasets import load_problems
from magicore.datasets.families import draw_family, drawn_by_id
from magicore.datasets.families.plan import step_truth
from magicore.evaluate.judging import evaluate_reward_model
from magicore.llms.local.loading import LoadedModel, choose_device, choose_dtype, find_checkpoint, load
from magicore.llms.local.prompts import prompt_tokens
from magicore.prompts import load_prompts
from magicore.store.files import write_problems
from magicore.store.json_lines import read_json_lines
from magicore.training.recipe import FAMILIES, PROMPTS, Recipe
from reward_models import Solution, StepScore, StepScores, Unscored, with_steps
from reward_models.local.processor import compute

UNSEEN_SEED = 4
Row = dict[str, Any]


class StepLikelihood:
    """Each step's mean token probability under the policy that wrote it, in [0, 1]: its own confidence.

    ``kind`` is that of the answers, since the prompt names their form.
    """

    def __init__(self, policy: Path, prompts: str) -> None:
        self.name = "likelihood"
        self.kind: Kind = "number"
        device = choose_device("auto")
        dtype = choose_dtype("auto", device, deterministic=False)
        self._loaded: LoadedModel = compute(lambda: load(find_checkpoint(str(policy), None), device, dtype), device)
        self._prompts = load_prompts(prompts)

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """One entry a step."""
        return [compute(partial(self._score, with_steps(one)), self._loaded.device) for one in solutions]

    def _score(self, solution: Solution) -> StepScores:
        asked = self._prompts.messages("solver", self.kind, question=solution.question)
        prompt = prompt_tokens(self._loaded.tokenizer, asked, None)
        written = self._loaded.tokenizer(solution.text, add_special_tokens=False, return_offsets_mapping=True)
        ids = torch.tensor([prompt + written["input_ids"]], device=self._loaded.device)
        with torch.inference_mode():
            logits = self._loaded.model(ids).logits[0, len(prompt) - 1 : -1].float()
            found = logits.softmax(-1).gather(1, ids[0, len(prompt) :, None])[:, 0].tolist()
        scores = []
        for step in solution.steps:
            own = [
                p
                for p, (first, _) in zip(found, written["offset_mapping"], strict=True)
                if step.start <= first < step.end
            ]
            value = sum(own) / len(own) if own else None
            missing = None if own else Unscored(code="empty_step", reason="the step has no token")
            scores.append(StepScore(value=value, unscored=missing))
        return StepScores(steps=solution.steps, scores=tuple(scores), aggregation="mean")


def judged_rows(
    chains: Path, problems: Path, family: str, prm: str, likelihood: StepLikelihood, seen: bool
) -> list[Row]:
    """A row a judge for one family's chains."""
    rows: list[Row] = []
    likelihood.kind = draw_family(family, 1, 0, "test")[0].arithmetic.kind
    for name, model in (("trained", prm), ("arithmetic", "arithmetic"), ("likelihood", likelihood)):
        made = evaluate_reward_model(model, chains, problems=str(problems), kind="process").report
        steps, outcomes = made.steps, made.outcomes
        rows.append(
            {
                "family": family,
                "trained_on": seen,
                "judge": name,
                "steps": steps.n if steps else 0,
                "steps_right": steps.right / steps.n if steps and steps.n else None,
                "step_auroc": steps.auroc if steps else None,
                "answer_auroc": outcomes.auroc if outcomes else None,
            }
        )
    return rows


def agreement_rows(labels: Iterable[Row], most: int) -> list[Row]:
    """Agreement of labels from N completions with the truth of the steps, for N from 1 to ``most``.

    With N of the M completions that were made, a label is 1 if any of the N reaches the answer (Math-Shepherd's hard
    estimate): the mean over all choices of N, 1 - C(M - reached, N) / C(M, N). The steps with at least ``most``
    completions count, final answers left out, whose label needs none.
    """
    steps = [
        (reached, finished, right) for row in labels for reached, finished, right in _steps(row) if finished >= most
    ]
    rows = []
    for n in range(1, most + 1):
        hits = [1 - math.comb(m - reached, n) / math.comb(m, n) for reached, m, _ in steps]
        agree = [hit if right else 1 - hit for hit, (_, _, right) in zip(hits, steps, strict=True)]
        good = [hit for hit, (_, _, right) in zip(hits, steps, strict=True) if right]
        bad = [hit for hit, (_, _, right) in zip(hits, steps, strict=True) if not right]
        rows.append(
            {
                "n": n,
                "steps": len(steps),
                "agree": sum(agree) / len(agree) if agree else None,
                "right_called_right": sum(good) / len(good) if good else None,
                "wrong_called_right": sum(bad) / len(bad) if bad else None,
            }
        )
    return rows


def _steps(row: Row) -> Iterable[tuple[int, int, bool]]:
    drawn = drawn_by_id(row["id"])
    if drawn is None:
        return
    truth = step_truth(drawn, row["steps"])
    first_wrong = next((at for at, right in enumerate(truth) if right is False), len(truth))
    for at, (trial, right) in enumerate(zip(row["trials"], truth, strict=True)):
        if trial is not None and right is not None:
            # From a wrong step on nothing is right any more, for a completion as for a reader.
            yield trial["reached"], trial["finished"], right and at < first_wrong


def show(rows: Sequence[Row], title: str, console: Console, out: Path) -> None:
    """A table in the terminal, and the same as CSV."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*("-" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Judge the recipe's held-out chains and chains of a family that nothing was trained on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="the recipe's folder")
    parser.add_argument("--seen", nargs="*", default=list(FAMILIES), help="families of the recipe")
    parser.add_argument("--unseen", nargs="*", default=["prices"], help="families that nothing was trained on")
    parser.add_argument("--n", type=int, default=40, help="problems of an unseen family")
    parser.add_argument("--k", type=int, default=4, help="chains of each")
    parser.add_argument("--labels", type=Path, help="labels.jsonl; the recipe's by default")
    asked = parser.parse_args()
    work, console = asked.work, Console(highlight=False, soft_wrap=True)
    likelihood = StepLikelihood(work / "policy", PROMPTS)
    prm = f"math-shepherd:{work / 'prm'}"
    rows: list[Row] = []
    for family in asked.seen:
        rows += judged_rows(
            work / f"check.{family}.jsonl", work / "check.problems.jsonl", family, prm, likelihood, seen=True
        )
    for family in asked.unseen:
        run = work / f"unseen-{family}"
        magicore.solve_batch(
            f"gen:{family}:{asked.n}:{UNSEEN_SEED}:test",
            model=f"hf:{work / 'policy'}",
            method="self-consistency",
            k=asked.k,
            prompts=PROMPTS,
            max_tokens=Recipe().max_tokens,
            out=run,
        )
        problems = work / f"unseen-{family}.problems.jsonl"
        write_problems(problems, load_problems(f"gen:{family}:{asked.n}:{UNSEEN_SEED}:test"))
        rows += judged_rows(run / "chains.jsonl", problems, family, prm, likelihood, seen=False)
    show(rows, "Step scores against the truth of the steps", console, work / "step_judges.csv")
    labels = [record.row for record in read_json_lines(asked.labels or work / "labels" / "labels.jsonl")]
    most = max((trial["finished"] for row in labels for trial in row["trials"] if trial), default=1)
    show(agreement_rows(labels, most), "Automatic labels against the truth", console, work / "label_agreement.csv")


if __name__ == "__main__":
    main()
