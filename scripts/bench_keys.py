"""Keying mathematical answers against comparing them in pairs with Math-Verify, in one run.

For each problem K answers are made from its gold answer: rewritings that are equal to it, near misses that are not,
and a few that cannot be read. Ours groups them by canonical key; the baseline parses each distinct text once with
Math-Verify and compares it to one representative of each class found so far, as pairwise graders do. Both start cold.

    python scripts/bench_keys.py --golds problems.jsonl --problems 500 --answers 120
"""

import argparse
import json
import logging
import os
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from magicore.answers import classes
from magicore.answers.canonical import clear_cache
from magicore.answers.pool import close

SURDS = ["3\\sqrt{13}", "\\frac{\\sqrt{3}}{3}", "11 \\sqrt{5} + 11", "\\frac{20000}{\\pi}", "-\\frac{\\pi}{6}"]
SYMBOLIC = ["x^3+3x-6", "(a+5)(b+2)", "8n^2 + 4n + 1", "5r^5", "y = 2x + 3", "\\frac{11+9a}{20}", "2k+2", "p - q"]
SHAPES = ["(6,31,-1)", "(3,4]", "\\{1\\pm\\sqrt{5},-2\\}", "(0,9) \\cup (9,36)", "3, 5, 7", "1 \\pm \\sqrt{19}"]
PLAIN_SHARE = 0.72
EQUAL_SHARE, UNREADABLE_SHARE = 0.55, 0.02


def made_golds(count: int, rng: random.Random) -> list[str]:
    """Gold answers in the proportions of competition mathematics: mostly integers and fractions."""
    golds = []
    for _ in range(count):
        if rng.random() < PLAIN_SHARE:
            top, bottom = rng.randint(-500, 3000), rng.choice([1, 1, 1, 1, 3, 7, 16])
            golds.append(str(top) if bottom == 1 else f"\\frac{{{top}}}{{{bottom}}}")
        else:
            golds.append(rng.choice(SURDS + SYMBOLIC + SHAPES))
    return golds


REWRITINGS: Sequence[Callable[[str], str]] = (
    lambda text: text,
    lambda text: text,
    lambda text: text.replace("\\frac", "\\dfrac"),
    lambda text: f"${text}$",
    lambda text: f"{text}.",
    lambda text: re.sub(r"\s*([+=])\s*", r" \1 ", text),
    lambda text: text.replace("(", "\\left(").replace(")", "\\right)").replace("]", "\\right]"),
    lambda text: re.sub(r"^(-?)\\frac\{(\d+)\}\{(\d+)\}$", r"\1\2/\3", text),
    lambda text: re.sub(r"^(-?\d+)$", r"\1.0", text),
    lambda text: f"\\boxed{{{text}}}",
    lambda text: f"x = {text}" if re.fullmatch(r"-?\d+|\\frac\{\d+\}\{\d+\}", text) else text,
)


def near_miss(text: str, rng: random.Random) -> str:
    """`text` with one digit changed, a sign turned or a term added."""
    digits = [match.start() for match in re.finditer(r"\d", text)]
    choice = rng.random()
    if digits and choice < 0.7:
        place = rng.choice(digits)
        return text[:place] + str(rng.randint(1, 9)) + text[place + 1 :]
    if "+" in text and choice < 0.9:
        return text.replace("+", "-", 1)
    return f"{text}+{rng.randint(1, 3)}"


def made_answers(gold: str, count: int, rng: random.Random) -> list[str]:
    """`count` answers to one problem."""
    wrong = [near_miss(gold, rng) for _ in range(6)]
    answers = []
    for _ in range(count):
        draw = rng.random()
        if draw < UNREADABLE_SHARE:
            answers.append("\\text{cannot be determined} " + rng.choice(["from this", "here"]))
        else:
            base = gold if draw < EQUAL_SHARE else rng.choice(wrong)
            answers.append(rng.choice(REWRITINGS)(base))
    return answers


def keyed(problems: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Seconds and classes of `classes`, from an empty cache and no running worker."""
    close()
    clear_cache()
    start = time.perf_counter()
    found = sum(1 + max(number for number in classes(answers, "math") if number is not None) for answers in problems)
    return time.perf_counter() - start, found


def pairwise(problems: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Seconds and classes of Math-Verify against one representative of each class."""
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    start = time.perf_counter()
    found = 0
    for answers in problems:
        representatives: list[Any] = []
        for text in dict.fromkeys(answers):
            parsed = parse(f"\\boxed{{{text}}}")
            if not any(verify(representative, parsed) for representative in representatives):
                representatives.append(parsed)
        found += len(representatives)
    return time.perf_counter() - start, found


def main() -> None:
    """Prints both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golds", type=Path, help='JSON lines with an "answer"; made up without it')
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--answers", type=int, default=120, help="answers to each problem")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    golds = (
        [json.loads(line)["answer"] for line in options.golds.read_text(encoding="utf-8").splitlines()]
        if options.golds
        else made_golds(options.problems, rng)
    )
    problems = [made_answers(gold, options.answers, rng) for gold in golds[: options.problems]]
    distinct = sum(len(set(answers)) for answers in problems)
    ours, our_classes = keyed(problems)
    theirs, their_classes = pairwise(problems)
    lines = [
        f"{len(problems)} problems x {options.answers} answers, {distinct} distinct, {os.cpu_count()} cores",
        f"keyed (magicore)             {ours:8.2f} s   {our_classes} classes",
        f"pairwise (Math-Verify)       {theirs:8.2f} s   {their_classes} classes",
        f"ratio                        {ours / theirs:8.3f}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
