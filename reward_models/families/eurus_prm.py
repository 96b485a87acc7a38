"""EurusPRM stages 1 and 2 (arXiv 2502.01456): implicit rewards, beta times the log-likelihood ratio to a reference.

A step's raw score is beta * sum over its tokens of (log p - log p_ref), arXiv 2412.01981: its own text and the blank
line behind it, for the last step the end of the turn. Their source disagrees with itself on reference and beta
(card: Qwen2.5-Math-7B-Instruct and 0.001; ProcessBench script: Qwen2.5-7B-Instruct and 0.005), so both are parameters;
the card's are the defaults. Departure: the published code's prefix lengths count the end-of-turn token that Qwen's
template adds and so end a step one token late; here, as in the authors' Llama branch, a step ends with its blank line.
Fixture: the real Qwen vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reward_models.cache import ScoreCache
from reward_models.errors import RewardModelError
from reward_models.families.build import FamilyModel, Quantize, assemble, named, open_local, require_local
from reward_models.families.chat import QWEN_MATH_SYSTEM, chatml
from reward_models.families.family import Family, refuse
from reward_models.families.heads import TokenLogProb
from reward_models.families.implicit import ImplicitEngine
from reward_models.families.reading import Reading
from reward_models.families.scoring import Settings, Thinking
from reward_models.families.tokens import TextTokenizer
from reward_models.names import ModelName
from reward_models.turns import Turns

REFERENCE = "Qwen/Qwen2.5-Math-7B-Instruct"
BETA = 0.001


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """Chat of question and ``"\\n\\n".join(steps)``; every answer token is read at the position that predicts it."""
    end = tokenizer.special("<|im_end|>")
    ids = [
        *chatml(tokenizer, "system", [QWEN_MATH_SYSTEM]),
        *chatml(tokenizer, "user", [question]),
        tokenizer.special("<|im_start|>"),
        *tokenizer.encode("assistant\n"),
    ]
    begin, counts = len(ids), []
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        piece = tokenizer.encode(step if last else f"{step}\n\n")
        refuse([tokenizer.special("<|im_start|>"), end], piece, "step")
        piece += [end] if last else []
        counts.append(len(piece))
        ids += piece
    return Reading(ids=tuple(ids), reads=tuple(range(begin - 1, len(ids) - 1)), counts=tuple(counts))


FAMILY = Family(
    name="eurus-prm",
    kind="process",
    source="PRIME-RL/EurusPRM-Stage2 model card; PRIME-RL/ImplicitPRM eval/processbench.py",
    write=write,
    head=TokenLogProb(),
    activation="sigmoid",
    aggregation="min",
    aggregation_source="PRIME-RL/ImplicitPRM best-of-N: minimum of the single steps' rewards",
    context=4096,
    checkpoint="PRIME-RL/EurusPRM-Stage2",
    tokens={"<|im_start|>": 151644, "<|im_end|>": 151645},
    architectures=("Qwen2ForCausalLM",),
)


def load(  # noqa: PLR0913 - the registry reads the options that exist from this signature
    name: ModelName,
    *,
    reference: str = REFERENCE,
    beta: float = BETA,
    device: str = "auto",
    dtype: str = "auto",
    quantize: Quantize | None = None,
    budget: int | None = None,
    tokenizer: str | None = None,
    context: int | None = None,
    windowed: bool = False,
    thinking: Thinking = "skip",
    aggregation: str | None = None,
    cache: ScoreCache | None = None,
    turns: Turns | None = None,
    api_key_env: str | None = None,
) -> FamilyModel:
    """EurusPRM with its reference model; both are kept in memory, or take turns there, or both are on servers."""
    settings = Settings(context=context, windowed=windowed, thinking=thinking, aggregation=aggregation)
    if name.engine != "local":
        from reward_models.remote.model import open_remote_implicit

        return open_remote_implicit(
            FAMILY,
            name,
            reference=reference,
            beta=beta,
            tokenizer=tokenizer,
            settings=settings,
            cache=cache,
            api_key_env=api_key_env,
        )
    require_local(str(name))
    from reward_models.local.checkpoint import Checkpoint
    from reward_models.local.load import load_engine

    try:
        _, opened, placement, words = open_local(
            FAMILY,
            name,
            None,
            device=device,
            dtype=dtype,
            quantize=quantize,
            budget=budget,
            tokenizer=tokenizer,
            turns=turns,
        )
        policy = load_engine(FAMILY, opened, placement)
        base = load_engine(FAMILY, Checkpoint.open(reference), placement)
    except RewardModelError as error:
        raise named(error, name) from error
    return assemble(FAMILY, name, words, ImplicitEngine(policy, base, beta), settings, cache)


def load_stage1(name: ModelName, **options: Any) -> FamilyModel:
    """Stage 1, the same otherwise."""
    stage = replace(name, name=name.name or "PRIME-RL/EurusPRM-Stage1")
    return load(stage, **options)
