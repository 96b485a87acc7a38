"""How many labelled pairs of answers are judged right, beside Math-Verify's figure from the same run.

The file holds JSON lines with "a", "b", "kind", "equal" (true, false, or null where convention differs, which is left
out) and "options" where needed. Math-Verify is asked about the pairs of kind number and math, both answers in a box.

    python scripts/bench_equivalence.py --cases equivalence.jsonl
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from magicore.answers import equivalent

Row = Mapping[str, Any]


def ours(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows judged wrongly, and those judged differently when swapped."""
    wrong, asymmetric = [], []
    for row in rows:
        forth = equivalent(row["a"], row["b"], row["kind"], row.get("options"))
        back = equivalent(row["b"], row["a"], row["kind"], row.get("options"))
        if forth != row["equal"]:
            wrong.append(row)
        if forth != back:
            asymmetric.append(row)
    return wrong, asymmetric


def math_verify(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The same for Math-Verify."""
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    wrong, asymmetric = [], []
    for row in rows:
        a, b = (parse(f"\\boxed{{{row[name]}}}") for name in ("a", "b"))
        forth, back = verify(a, b), verify(b, a)
        if forth != row["equal"]:
            wrong.append(row)
        if forth != back:
            asymmetric.append(row)
    return wrong, asymmetric


def report(name: str, rows: Sequence[Row], result: tuple[list[Row], list[Row]], seconds: float) -> str:
    """One line of figures."""
    wrong, asymmetric = result
    right = len(rows) - len(wrong)
    share = right / len(rows) if rows else 1.0
    return f"{name:<34}{right:>4} of {len(rows):<4} {share:7.1%}   asymmetric {len(asymmetric)}   {seconds:.1f} s"


def main() -> None:
    """Prints the figures and every miss of ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [row for row in lines if row.get("type", "equal") == "equal" and row["equal"] is not None]
    mathematical = [row for row in rows if row["kind"] in {"number", "math"}]
    printed = []
    start = time.perf_counter()
    result = ours(rows)
    printed.append(report("magicore, all kinds", rows, result, time.perf_counter() - start))
    for name, judge in (("magicore, number and math", ours), ("Math-Verify, number and math", math_verify)):
        start = time.perf_counter()
        printed.append(report(name, mathematical, judge(mathematical), time.perf_counter() - start))
    for row in result[0]:
        printed.append(f"miss {row.get('id', '')} {row['kind']}: {row['a']!r} {row['b']!r} is {row['equal']}")
    sys.stdout.write("\n".join(printed) + "\n")


if __name__ == "__main__":
    main()
