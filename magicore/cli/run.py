"""``magicore run``: one method over a batch of problems."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from magicore.cli import options as opt


def run(
    method: Annotated[str | None, typer.Option("--method", help="The method; see `magicore list methods`.")] = None,
    model: opt.Model = None,
    orm: opt.Orm = None,
    prm: opt.Prm = None,
    data: opt.Data = None,
    out: opt.Out = None,
    resume: opt.Resume = None,
    k: opt.K = None,
    iterations: opt.Iterations = None,
    router: opt.Router = None,
    option: opt.MethodOption = None,
    preset: opt.Preset = None,
    limit: opt.Limit = None,
    offset: opt.Offset = None,
    shard: opt.ShardOption = None,
    stage: opt.StageOption = "all",
    engine: opt.EngineOption = "local",
    address: opt.Address = None,
    workers: opt.Workers = None,
    worker_gpus: opt.WorkerGpus = None,
    reward_model_gpus: opt.RewardModelGpus = None,
    kind: opt.Kind = None,
    field: opt.Field = None,
    config: opt.Config = None,
    role_model: opt.RoleModel = None,
    prompts: opt.Prompts = None,
    temperature: opt.Temperature = None,
    top_p: opt.TopP = None,
    max_tokens: opt.MaxTokens = None,
    aggregation: opt.Aggregation = None,
    duplicates: opt.Duplicates = None,
    calibration: opt.Calibration = None,
    seed: opt.Seed = None,
    deterministic: opt.Deterministic = None,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    placement: opt.Placement = None,
    concurrency: opt.Concurrency = None,
    cache: opt.Cache = None,
    budget: opt.BudgetOption = None,
    force: opt.Force = False,
    yes: opt.Yes = False,
    log_json: opt.LogJson = None,
    otel: opt.Traces = False,
    json: opt.Json = False,
) -> None:
    """Run one method over a batch of problems and write results, chains, calibration, timings and a summary."""
    from magicore.cli.running import chosen_engine, resumed, run_with_progress

    if resume is not None:
        config, out = resumed(resume, config, out)
    settings: dict[str, Any] = opt.given(
        {
            "method": method,
            "model": model,
            "orm": orm,
            "prm": prm,
            "data": data,
            "k": k,
            "iterations": iterations,
            "router": router,
            "preset": preset,
            "limit": limit,
            "offset": offset,
            "shard": shard,
            "kind": kind,
            "fields": opt.pairs(field, "--field"),
            "role_models": opt.pairs(role_model, "--role-model"),
            "prompts": prompts,
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "aggregation": aggregation,
            "duplicates": duplicates,
            "calibration": calibration,
            "seed": seed,
            "deterministic": deterministic,
            "device": device,
            "dtype": dtype,
            "placement": placement,
            "concurrency": concurrency,
            "cache": cache,
            "budget": opt.numbers(budget, "--budget"),
        }
    )
    settings |= opt.pairs(option, "--option") or {}
    places = {
        "address": address,
        "workers": workers,
        "worker_gpus": worker_gpus,
        "reward_model_gpus": reward_model_gpus,
    }
    settings["engine"] = chosen_engine(engine, opt.given(places))
    settings |= opt.given({"log_json": log_json, "traces": otel or None, "stage": stage})
    run_with_progress(settings, config=config, out=out, force=force, yes=yes, as_json=json)
