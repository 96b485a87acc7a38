"""magicore: reward-guided refinement of language-model reasoning.

Draw chains, score answers and steps with reward models, decide which questions are easy and which are hard, answer the
easy ones by weighted self-consistency and refine the hard ones::

    import magicore

    run = magicore.solve_batch("questions.jsonl", model="embedded", orm="likelihood", prm="arithmetic", k=8)
    for result in run.results:
        print(result.id, result.answer, "easy" if result.verdict.easy else "hard")

Reward models live in :mod:`reward_models`, the easy/hard decision in :mod:`difficulty`; both can be used alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from magicore.api import (
        arefine_batch,
        ascore_batch,
        asolve,
        asolve_batch,
        refine_batch,
        score_batch,
        solve,
        solve_batch,
    )
    from magicore.config import RunConfig
    from magicore.errors import MagicoreError
    from magicore.llms.registry import open_model
    from magicore.methods import make_method
    from magicore.report.compare_runs import compare_runs
    from magicore.report.html import report_data, write_report
    from magicore.runtime.batch import Run
    from magicore.runtime.merge import Merged, merge_runs
    from magicore.training.label_steps import alabel_steps, label_steps
    from magicore.types import Chain, Problem, Result, ScoredChain

_HOME = {
    **dict.fromkeys(("solve", "solve_batch", "score_batch", "refine_batch"), "magicore.api"),
    **dict.fromkeys(("asolve", "asolve_batch", "ascore_batch", "arefine_batch"), "magicore.api"),
    **dict.fromkeys(("Chain", "Problem", "Result", "ScoredChain"), "magicore.types"),
    "MagicoreError": "magicore.errors",
    "Run": "magicore.runtime.batch",
    "RunConfig": "magicore.config",
    "make_method": "magicore.methods",
    **dict.fromkeys(("Merged", "merge_runs"), "magicore.runtime.merge"),
    "open_model": "magicore.llms.registry",
    "compare_runs": "magicore.report.compare_runs",
    **dict.fromkeys(("report_data", "write_report"), "magicore.report.html"),
    **dict.fromkeys(("label_steps", "alabel_steps"), "magicore.training.label_steps"),
}

__all__ = [
    "Chain",
    "MagicoreError",
    "Merged",
    "Problem",
    "Result",
    "Run",
    "RunConfig",
    "ScoredChain",
    "__version__",
    "alabel_steps",
    "arefine_batch",
    "ascore_batch",
    "asolve",
    "asolve_batch",
    "compare_runs",
    "label_steps",
    "make_method",
    "merge_runs",
    "open_model",
    "refine_batch",
    "report_data",
    "score_batch",
    "solve",
    "solve_batch",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that ``import magicore`` stays quick."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'magicore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
