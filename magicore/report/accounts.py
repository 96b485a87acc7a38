"""A run's accounts as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from magicore.store.accounting import REWARD_ROLES, Recounted, RoleAccount
from magicore.types import Usage


def accounts_table(accounts: Sequence[RoleAccount]) -> Table:
    """One row a role and model; below them generation alone, and everything."""
    table = Table(title="Tokens and calls", title_justify="left", box=box.SIMPLE)
    table.add_column("Role")
    table.add_column("Model", overflow="fold")
    for name in ("Prompt", "Cached", "Completion", "Reasoning", "Calls", "Retries", "Waited", "Failed", "Unknown"):
        table.add_column(name, justify="right")
    for account in accounts:
        table.add_row(account.role, account.model, *_cells(account))
    generation = [one for one in accounts if one.role not in (*REWARD_ROLES, "judge")]
    table.add_section()
    table.add_row("generation", "", *_cells(_total(generation)))
    table.add_row("total", "", *_cells(_total(accounts)))
    unmetered = sum(account.usage.unmetered for account in accounts)
    unknown = sum(account.unknown for account in accounts)
    notes = []
    if unknown:
        notes.append(f"unknown: {unknown:,} replies never came; they may have been charged for")
    if unmetered:
        notes.append(f"{unmetered:,} replies came without usage: the tokens are a lower bound")
    table.caption = "\n".join(notes) or None
    return table


def recount_table(counted: Sequence[Recounted], *, shown: int) -> Table:
    """The replies whose usage cannot be right, the worst first, and how many were compared."""
    wrong = sorted((one for one in counted if not one.plausible), key=lambda one: -abs(one.stated - one.counted))
    stated, found = sum(one.stated for one in counted), sum(one.counted for one in counted)
    table = Table(
        title=f"{len(wrong):,} of {len(counted):,} replies state a usage that cannot be right",
        caption=f"stated {stated:,} completion tokens, counted {found:,}",
        title_justify="left",
        box=box.SIMPLE,
    )
    for name in ("Problem", "Role", "Model"):
        table.add_column(name, overflow="fold")
    for name in ("Samples", "Stated", "Counted"):
        table.add_column(name, justify="right")
    for one in wrong[:shown]:
        table.add_row(one.problem, one.role, one.model, f"{one.choices}", f"{one.stated:,}", f"{one.counted:,}")
    return table


def _total(accounts: Sequence[RoleAccount]) -> RoleAccount:
    return RoleAccount(
        role="",
        model="",
        usage=sum((account.usage for account in accounts), Usage()),
        failed=sum(account.failed for account in accounts),
        retries=sum(account.retries for account in accounts),
        waited_s=sum(account.waited_s for account in accounts),
        unknown=sum(account.unknown for account in accounts),
    )


def _cells(account: RoleAccount) -> list[str]:
    usage = account.usage
    counts = (usage.prompt, usage.cached, usage.completion, usage.reasoning, usage.calls, account.retries)
    return [
        *(f"{count:,}" for count in counts),
        f"{account.waited_s:,.1f} s",
        f"{account.failed:,}",
        f"{account.unknown:,}",
    ]
