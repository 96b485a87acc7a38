"""Tokens a second and memory of training a policy: our loop beside TRL's SFTTrainer, on the same conversations, base,
LoRA matrices and batches, each in a process of its own, in turn.

    pip install trl
    python scripts/bench_training.py
    python scripts/bench_training.py --steps 20 --repeats 2 --json training.json

Both train on the answers' tokens alone, in bfloat16 where this machine is faster with it. The first steps are not
timed. Tokens are those of the conversations, without padding.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from magicore.prompts import load_prompts
from magicore.training.config import TrainingConfig
from magicore.training.recipe import PROMPTS, Recipe, policy_data

WARM = 2
"""Steps before the clock starts."""
WAYS = ("ours", "trl, batches as they come", "trl, by length")


def rows(n: int) -> list[dict[str, Any]]:
    """The recipe's own conversations: problems solved, and a third as many reviewed and refined."""
    wanted = Recipe(problems=n // 5 + 1, reviews=n // 15 + 1)
    return list(policy_data(wanted, load_prompts(PROMPTS)))[:n]


def ours(data: Path, config: TrainingConfig) -> dict[str, float]:
    """Our loop."""
    from magicore.training.loop import fit
    from magicore.training.train import make_examples
    from magicore.training.trainee import open_trainee
    from reward_models.local.processor import compute

    trainee = compute(lambda: open_trainee(config))
    examples = make_examples(config, str(data), None, trainee).kept
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        compute(
            lambda: fit(
                trainee, examples, [], config, Path(folder), key="", told=lambda at, _: clock.told(at.step, at.tokens)
            )
        )
    return clock.figures()


def trl(data: Path, config: TrainingConfig, *, by_length: bool) -> dict[str, float]:
    """TRL's loop, over conversations of a prompt and a completion."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

    from magicore.training.trainee import find_base, frozen_dtype

    theirs: Any = import_module("trl")  # publishes types only in part
    where, _, _ = find_base(config.base)
    tokenizer: Any = AutoTokenizer.from_pretrained(where)
    talks = [json.loads(line)["messages"] for line in data.read_text(encoding="utf-8").splitlines()]
    lengths = [len(tokenizer.apply_chat_template(talk, tokenize=True)["input_ids"]) for talk in talks]
    clock = Clock()

    class Told(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            clock.told(state.global_step, state.global_step * config.batch * sum(lengths) / len(lengths))

    dtype = frozen_dtype(config)
    matrices: dict[str, Any] = {"r": config.rank, "lora_alpha": config.scale, "target_modules": "all-linear"}
    with tempfile.TemporaryDirectory() as folder:
        trainer = theirs.SFTTrainer(
            model=AutoModelForCausalLM.from_pretrained(where, dtype=dtype),
            processing_class=tokenizer,
            train_dataset=Dataset.from_list([{"prompt": talk[:-1], "completion": talk[-1:]} for talk in talks]),
            args=theirs.SFTConfig(
                output_dir=folder,
                max_steps=config.steps,
                per_device_train_batch_size=config.batch,
                learning_rate=config.learning_rate,
                max_length=config.max_length,
                bf16=dtype == torch.bfloat16,
                use_cpu=not torch.cuda.is_available(),
                gradient_checkpointing=False,
                train_sampling_strategy="group_by_length" if by_length else "random",
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                logging_steps=10**6,
            ),
            peft_config=LoraConfig(**matrices),
            callbacks=[Told()],
        )
        trainer.train()
    return clock.figures()


class Clock:
    """Time and tokens from the end of the warm steps on."""

    def __init__(self) -> None:
        self._begun = (0.0, 0.0, 0.0)
        self._last = (0.0, 0.0, 0.0)

    def told(self, step: int, tokens: float) -> None:
        """A step ended, after so many tokens in all."""
        now = (time.perf_counter(), time.process_time(), tokens)
        if step <= WARM:
            self._begun = now
        self._last = now

    def figures(self) -> dict[str, float]:
        """Tokens a second by wall and by processor time, and the process's largest memory."""
        wall, cpu, tokens = (end - begin for begin, end in zip(self._begun, self._last, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"tokens_per_second": tokens / wall, "tokens_per_cpu_second": tokens / cpu, "peak_mb": peak}


def measure(way: str, data: Path, args: argparse.Namespace) -> dict[str, float]:
    """One way in a process of its own."""
    command = [sys.executable, __file__, "--way", way, "--data", str(data), "--steps", str(args.steps)]
    done = subprocess.run([*command, "--batch", str(args.batch)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{way}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all ways, the best of the repeats of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        config = TrainingConfig(
            kind="policy", base="embedded:base", batch=args.batch, steps=args.steps, prompts=PROMPTS, held_out=0
        )
        found = (
            ours(args.data, config) if args.way == "ours" else trl(args.data, config, by_length="length" in args.way)
        )
        sys.stdout.write(json.dumps(found) + "\n")
        return
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "conversations.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows(args.steps * args.batch)), encoding="utf-8")
        for _ in range(args.repeats):
            for way in WAYS:
                found = measure(way, data, args)
                if way not in best or found["tokens_per_second"] > best[way]["tokens_per_second"]:
                    best[way] = found
    table = Table("way", "tokens/s", "tokens/CPU s", "peak MB", "ours is")
    for way, found in best.items():
        ratio = best["ours"]["tokens_per_second"] / found["tokens_per_second"]
        numbers = (found["tokens_per_second"], found["tokens_per_cpu_second"], found["peak_mb"])
        table.add_row(way, *(f"{one:,.0f}" for one in numbers), f"{ratio:.2f} x")
    Console().print(table)
    if args.json:
        args.json.write_text(json.dumps(best, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
