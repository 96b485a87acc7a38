"""Options that several commands share, declared once. Unset options are ``None``, so that a configuration file shows
through."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from magicore.errors import InputError
from reward_models.names import NO_VARIABLE, is_variable

Model = Annotated[
    str | None,
    typer.Option(
        "--model", help="openai:NAME, openai:NAME@URL, azure:..., hf:REPO_OR_FOLDER, embedded, or a nickname."
    ),
]
RoleModel = Annotated[
    list[str] | None,
    typer.Option("--role-model", metavar="ROLE=MODEL", help="Another model for one role (repeatable)."),
]
Orm = Annotated[str | None, typer.Option("--orm", help="Outcome reward model; see `magicore list`.")]
Prm = Annotated[str | None, typer.Option("--prm", help="Process reward model; see `magicore list`.")]
RewardKind = Annotated[str | None, typer.Option("--kind", help="outcome or process, for names that may be either.")]
Data = Annotated[
    str | None,
    typer.Option("--data", help="JSONL, JSON, CSV or Parquet file, hf:REPO:CONFIG:SPLIT, gen:TASK:N:SEED, demo."),
]
Kind = Annotated[str | None, typer.Option("--kind", help="Answer kind of all problems, instead of each one's own.")]
Field = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=COLUMN", help="Read a field from another column (repeatable)."),
]
Limit = Annotated[int | None, typer.Option("--limit", help="Take at most so many problems.")]
Offset = Annotated[int | None, typer.Option("--offset", help="Skip so many problems first.")]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", metavar="DIR", help="Go on with the run in DIR: its settings, its problems, its store."),
]
ShardOption = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="Take one of N shards of the problems, 1/N to N/N.")
]
StageOption = Annotated[
    str, typer.Option("--stage", help="prepare (draw and score), finish (go on from there), or all.")
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="local, this process, or ray, a cluster; the results are the same.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT|auto",
        help="Ray's head node; by default $RAY_ADDRESS, else Ray is started on this machine.",
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Ray workers; by default one a node, or a processor of this machine.")
]
WorkerGpus = Annotated[
    float | None, typer.Option("--worker-gpus", help="GPUs a Ray worker, for a language model that it loads itself.")
]
RewardModelGpus = Annotated[
    float | None, typer.Option("--reward-model-gpus", help="GPUs a reward model on Ray: 1, or a fraction to share one.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Directory for the run's store and files.")]
Config = Annotated[Path | None, typer.Option("--config", help="TOML file with settings; options go over it.")]
K = Annotated[int | None, typer.Option("--k", help="Chains a question.")]
Iterations = Annotated[int | None, typer.Option("--iterations", help="Refinement rounds at the most.")]
Router = Annotated[
    str | None, typer.Option("--router", help="Who decides easy or hard; options after a colon: random:rate=0.3.")
]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="Any option of the method (repeatable)."),
]
Prompts = Annotated[str | None, typer.Option("--prompts", help="Prompt set: default, raw, or a TOML file.")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="Sampling temperature of chains.")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Nucleus sampling of chains.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="New tokens a completion at the most.")]
Aggregation = Annotated[
    str | None,
    typer.Option("--aggregation", help="Step scores to s: product, min, last, mean, geometric-mean, family."),
]
Duplicates = Annotated[
    str | None, typer.Option("--duplicates", help="Chains that repeat another word for word: count, or once.")
]
Calibration = Annotated[
    str | None, typer.Option("--calibration", help="batch, first, running, or a saved calibration file.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="The run's seed.")]
Deterministic = Annotated[
    bool | None, typer.Option("--deterministic", help="Local models in fp32 with a fixed batch order.")
]
Device = Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda, mps.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help="auto, float32, bfloat16, float16.")]
Placement = Annotated[
    str | None,
    typer.Option(
        "--placement",
        help="Local models on one device: together, phased (one loaded at a time, in waves), or cpu-rewards.",
    ),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Problems worked on at once.")]

LogJson = Annotated[Path | None, typer.Option("--log-json", help="Append every event to this file as a JSON object.")]
Traces = Annotated[
    bool, typer.Option("--otel", help="Send OpenTelemetry spans where OTEL_EXPORTER_OTLP_ENDPOINT says.")
]

Questions = Annotated[
    str | None, typer.Option("--data", help="The problems behind a chains.jsonl, which holds no questions.")
]
Preset = Annotated[str | None, typer.Option("--preset", help="Named settings: published (the paper's released code).")]
Cache = Annotated[
    str | None, typer.Option("--cache", help="A store file that runs share: nothing it has is paid for again.")
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="SCOPE.KIND=N", help="run.tokens=1000000, problem.seconds=60 ... (repeatable)."),
]
Force = Annotated[bool, typer.Option("--force", help="Take over the directory of a run with other settings.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before a run of many remote calls.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Only the options that were set."""
    return {name: value for name, value in values.items() if value is not None}


def pairs(items: Sequence[str] | None, option: str) -> dict[str, str] | None:
    """``NAME=VALUE`` items as a mapping, or ``None`` for none.

    Raises:
        InputError: an item has no equals sign.
    """
    if not items:
        return None
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"{option} takes NAME=VALUE, not {item!r}")
        found[name.strip()] = value.strip()
    return found


def numbers(items: Sequence[str] | None, option: str) -> dict[str, float] | None:
    """``NAME=NUMBER`` items as a mapping, or ``None`` for none.

    Raises:
        InputError: an item has no equals sign, or no number.
    """
    found = pairs(items, option)
    if found is None:
        return None
    try:
        return {name: float(value) for name, value in found.items()}
    except ValueError:
        raise InputError(f"{option} takes NAME=NUMBER, not {', '.join(items or ())}") from None


def named_key(variable: str) -> str:
    """The key in the variable that ``--api-key-env`` names.

    Raises:
        InputError: It is no variable's name, or the variable is not set.
    """
    if not is_variable(variable):
        raise InputError(f"--{NO_VARIABLE.replace('_', '-')}")
    if key := os.environ.get(variable, "").strip():
        return key
    raise InputError(f"--api-key-env names {variable}, which is not set")
