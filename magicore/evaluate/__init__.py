"""How good a run is, what it cost, and whether two runs differ."""

from magicore.evaluate.accuracy import Accuracy, Interval, accuracy, accuracy_of, correctness, wilson
from magicore.evaluate.compute import (
    Cost,
    CostPoint,
    Price,
    accuracy_at,
    chains_within,
    cost_of,
    frontier,
    money_of,
)
from magicore.evaluate.coverage import coverage, pass_at_k
from magicore.evaluate.paired import Comparison, compare, compare_all, holm, mcnemar_exact, paired_bootstrap
from magicore.evaluate.summary import summarise

__all__ = [
    "Accuracy",
    "Comparison",
    "Cost",
    "CostPoint",
    "Interval",
    "Price",
    "accuracy",
    "accuracy_at",
    "accuracy_of",
    "chains_within",
    "compare",
    "compare_all",
    "correctness",
    "cost_of",
    "coverage",
    "frontier",
    "holm",
    "mcnemar_exact",
    "money_of",
    "paired_bootstrap",
    "pass_at_k",
    "summarise",
    "wilson",
]
