"""When two answers are equal: by hand, on gathered cases, on random expressions, and on hostile input."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magicore.answers import Key, canonical_key, canonical_keys, classes, equivalent, pool, same
from magicore.answers.kinds import Kind
from magicore.answers.numeric import Unrepresentable, add, decode, encode, factorial, power
from magicore.answers.pool import Reply, answer
from magicore.errors import WorkerError

LEAST_SHARE_RIGHT = 0.96
CAREFUL = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

EQUAL_MATH = [
    (r"\frac12", "0.5"),
    (r"3\frac12", "7/2"),
    ("-2 1/3", "-7/3"),
    (r"\sqrt{12}", r"2\sqrt3"),
    (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
    ("(-8)^{1/3}", "-2"),
    ("2^-3", "0.125"),
    (r"\binom{10}{3}", "120"),
    (r"\cos 60^\circ", r"\frac12"),
    (r"e^{i\pi}", "-1"),
    ("(1+i)^2", "2i"),
    ("0.1666...", r"\frac16"),
    ("1011_2", "11"),
    ("2:3", r"\frac23"),
    (r"x = 2 \pm \sqrt{3}", r"2+\sqrt{3}, 2-\sqrt{3}"),
    ("x_1=2,x_2=-1", r"\{-1,2\}"),
    (r"x=3 \text{ and } y=4", "(3,4)"),
    ("|x-1| < 2", "(-1,3)"),
    ("x^2-5x+6<0", "2<x<3"),
    (r"x^2\ge 4", r"(-\infty,-2]\cup[2,\infty)"),
    (r"x \neq 0", r"\mathbb{R}\setminus\{0\}"),
    (r"\{x \mid x > 3\}", r"(3,\infty)"),
    (r"\{0\}\cup[3,\infty)", r"x=0 \text{ or } x\ge 3"),
    ("y = 2x+1", "2x - y + 1 = 0"),
    ("x^2+y^2=1", "2x^2+2y^2=2"),
    (r"\frac{x^2-1}{x-1}", "x+1"),
    ("a/b/c", r"\frac{a}{bc}"),
    ("1/2x", r"\frac{x}{2}"),
    (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
    (r"\sin 2x", r"2\sin x\cos x"),
    (r"\sqrt{x^2}", "|x|"),
    ("f(x)+g(x)", "g(x)+f(x)"),
    (r"\frac{1}{2}\begin{pmatrix}2\\4\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
    (r"\langle 1,2,3\rangle", "(1,2,3)"),
    (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+\pi k"),
    (r"100 \text{ cm}", r"1 \text{ m}"),
    (r"5.4 \text{ cents}", r"\$0.054"),
    ("12 square units", "12"),
    (r"25\,^\circ\text{C}", "25°C"),
    ("50%", "0.5"),
    (r"\text{Monday}", "monday"),
    (r"\textbf{(A)}", "A"),
    ("1.23e400000", "123e399998"),
    ("10^{10^{10}}", "10^{10^{10}}"),
]
UNEQUAL_MATH = [
    (r"\sqrt{x^2}", "x"),
    ("x'", "x"),
    ("f(2x)", "f(x)"),
    (r"\frac{|x|}{x}", "1"),
    ("x^{100}+1", "x^{100}"),
    ("10^{100}+1", "10^{100}"),
    (r"\pi+10^{-60}", r"\pi"),
    (r"e^{\pi\sqrt{163}}", "262537412640768744"),
    ("10^{10^{10}}", "10^{10^{11}}"),
    ("9^{9^{9^9}}", "9^{9^{9^8}}"),
    ("1/3", "0.3333"),
    (r"\pi", "3.14"),
    (r"\frac{22}{7}", r"\pi"),
    ("123456789012345", "123456789012346"),
    ("50%", "50"),
    (r"30^\circ", r"\frac{\pi}{6}"),
    (r"30^\circ", "30 cm"),
    ("25°C", "25°F"),
    ("(2,3)", r"\{2,3\}"),
    ("(2,3)", "[2,3]"),
    (r"\{9\}", "9"),
    ("0", r"\emptyset"),
    ("x=3,y=4", "y=3,x=4"),
    ("x<3, y>2", "x>2, y<3"),
    ("x+y<3", r"x+y\le 3"),
    ("3:2:1", "1:2:3"),
    ("9:00", "9"),
    ("1, 234", "1234"),
    (r"\text{east}", r"\text{west}"),
    ("the answer is 5", "5"),
    (r"\gamma+1", r"\beta+1"),
]


@pytest.mark.parametrize(("a", "b"), EQUAL_MATH)
def test_equal_mathematics(a: str, b: str) -> None:
    assert equivalent(a, b, "math")
    assert equivalent(b, a, "math")


@pytest.mark.parametrize(("a", "b"), UNEQUAL_MATH)
def test_unequal_mathematics(a: str, b: str) -> None:
    assert not equivalent(a, b, "math")
    assert not equivalent(b, a, "math")


@pytest.mark.parametrize(
    ("kind", "a", "b", "equal"),
    [
        ("number", "1 hour 30 minutes", "90 minutes", True),
        ("number", "5 euros", "$5", False),
        ("number", "5 apples", "5", True),
        ("number", "$1.5 million", "1500000", True),
        ("number", "12%", "0.12", True),
        ("number", "12%", "12", False),
        ("number", r"\frac{1}{2004!}", r"\frac{1}{2006!}", False),
        ("choice", "(B) seven", "B", True),
        ("choice", "B, A", "AB", True),
        ("choice", "b60", "B", False),
        ("yesno", "Not true.", "no", True),
        ("yesno", "yes and no", "yes", False),
        ("date", "June 5th, 2014", "2014-06-05", True),
        ("date", "5.6.2014", "June 5, 2014", True),
        ("date", "Feb 30, 2014", "2014-02-30", False),
        ("date", "2014", "June 2014", False),
        ("date", "2014-06-05T20:34", "June 5, 2014 at 8:34 PM", True),
        ("text", "The Eiffel Tower.", "eiffel tower", True),
        ("text", "the", "a", False),
        ("text", "C++", "C", False),
    ],
)
def test_other_kinds(kind: Kind, a: str, b: str, equal: bool) -> None:
    assert equivalent(a, b, kind) is equal
    assert equivalent(b, a, kind) is equal


def test_an_option_is_chosen_by_its_text_and_must_exist() -> None:
    options = {"A": "7 km", "B": "7 m"}
    assert equivalent("7 m", "(B)", "choice", options)
    assert equivalent("7 m", "(B)", "choice", ["7 km", "7 m"])
    assert not equivalent("7 km", "B", "choice", options)
    assert not equivalent("(C) 7 m", "C", "choice", options)


@pytest.mark.parametrize("missing", [None, "", "  \n"])
@pytest.mark.parametrize("kind", ["number", "math", "text"])
def test_a_missing_answer_equals_nothing(missing: str | None, kind: Kind) -> None:
    assert not equivalent(missing, missing, kind)
    assert not equivalent(missing, "0", kind)
    assert canonical_key(missing, kind) is None


# The tolerance rule: twelve significant digits, no fewer.


@pytest.mark.parametrize(
    ("decimal", "exact", "equal"),
    [
        ("0.333333333333", "1/3", True),
        ("0.33333333333", "1/3", False),
        ("0.666666666666", "2/3", True),
        ("0.666666666667", "2/3", True),
        ("0.666666666668", "2/3", False),
        ("0.30000000000000004", "0.3", True),
        ("1.4142135623730951", r"\sqrt2", True),
        ("1.41421356239", r"\sqrt2", False),
        ("(0.333333333333, 2)", r"(\frac13, 2)", True),
        ("-0.333333333333", "1/3", False),
        ("1.23456789012", "1.23456789013", False),
        ("0.000000000001", "0.000000000002", False),
    ],
)
def test_long_decimals(decimal: str, exact: str, equal: bool) -> None:
    assert equivalent(decimal, exact, "math") is equal
    assert equivalent(exact, decimal, "math") is equal


# Keys.


def test_a_key_survives_as_text() -> None:
    for text in ("5 km", "0.333333333333", "x+1", "{", "(1,2]"):
        key = canonical_key(text, "math")
        assert key is not None
        again = Key.from_text(key.to_text())
        assert (again, again.bare, again.approximate, again.reason) == (key, key.bare, key.approximate, key.reason)
    with pytest.raises(ValueError, match="not the text of an answer's key"):
        Key.from_text('{"value": "1"}')


def test_equal_keys_hash_alike_and_say_whether_they_were_read() -> None:
    a, b = canonical_keys(["1 km", "1000 m"], "math")
    assert a is not None and b is not None
    assert a == b and hash(a) == hash(b) and a.unit == "m" and a.parsed
    unread = canonical_key("__import__('os')", "math")
    assert unread is not None and not unread.parsed and unread.reason == "not a mathematical expression"
    assert same(unread, unread)


def test_numbers_are_encoded_alike_however_they_were_computed() -> None:
    root = power(Fraction(2), Fraction(1, 2))
    assert encode(power(root, Fraction(2))) == "2"
    assert encode(power(Fraction(-27), Fraction(1, 3))) == "-3"
    assert decode(str(encode(Fraction(-3, 7)))) == Fraction(-3, 7)
    large = factorial(Fraction(3000))
    assert encode(large) != encode(large + 1)
    with pytest.raises(Unrepresentable, match="too small beside"):
        add(root, Fraction(1, 10**60))


# Random expressions: each is written in two ways, and its value is known.

Written = tuple[str, str, Fraction]


def _joined(parts: tuple[Written, Written, str]) -> Written:
    (plain_a, latex_a, a), (plain_b, latex_b, b), operator = parts
    if operator == "+":
        return f"({plain_a}+{plain_b})", rf"\left({latex_b}+{latex_a}\right)", a + b
    if operator == "-":
        return f"({plain_a}-({plain_b}))", rf"\left(-({latex_b})+{latex_a}\right)", a - b
    if operator == "*":
        return f"({plain_a}*{plain_b})", rf"{latex_a} \cdot {latex_b}", a * b
    return f"({plain_a})/({plain_b})", rf"\dfrac{{{latex_a}}}{{{latex_b}}}", a / b if b else Fraction(0)


INTEGERS = st.integers(-40, 400).map(lambda n: (f"({n})", rf"\left({n}\right)", Fraction(n)))
NUMBERS = st.recursive(
    INTEGERS, lambda inner: st.tuples(inner, inner, st.sampled_from("+-*/")).map(_joined), max_leaves=6
).filter(lambda written: "/(0)" not in written[0])


@given(NUMBERS)
@CAREFUL
def test_random_arithmetic_has_its_value(written: Written) -> None:
    plain, latex, value = written
    key = canonical_key(plain, "math")
    assert key is not None
    if key.parsed:  # a division by something that comes to zero is refused
        assert equivalent(plain, latex, "math")
        assert equivalent(plain, str(value), "math")
        assert not equivalent(latex, str(value + 1), "math")


@st.composite
def polynomials(draw: st.DrawFn) -> tuple[str, str, str]:
    """A polynomial as a sum, the same expanded the other way round, and another one."""
    term = st.tuples(st.integers(-9, 9), st.integers(0, 4), st.sampled_from("xyn"))
    terms = draw(st.lists(term, min_size=1, max_size=4))
    offset = draw(st.integers(1, 5))
    written = [rf"({c})\cdot {v}^{{{p}}}" for c, p, v in terms]
    spaced = [f"{c} * {v}**{p}" if c >= 0 else f"({c}) * {v}**{p}" for c, p, v in reversed(terms)]
    total = "+".join(written)
    return total, " + ".join(spaced), f"{total}+{offset}"


@given(polynomials())
@settings(CAREFUL, max_examples=25)
def test_random_polynomials(texts: tuple[str, str, str]) -> None:
    first, second, other = texts
    assert equivalent(first, second, "math")
    assert not equivalent(first, other, "math")
    assert not equivalent(other, second, "math")


FRAGMENTS = st.sampled_from(
    [*"0123456789", "x", "n", "i", "e", "+", "-", "/", "*", "^", "_", "(", ")", "[", "]", "{", "}", ",", ";", "=", "<",
     ">", "|", "!", "%", "$", ":", ".", " ", "\\", r"\frac", r"\sqrt", r"\text{", r"\pm", r"\cup", r"\le", r"\in ",
     r"\infty", r"\begin{pmatrix}", r"\end{pmatrix}", r"\\", "&", r"^\circ", r"\sum_{k=1}^{n}", r"\log_", r"\sin ",
     r"\binom", " cm", "½", "²", "三", "\ud800", "\x00", " and "]
)  # fmt: skip
NONSENSE = st.lists(FRAGMENTS, max_size=14).map("".join)


@given(NONSENSE, NONSENSE, st.sampled_from(["number", "math", "choice", "yesno", "date", "text"]))
@settings(CAREFUL, max_examples=120)
def test_any_text_is_compared_and_symmetrically(a: str, b: str, kind: Kind) -> None:
    assert equivalent(a, b, kind) == equivalent(b, a, kind)
    assert equivalent(a, a, kind) is bool(a.strip())


# Workers.


def test_a_job_past_its_time_is_refused_and_the_next_is_not() -> None:
    deep = "(" * 58 + "x" + ")" * 58  # quadratic in the grammar, seconds long
    assert answer([("value", deep), ("value", "x+1")])[0] == Reply(reason="time limit")
    assert equivalent("x+1", "1+x", "math")


def test_a_worker_that_dies_is_replaced() -> None:
    first = answer([("value", "a+b")])
    for worker in pool._pools[0].workers:
        if worker.process is not None:
            worker.process.kill()
            worker.process.wait()
    replies = answer([("value", "a+b"), ("value", "b+a")])
    assert replies[-1] == first[0]
    assert answer([("value", "a+b")]) == first


def test_workers_have_little_memory() -> None:
    code = "from magicore.answers.worker import limit_memory; limit_memory(); bytearray(1 << 30)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr or sys.platform in {"win32", "darwin"}


def test_no_worker_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pool.close()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerError, match="/nowhere/python"):
        answer([("value", "q+r")])
    monkeypatch.undo()
    assert answer([("value", "q+r")])[0].reason is None


def test_threads_share_the_workers() -> None:
    texts = [f"{n}x+{n}" for n in range(24)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda text: equivalent(text, f"{text[: text.index('x')]}(x+1)", "math"), texts))
    assert all(results)


def test_inside_a_running_event_loop() -> None:
    async def compare() -> bool:
        return equivalent("t^2+2t+1", "(t+1)^2", "math")

    assert asyncio.run(compare())


def test_a_script_without_a_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom magicore.answers import classes, equivalent\n"
        "assert equivalent('1/2', '0.5', 'math') and 'sympy' not in sys.modules\n"
        "print(classes(['x+1', '1+x', 'x'], 'math'), 'sympy' in sys.modules)\n"
    )
    (tmp_path / "sympy.py").write_text("raise RuntimeError('shadowed')\n")
    command = [sys.executable, "-P", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("[0, 0, 1] False\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_starts_its_own_workers() -> None:
    assert equivalent("u+v", "v+u", "math")
    child = os.fork()
    if child == 0:
        right = equivalent("u+2v", "2v+u", "math")
        pool.close()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert equivalent("u+3v", "3v+u", "math")


def test_an_interrupted_caller_leaves_no_reply_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    answer([("value", "v+w")])
    with monkeypatch.context() as patch:
        for worker in pool._pools[0].workers:
            patch.setattr(worker, "_batch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            answer([("value", "w+1")])
    assert answer([("value", "v+w")]) != answer([("value", "w+1")])
    assert threading.active_count() < 40


# Gathered cases.


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / "cases" / name
    if not path.is_file():
        pytest.skip(f"no {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_gathered_pairs(shared_data: Path) -> None:
    pairs = [row for row in _rows(shared_data, "equivalence.jsonl") if row["type"] == "equal"]
    rows = [row for row in pairs if row["equal"] is not None]
    misses = []
    for row in rows:
        forth = equivalent(row["a"], row["b"], row["kind"], row.get("options"))
        back = equivalent(row["b"], row["a"], row["kind"], row.get("options"))
        assert forth == back, row
        if forth != row["equal"]:
            misses.append((row["id"], row["a"], row["b"], row["equal"]))
    assert 1 - len(misses) / len(rows) >= LEAST_SHARE_RIGHT, misses


def test_hostile_pairs(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in _rows(shared_data, "hostile.jsonl") if row["target"] == "equal"]
    monkeypatch.chdir(tmp_path)
    for row in rows:
        texts = [eval(row[name], {"__builtins__": {"range": range, "chr": chr, "str": str, "reversed": reversed}})
                 for name in ("gen_a", "gen_b")]  # fmt: skip
        result = equivalent(*texts, row["kind"])
        assert row["expect"]["equal"] in ("any", result), row["id"]
    assert not list(tmp_path.iterdir())


def test_gold_answers_equal_their_rewritings(shared_data: Path) -> None:
    path = shared_data / "benchmarks" / "math.jsonl"
    golds = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]
    rewritings = [
        lambda text: rf"\, {text} ",
        lambda text: text.replace(r"\frac", r"\dfrac"),
        lambda text: text.replace("(", r"\left(").replace(")", r"\right)") if r"\left" not in text else text,
        lambda text: text.replace(r"^\circ", " degrees"),
        lambda text: text + r" \text{ cm}" if text.isdigit() else f"{text}.",
        lambda text: rf"\text{{{text}}}" if text.isalnum() else f"${text}$",
    ]
    for rewrite in rewritings:
        keys = canonical_keys([text for gold in golds for text in (gold, rewrite(gold))], "math")
        for gold, first, second in zip(golds, keys[::2], keys[1::2], strict=True):
            assert first is not None and second is not None
            assert first.parsed and same(first, second), (gold, rewrite(gold))


EQUAL_GOLDS = {
    ("-2,1", "1,-2"), ("10,\\!080", "10080"), ("120", "120^\\circ"), ("15", "15\\mbox{ cm}^2"), ("204_5", "54"),
    ("2 \\sqrt{5}", "2\\sqrt{5}"), ("30", "30^\\circ"), ("36", "36^\\circ"), ("36", "40_9"), ("36", "\\$36"),
    ("36^\\circ", "40_9"), ("40_9", "\\$36"), ("42", "52_8"), ("5", "x=5"), ("90", "90^\\circ"),
    ("\\frac14", "\\frac{1}{4}"),
}  # fmt: skip
"""Written differently, equal by mathematics: order, spelling, a base, a unit or a name on one side."""


def test_different_gold_answers_are_different(shared_data: Path) -> None:
    path = shared_data / "benchmarks" / "math.jsonl"
    golds = sorted({json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()})
    keys = [key for key in canonical_keys(golds, "math") if key is not None]
    equal = {(a, b) for i, a in enumerate(golds) for j, b in enumerate(golds) if i < j and same(keys[i], keys[j])}
    assert equal == EQUAL_GOLDS
    assert len(set(classes(golds, "math"))) == len(golds) - 12
