"""Tables in a terminal, in a pipe and as CSV."""

from __future__ import annotations

import csv
import io

from difficulty import Verdict
from difficulty.metrics import Confusion
from magicore.evaluate import accuracy_of, compare_all
from magicore.report.tables import (
    MethodRow,
    as_text,
    comparison_csv,
    comparison_table,
    confusion_csv,
    confusion_table,
    method_csv,
    method_table,
    show,
    verdict_table,
)
from magicore.types import Result

ROWS = [
    MethodRow(
        method="weighted-self-consistency [k=8]",
        accuracy=accuracy_of([True] * 8 + [False] * 2),
        tokens=123456,
        calls=80,
        wall_s=71.2,
    ),
    MethodRow(method="cot", accuracy=accuracy_of([]), wall_s=3725),
]


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [[cell for cell in line.strip().split("  ") if cell] for line in lines]


def parsed(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_method_table() -> None:
    title, header, _, first, second = cells(as_text(method_table(ROWS, title="Methods [all]")))
    assert title == ["Methods [all]"]
    assert [cell.strip() for cell in header] == [
        "Method",
        "Accuracy",
        "95 % interval",
        "Right",
        "Tokens",
        "Calls",
        "Time",
    ]
    assert [cell.strip() for cell in first] == [
        "weighted-self-consistency [k=8]",
        "80.0 %",
        "49.0 to 94.3",
        "8 of 10",
        "123,456",
        "80",
        "1:11 min",
    ]
    assert [cell.strip() for cell in second] == ["cot", "-", "-", "-", "-", "-", "1:02:05 h"]


def test_method_csv_is_unrounded_and_leaves_missing_empty() -> None:
    first, second = parsed(method_csv(ROWS))
    interval = ROWS[0].accuracy.interval
    assert interval is not None
    assert (float(first["accuracy_low"]), float(first["accuracy_high"])) == interval
    assert (first["correct"], first["tokens"], first["wall_s"]) == ("8", "123456", "71.2")
    assert (second["accuracy"], second["accuracy_high"], second["tokens"]) == ("", "", "")


def test_a_pipe_gets_whole_lines_without_control_characters() -> None:
    data = io.BytesIO()
    pipe = io.TextIOWrapper(data, encoding="ascii", newline="\n")
    wide = [MethodRow(method="m" * 150, accuracy=accuracy_of([True]))]
    show(method_table(wide), pipe)
    pipe.flush()
    text = data.getvalue().decode("ascii")
    assert "m" * 150 in text
    assert "\x1b" not in text
    assert "?" not in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_verdicts() -> None:
    def result(name: str, easy: bool | None, correct: bool) -> Result:
        verdict = None if easy is None else Verdict(router="r", easy=easy)
        return Result(id=name, kind="text", method="m", gold="x", correct=correct, verdict=verdict)

    table = as_text(verdict_table([result("a", True, True), result("b", False, True), result("c", False, False)]))
    _, _, easy, hard = cells(table)
    assert [cell.strip() for cell in easy] == ["easy", "1", "100.0 %", "20.7 to 100.0", "1 of 1"]
    assert [cell.strip() for cell in hard][:3] == ["hard", "2", "50.0 %"]
    assert "not routed" in as_text(verdict_table([result("d", None, True)]))


def test_confusion() -> None:
    routers = {"magicore": Confusion(hard_as_hard=3, easy_as_hard=1, hard_as_easy=2, easy_as_easy=6)}
    row = [cell.strip() for cell in cells(as_text(confusion_table(routers)))[-1]]
    assert row == ["magicore", "33.3 %", "75.0 %", "60.0 %", "66.7 %", "3", "1", "2", "6"]
    (line,) = parsed(confusion_csv(routers))
    assert (line["precision"], line["recall"], line["hard_as_easy"]) == ("0.75", "0.6", "2")


def test_comparison() -> None:
    right = {str(i): i < 9 for i in range(12)}
    table = compare_all({"a": right, "b": dict.fromkeys(right, False)}, "b", resamples=50, seed=2)
    row = [cell.strip() for cell in cells(as_text(comparison_table(table, "b [base]")))[-1]]
    assert (row[0], row[1], row[3:]) == ("a", "+75.0", ["9", "0", "0.004", "0.004", "better"])
    assert "Against b [base]" in as_text(comparison_table(table, "b [base]"))
    (line,) = parsed(comparison_csv(table, "b"))
    assert (line["against"], line["resamples"], line["seed"], line["verdict"]) == ("b", "50", "2", "better")
