"""What ``magicore demo`` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from magicore._sync import run_sync
from magicore.ablations.comparison import compare_methods
from magicore.api import as_source
from magicore.config import RunConfig
from magicore.methods import AnyMethod, make_method
from magicore.report.progress import ProgressObserver
from magicore.report.tables import MethodRow, method_table, show
from magicore.runtime.open import open_engine
from magicore.store.run_store import RunStore
from magicore.types import Result

DEFAULTS = {"model": "embedded", "orm": "likelihood", "prm": "arithmetic", "data": "demo", "prompts": "few-shot"}


def show_demo(settings: Mapping[str, Any], *, k: int, iterations: int, max_tokens: int, seed: int) -> None:
    """Run the methods over one store and print the table."""
    config = RunConfig(**{**DEFAULTS, **settings}, max_tokens=max_tokens, seed=seed)
    methods = [
        make_method("cot"),
        *(make_method(name, k=k) for name in ("self-consistency", "weighted-self-consistency", "best-of-k")),
        make_method("magicore", k=k, iterations=iterations),
    ]
    rows, results = run_sync(_compare(config, methods))
    console = Console()
    show(method_table(rows, title=f"{config.model} on {config.data}, k = {k}, {iterations} round(s)"))
    console.print(_routing(results["magicore"]), highlight=False)
    if config.model == DEFAULTS["model"]:
        console.print("The embedded model has 135M parameters: it is weak, and it is real.", highlight=False)


async def _compare(
    config: RunConfig, methods: list[AnyMethod]
) -> tuple[tuple[MethodRow, ...], dict[str, tuple[Result, ...]]]:
    problems = list(as_source(None, config))
    store = RunStore()
    try:
        async with open_engine(config, store) as engine:
            with ProgressObserver() as observer:
                return await compare_methods(methods, problems, engine, observer=observer)
    finally:
        store.close()


def _routing(results: tuple[Result, ...]) -> str:
    verdicts = [result.verdict for result in results if result.verdict is not None]
    easy = sum(verdict.easy for verdict in verdicts)
    failed = sum(result.error is not None for result in results)
    return f"magicore: {easy} easy, {len(verdicts) - easy} hard and refined" + (f", {failed} failed" if failed else "")
