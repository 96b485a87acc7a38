"""Equations in prose and LaTeX, checked exactly; and the reward model that stands on them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.arithmetic import RIGHT, WRONG, Arithmetic
from reward_models.equations import check_equations
from reward_models.steps import join_steps
from reward_models.types import Solution

RIGHT_EQUATIONS = """\
5 + 3 = 8
5 apples + 3 apples = 8 apples
5 red apples + 3 green apples = 8 apples
48/2 = <<48/2=24>>24 clips in May
so 1,200 / 12 = $100 per month
20% of 50 = 10
20 percent of 50 is equal to 10
1/2 of 10 = 5
\\frac{7}{2} = 3.5
10 / 3 ≈ 3.33
10/3 = 3.333...
3 x 4 = 12
3x4 = 12
3 × 4 = 12 and then 12 ÷ 4 = 3
Total = 5 + 3 = 8
$48 \\div 2 = 24$ and $24 \\times 3 = 72$.
\\begin{align*} 2(3+4) &= 2(7) \\\\ &= 14 \\end{align*}
150 + 10% = 165
2 1/2 + 1 1/2 = 4
2\\frac{1}{2} + 1 = 3.5
2½ + ½ = 3
**5** + **3** = **8**
2**3 = 8
2^{10} = 1024
5² + 12² = 13²
5! = 120
5 + 3 = 8!
100% - 20% = 80%
3/5 = 60%
1/3 = 33%
200 * 15% = $30.00
2 * 1.5 million = 3 million
1.5 million / 1000 = 1500
1/2 dozen + 6 = 12
7 days/week * 24 hours/day = 168 hours/week
20 cm * 20 cm = 400 cm^2
1) 5+3=8
- 5 + 3 = 8
-5 + 3 = -2
3 - 5 = −2
(5 + 3) * 2 = 16
[5 + 3] * {2} = 16
3 plus 4 equals 7
12 divided by 4 is equal to 3
6/2(1+2) = 9
6/2(1+2) = 1
3*8 = 24 (24 is the count)
14 = 2 (3+4)
\\sqrt{16} + 2 = 6
√9 = 6/2
1{,}000 + 1 = 1{,}001
2/3 = 0.67
2/3 = 0.66
19.99 * 1.08 = $21.59
1234*5 ≈ 6000
10/3 = about 3
3+5 = \\boxed{8}
Rs. 50 + Rs. 25 = Rs. 75
x + 3 = 7, so 7 - 3 = 4
24 / 2 = 12 and 12 + 3 = 15.
3 + 4
= 7
2 * 3.0e2 = 600"""

WRONG_EQUATIONS = """\
5 + 3 = 9
so 12 * 3 = 37 apples
7/2 = 4
48 / 2 = <<48/2=23>>24
5 apples + 3 apples = 9 apples
20% of 50 = 12
10/3 ≈ 3.5
10/3 = 3.34
24 / 2 = 12 and 12 + 3 = 16.
He has 5 boxes, 3 * 4 = 11.
\\frac{1}{2} + \\frac{1}{3} = \\frac{2}{5}
100/3 = 33
2(3+4) = 2(8) = 16
0.1 + 0.2 = 0.4
123 * 456 = 56089
Total = 5 + 3 = 9 dollars
27 + 41 - 20 = 68"""

NO_EQUATIONS = """\
2x + 3 = 7
2xy + 3 = 9
x + 3 = 8
Week 2 = 10 * 2
In week 2 the cost = 3 * 5
f(2) = 3 + 4
Day 1 + Day 2 = 8
1.5 hours + 30 minutes = 2 hours
3 * 30 minutes = 1.5 hours
$2.00 + 25 cents = $2.25
2 sodas + 4 energy bars = $3
17 / 3 = 5 remainder 2
17 mod 5 = 3
3:30 + 1:15 = 4:45
150,000 : 375,000 = 2 : 5 = 0.5
a_1 + 2 = 9
twice 3 + 4 = 10
5 more than 3 + 2 = 10
7/2 = 3 and 1/2
3 + |-5| = 9
\\sin(2) + 3 = 9
log 10 + 2 = 3
P(A) = 1/6
2 squared (2^2) = 4
x = 5
5 = 5
33.33 * 3 = 100
3 - x = 2
5 + 3 = x
53 + 16.2 = 10A - 9A
2 - 240/L = 0
C(5,2) = 10
2 != 3 + 4
5 + 3 <= 9
2 + 2 => 5
5 ft 3 in + 2 = 9
0.\\overline{3} * 3 = 1
19 and 5/6 = 19.8333
3,5 + 2 = 5,5
nothing here"""


@pytest.mark.parametrize("text", RIGHT_EQUATIONS.replace("\n= 7", "\v= 7").split("\n"))
def test_right(text: str) -> None:
    found = check_equations(text.replace("\v", "\n"))
    assert found
    assert all(equation.holds for equation in found), found


@pytest.mark.parametrize("text", WRONG_EQUATIONS.split("\n"))
def test_wrong(text: str) -> None:
    found = check_equations(text)
    assert any(not equation.holds for equation in found), found


@pytest.mark.parametrize("text", NO_EQUATIONS.split("\n"))
def test_nothing_to_check(text: str) -> None:
    assert check_equations(text) == ()


def test_sides_are_exact_and_every_link_of_a_chain_is_checked() -> None:
    found = check_equations("So 1/3 + 1/6 = 2/6 + 1/6 = 1/2 = 0.5, but 0.1 * 3 = 0.31.")
    assert [(each.left, each.right, each.holds) for each in found] == [
        (Fraction(1, 2), Fraction(1, 2), True),
        (Fraction(1, 2), Fraction(1, 2), True),
        (Fraction(1, 2), Fraction(1, 2), True),
        (Fraction(3, 10), Fraction(31, 100), False),
    ]
    assert found[0].written == "1/3 + 1/6 = 2/6 + 1/6"


NUMBER = st.integers(0, 10**6) | st.decimals(0, 1000, places=2).map(str)


@settings(deadline=None)
@given(NUMBER, st.sampled_from("+-*/"), NUMBER, st.integers(-3, 3))
def test_agrees_with_exact_arithmetic(left: int | str, operator: str, right: int | str, slip: int) -> None:
    one, other = Fraction(left), Fraction(right)
    if operator == "/" and other == 0:
        return
    exact = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else Fraction(0)}[operator]
    claimed = exact + slip
    shown = f"{claimed.numerator}/{claimed.denominator}" if claimed.denominator > 1 else str(claimed)
    found = check_equations(f"That is {left} {operator} {right} = {shown}.")
    relative = abs(slip) <= Fraction(1, 1000) * max(abs(exact), abs(claimed))
    if slip == 0:
        assert [equation.holds for equation in found] == [True]
    elif not relative:
        assert [equation.holds for equation in found] == [False]


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789+-*/=()^.,%! xab$\\{}<>\n²½√", max_size=80) | st.text(max_size=80))
def test_any_text_comes_back(text: str) -> None:
    for equation in check_equations(text):
        assert max(abs(equation.left.numerator), equation.left.denominator) < 2**2100


HOSTILE = {
    "sum": "1+" * 50_000 + "1=2",
    "ones": "1=1" * 33_000,
    "brackets": "(" * 50_000 + "1" + ")" * 50_000 + "=1+1",
    "words": "3 apples " * 12_000 + "= 3+4",
    "ambiguous": "1% + 2% + 3% + 4 dozen (5) + 6(1/2) = 7 " * 2_500,
    "tower": "9**9**9**9**9 = 1",
    "powers": "2^2000*2^2000*2^2000=1 " * 4_000,
    "factorials": "60!*60!*60!=1 " * 7_000,
    "digits": "9" * 100_000 + "+1=2",
    "exponents": "1e99*1e99*1e99*1e99=1 " * 4_000,
    "fractions": "\\frac{" * 16_000,
    "annotations": "<<" * 50_000,
    "spaces": " " * 100_000,
    "surrogates": "3 + 4 = 7 \ud800 5 + 5 = 11 \udfff" * 3_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_come_back(name: str) -> None:
    check_equations(HOSTILE[name])


# The reward model


def scores(*steps: str) -> list[tuple[float | None, float | None, str | None]]:
    text, made = join_steps(steps)
    [found] = Arithmetic().score([Solution(question="q", text=text, steps=made)])
    assert found.aggregation == "product"
    return [(each.value, each.raw, each.unscored.code if each.unscored else None) for each in found.scores]


def test_a_step_is_as_good_as_its_worst_equation() -> None:
    assert scores("3 + 4 = 7", "We go on.", "3 * 4 = 12, 5 + 5 = 11, 2 * 2 = 4", "  ") == [
        (RIGHT, 1.0, None),
        (None, None, "no_equation"),
        (WRONG, 2 / 3, None),
        (None, None, "empty_step"),
    ]
    assert RIGHT == 1.0 and 0 < WRONG < 0.5


def test_thinking_is_checked_too() -> None:
    [found] = Arithmetic().score([Solution(question="q", text="<think>3 + 4 = 8.</think>3 + 4 = 7.")])
    assert [(step.part, score.value) for step, score in zip(found.steps, found.scores, strict=True)] == [
        ("thinking", WRONG),
        ("text", RIGHT),
    ]


def test_real_chains_are_mostly_right(shared_data: Path) -> None:
    """Of a real model's equations few are wrong: a misreading checker would call many wrong."""
    replay = shared_data / "replay" / "mapr_single_agent_GSM8K.jsonl"
    found = [
        equation.holds
        for line in replay.read_text(encoding="utf-8").splitlines()
        for response in json.loads(line)["responses"]
        for equation in check_equations(response)
    ]
    assert len(found) > 3000
    assert 0.975 < sum(found) / len(found) < 1
