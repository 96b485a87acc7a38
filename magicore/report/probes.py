"""What a probe found, as a table."""

from __future__ import annotations

from rich import box
from rich.table import Table

from magicore.llms.probe import Probe


def probe_table(model: str, found: Probe) -> Table:
    """One row a habit, and what it means for a run."""
    profile = found.profile
    table = Table(
        title=model,
        caption=f"{found.usage.calls} calls, {found.usage.prompt:,} + {found.usage.completion:,} tokens; "
        f"the first answer took {found.seconds:.2f} s",
        title_justify="left",
        box=box.SIMPLE,
    )
    table.add_column("Question")
    table.add_column("Found")
    table.add_column("In a run")
    table.add_row(
        "several samples a call (n)",
        _answer(profile.n) + (f", at most {profile.max_n}" if profile.max_n else ""),
        "the rest is asked for in further calls" if profile.n is False else "prompts are shared by 16 samples",
    )
    table.add_row(
        "samples differ at temperature 1",
        _answer(profile.distinct),
        "each sample is asked for alone, with a seed of its own" if profile.distinct is False else "",
    )
    table.add_row("seeds repeat a sample", _answer(profile.seeds), "")
    table.add_row(
        "log-probabilities",
        _answer(profile.logprobs),
        "" if profile.logprobs else "no likelihood or confidence scores from this model",
    )
    table.add_row("usage", _answer(profile.usage), "" if profile.usage else "tokens are unknown, calls are counted")
    table.add_row("reasoning", profile.reasoning or "none seen", "")
    table.add_row("stop reasons", _answer(profile.stop_reasons), "")
    table.add_row(
        "says when it cuts",
        _answer(profile.honest_stops),
        "cut completions are known by their length" if profile.honest_stops is False else "",
    )
    table.add_row("token limit", profile.limit or "unknown", "")
    for parameter, words in profile.refused.items():
        table.add_row(f"refuses {parameter}", words, "left out")
    return table


def _answer(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]
