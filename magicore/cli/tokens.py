"""``magicore tokens``: what a run paid for, and whether the servers' counts can be right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from magicore.store.run_store import StoredCompletion

TokenCounter = Callable[[str], int]
_SHOWN = 20


def tokens(
    directory: Annotated[Path, typer.Argument(help="The directory of a run.")],
    recount: Annotated[
        bool, typer.Option("--recount", help="Count the texts again and name the replies whose usage is wrong.")
    ] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", help="Folder, tokenizer.json or Hub id, for all models; else as configured."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show prompt, cached, completion and reasoning tokens, calls, retries and waits by role and model."""
    import sys
    from dataclasses import asdict
    from json import dumps

    from magicore.errors import InputError
    from magicore.report.accounts import accounts_table, recount_table
    from magicore.report.tables import show
    from magicore.store.accounting import recounted_with, reward_accounts, role_accounts
    from magicore.store.run_store import RunStore

    path = directory / "store.sqlite"
    if not path.is_file():
        raise InputError(f"{directory} holds no run: there is no store.sqlite")
    store = RunStore(path)
    try:
        accounts = role_accounts(store.completion_rows(), store.failed_calls())
        rows = list(store.completion_rows()) if recount or tokenizer else None
    finally:
        store.close()
    if (results := directory / "results.jsonl").is_file():
        accounts += reward_accounts(results)
    counted = None if rows is None else list(recounted_with(rows, _counters(rows, directory, tokenizer)))
    if json:
        found: dict[str, Any] = {"accounts": [asdict(account) for account in accounts]}
        if counted is not None:
            found["recount"] = [asdict(one) | {"plausible": one.plausible} for one in counted]
        sys.stdout.write(dumps(found, indent=2) + "\n")
        return
    show(accounts_table(accounts))
    if counted is not None:
        show(recount_table(counted, shown=_SHOWN))


def _counters(rows: Sequence[StoredCompletion], directory: Path, tokenizer: str | None) -> dict[str, TokenCounter]:
    """A counter for each model whose tokenizer is known: as given, or as the run was configured.

    Raises:
        InputError: None is known.
    """
    from magicore.config import load_config
    from magicore.errors import InputError
    from magicore.llms.tokenizers import token_counter, tokenizer_names

    names = {row.model for row in rows}
    configured = tokenizer_names(load_config(directory / "config.toml", {}).models)
    chosen = {name: tokenizer or configured.get(name) for name in names}
    counters = {tokenizer: token_counter(tokenizer) for tokenizer in set(chosen.values()) if tokenizer is not None}
    if names and not counters:
        raise InputError(
            f"no tokenizer of {', '.join(sorted(names))} is known: give --tokenizer, or tokenizer in its [models.NICK]"
        )
    return {name: counters[tokenizer] for name, tokenizer in chosen.items() if tokenizer is not None}
