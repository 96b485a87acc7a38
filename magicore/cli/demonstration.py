"""What ``magicore demo`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from reward_models.local.embedded import adapter_folder

TRAINED = {"model": "embedded", "orm": "embedded", "prm": "embedded"}
UNTRAINED = {"model": "embedded:base", "orm": "likelihood", "prm": "arithmetic"}
"""What stands in where the package has no trained adapter."""


def show_demo(settings: Mapping[str, Any], *, k: int, iterations: int, max_tokens: int, seed: int) -> None:
    """Run the methods over one store and print the table."""
    missing = missing_adapters()
    config = RunConfig(**demo_settings(settings, missing), max_tokens=max_tokens, seed=seed)
    methods = [
        make_method("cot"),
        *(make_method(name, k=k) for name in ("self-consistency", "weighted-self-consistency", "best-of-k")),
        make_method("magicore", k=k, iterations=iterations),
    ]
    console = Console(highlight=False, soft_wrap=True)
    if instead := [name for name in missing if name not in settings]:
        console.print(
            f"This installation has no trained adapter for {', '.join(instead)} (scripts/train_embedded.py makes them),"
            f" so {', '.join(UNTRAINED[name] for name in instead)} will do."
        )
    rows, results = run_sync(_compare(config, methods))
    show(method_table(rows, title=f"{config.model} on {config.data}, k = {k}, {iterations} round(s)"))
    console.print(_routing(results["magicore"]))
    if config.model in (TRAINED["model"], UNTRAINED["model"]):
        console.print("The embedded model has 135M parameters: it is weak, and it is real.")


def demo_settings(given: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    """Settings of the run: what is given, else the trained embedded models, else what stands in for those missing.

    The prompts are those the embedded model was trained with; every other model gets worked examples.
    """
    settings = {"data": "demo", **TRAINED, **{name: UNTRAINED[name] for name in missing}, **given}
    trained = settings["model"] == TRAINED["model"] and "model" not in missing
    return {**settings, "prompts": "trained" if trained else "few-shot"}


def missing_adapters() -> list[str]:
    """Which of ``model``, ``orm`` and ``prm`` have no trained adapter in this installation."""
    folders = {"model": adapter_folder("policy"), "orm": adapter_folder("orm"), "prm": adapter_folder("prm")}
    return [name for name, folder in folders.items() if not (folder / "adapter_config.json").is_file()]


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
