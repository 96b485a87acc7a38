"""Decides which problems are easy and which are hard, from answer classes and reward-model scores.

Pure and synchronous; speaks plain Python and NumPy, and knows nothing of language models. Start with
:class:`Evidence` and :func:`router`::

    stats = batch_stats(combined_scores_of_all_chains)
    verdict = router("magicore")(Evidence(classes=[0, 1, 0], o=[0.9, 0.2, 0.8], s=[0.7, 0.1, 0.9], stats=stats))
"""

from difficulty.calibration import (
    CalibrationSample,
    Population,
    RewardStats,
    RunningStats,
    batch_stats,
    first_chain_stats,
    load_calibration,
    save_calibration,
)
from difficulty.conditions import (
    Condition1,
    Condition2,
    condition_1,
    condition_2,
    confidence,
    entropy,
    majority_class,
)
from difficulty.errors import (
    CalibrationError,
    DifficultyError,
    EvidenceError,
    MissingEvidenceError,
    RouterOptionError,
    UnknownRouterError,
)
from difficulty.evidence import Evidence
from difficulty.metrics import Confusion, compare_verdicts, confusion
from difficulty.published import PublishedRouter, published_scores
from difficulty.registry import register_router, router, router_names
from difficulty.routers import (
    Condition1Router,
    Condition2Router,
    EasyRouter,
    FunctionRouter,
    HardRouter,
    MagicoreRouter,
    OracleRouter,
    RandomRouter,
    Router,
    SelfVerificationRouter,
    StatedConfidenceRouter,
)
from difficulty.sweeps import ConditionArrays, condition_arrays
from difficulty.ties import ClassTable
from difficulty.verdict import Verdict

__all__ = [
    "CalibrationError",
    "CalibrationSample",
    "ClassTable",
    "Condition1",
    "Condition1Router",
    "Condition2",
    "Condition2Router",
    "ConditionArrays",
    "Confusion",
    "DifficultyError",
    "EasyRouter",
    "Evidence",
    "EvidenceError",
    "FunctionRouter",
    "HardRouter",
    "MagicoreRouter",
    "MissingEvidenceError",
    "OracleRouter",
    "Population",
    "PublishedRouter",
    "RandomRouter",
    "RewardStats",
    "Router",
    "RouterOptionError",
    "RunningStats",
    "SelfVerificationRouter",
    "StatedConfidenceRouter",
    "UnknownRouterError",
    "Verdict",
    "batch_stats",
    "compare_verdicts",
    "condition_1",
    "condition_2",
    "condition_arrays",
    "confidence",
    "confusion",
    "entropy",
    "first_chain_stats",
    "load_calibration",
    "majority_class",
    "published_scores",
    "register_router",
    "router",
    "router_names",
    "save_calibration",
]
