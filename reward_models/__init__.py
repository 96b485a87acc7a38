"""Score solutions of reasoning problems: outcome and process reward models behind two small protocols.

    from reward_models import Solution, load_process_model

    model = load_process_model("arithmetic")
    [scores] = model.score([Solution(question="What is 3 + 4, doubled?", text="3 + 4 = 7. 7 * 2 = 15.")])

Importing this package imports no heavy library; a model that needs one imports it when it is loaded.
"""

from reward_models.aggregate import AGGREGATIONS, Aggregated, aggregate_steps
from reward_models.base import (
    Generate,
    OutcomeRewardModel,
    ProcessRewardModel,
    Reply,
    fingerprint,
    requirements,
    usage,
)
from reward_models.batcher import Batcher
from reward_models.cache import MemoryScoreCache, ScoreCache, SqliteScoreCache, score_key
from reward_models.errors import (
    CapabilityError,
    CheckpointError,
    MissingExtraError,
    RewardModelError,
    ScaleError,
    ScoringServerError,
    StepCountError,
    TagInTextError,
    UnknownRewardModelError,
)
from reward_models.names import ModelName, parse_model_name
from reward_models.registry import (
    load_outcome_model,
    load_process_model,
    outcome_models,
    process_models,
    register_outcome,
    register_process,
)
from reward_models.scripted import ScriptedORM, ScriptedPRM
from reward_models.steps import join_steps, split_steps, split_thinking, with_steps
from reward_models.types import OutcomeScore, ScoringUsage, Solution, Step, StepScore, StepScores, Unscored

__all__ = [
    "AGGREGATIONS",
    "Aggregated",
    "Batcher",
    "CapabilityError",
    "CheckpointError",
    "Generate",
    "MemoryScoreCache",
    "MissingExtraError",
    "ModelName",
    "OutcomeRewardModel",
    "OutcomeScore",
    "ProcessRewardModel",
    "Reply",
    "RewardModelError",
    "ScaleError",
    "ScoreCache",
    "ScoringServerError",
    "ScoringUsage",
    "ScriptedORM",
    "ScriptedPRM",
    "Solution",
    "SqliteScoreCache",
    "Step",
    "StepCountError",
    "StepScore",
    "StepScores",
    "TagInTextError",
    "UnknownRewardModelError",
    "Unscored",
    "aggregate_steps",
    "fingerprint",
    "join_steps",
    "load_outcome_model",
    "load_process_model",
    "outcome_models",
    "parse_model_name",
    "process_models",
    "register_outcome",
    "register_process",
    "requirements",
    "score_key",
    "split_steps",
    "split_thinking",
    "usage",
    "with_steps",
]
