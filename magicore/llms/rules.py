"""The rule behind ``--model scripted``: it adds, subtracts or multiplies the numbers of a question, and slips at times.

It is no model of anything. It exists so that every command and method can be tried and tested in a second, with the
same output each time: it solves, reviews, refines and verifies in the formats that the default prompts ask for.
"""

from __future__ import annotations

import random
import re

from magicore.llms.base import Request, last_user_text
from magicore.llms.identity import content_key, sample_seed

_SLIP_RATE = 0.35
_REFINED_SLIP_RATE = 0.15
_NUMBER = re.compile(r"(?<![\w.])\d{1,12}(?![\w])")
_QUESTION = re.compile(r"^Question: *(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_EQUATION = re.compile(r"(\d+) ([-+*]) (\d+) = (-?\d+)")
_STEP = re.compile(r"^Step (\d+)[^:\n]*:(.*)$", re.MULTILINE)
_TIMES = re.compile(r"\btimes\b|\beach\b|\bevery\b|\bproduct\b|[×*]", re.IGNORECASE)
_LESS = re.compile(
    r"\bleft\b|\bgives? away\b|\bminus\b|\bless\b|\bfewer\b|\btaken?\b|\d\s*[-−]\s*\d|\bremain", re.IGNORECASE
)


def answer_by_rule(request: Request, index: int) -> str:
    """The reply of the role that the request is for."""
    draw = random.Random(sample_seed(content_key("rules", "1", request, index)))
    asked = last_user_text(request.messages)
    found = _QUESTION.search(asked)
    question = found[1] if found else asked
    boxed = any("\\boxed" in message["content"] for message in request.messages)
    match request.key.role:
        case "reviewer":
            return _review(asked)
        case "refiner":
            return _solve(question, draw, _REFINED_SLIP_RATE, boxed=boxed)
        case "joint":
            return f"{_review(asked)}\n\nImproved solution:\n{_solve(question, draw, _REFINED_SLIP_RATE, boxed=boxed)}"
        case "verifier" | "judge":
            return "no" if _wrong_steps(asked) else "yes"
        case "confidence":
            return "20" if _wrong_steps(asked) else "80"
        case _:
            return _solve(question, draw, _SLIP_RATE, boxed=boxed)


def _solve(question: str, draw: random.Random, slip_rate: float, *, boxed: bool) -> str:
    numbers = [int(number) for number in _NUMBER.findall(question)]
    if not numbers:
        return "Step 1: The question states no number, so there is nothing to compute."
    sign = "*" if _TIMES.search(question) else "-" if _LESS.search(question) else "+"
    total, lines = numbers[0], []
    for number in numbers[1:]:
        before = total
        total = {"+": before + number, "-": before - number, "*": before * number}[sign]
        if draw.random() < slip_rate:
            total += draw.choice((-10, -2, -1, 1, 2, 10))
        lines.append(f"{before} {sign} {number} = {total}")
    stated = f"\\boxed{{{total}}}" if boxed else str(total)
    lines.append(f"The final answer is {stated}.")
    return "\n".join(f"Step {number}: {line}" for number, line in enumerate(lines, 1))


def _wrong_steps(text: str) -> list[int]:
    """The numbers of the steps with a false equation."""
    return [
        int(step[1])
        for step in _STEP.finditer(text)
        for a, sign, b, c in _EQUATION.findall(step[2])
        if {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign] != int(c)
    ]


def _review(text: str) -> str:
    wrong = _wrong_steps(text)
    if not wrong:
        return "Every equation holds."
    return " ".join(f"Step {step} is wrong: compute it again." for step in wrong)
