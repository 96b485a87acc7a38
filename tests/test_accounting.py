"""Accounts by role, replies counted again, and the command that shows both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magicore.cli.app import app
from magicore.llms.balance import Balanced
from magicore.llms.base import Generation, Request, messages
from magicore.store.accounting import Recounted, recounted_with, role_accounts
from magicore.store.run_store import FailedCall, RunStore, StoredCompletion
from magicore.testing.hostile import count_tokens
from magicore.types import CallKey, Completion, Usage


def row(index: int, text: str, usage: Usage, *, role: str = "solver", **more: object) -> StoredCompletion:
    completion = Completion(index=index, text=text, stop="stop", usage=usage, **more)  # type: ignore[arg-type]
    return StoredCompletion(f"{role}{index}", "m", "p", role, completion)


def failed(**more: object) -> FailedCall:
    values = {"model": "m", "problem": "p", "role": "solver", "error": "BadReply", "samples": 1, "lost": 0}
    values |= {"prompt": None, "completion": None, "waited_s": 0.0, **more}
    return FailedCall(**values)  # type: ignore[arg-type]


ROWS = [
    row(0, "one two three", Usage(prompt=10, completion=4, calls=1, cached=6)),
    row(1, "one two", Usage(completion=3)),
    row(2, "one", Usage(prompt=10, completion=20, calls=1)),
    row(0, "yes", Usage(prompt=5, completion=2, reasoning=1, calls=1), role="judge"),
]


def test_accounts_by_role() -> None:
    failures = [failed(lost=1, waited_s=0.5), failed(error="RateLimited", waited_s=2.0), failed(prompt=7, completion=1)]
    judge, solver = role_accounts(ROWS, failures)
    assert judge.usage == Usage(prompt=5, completion=2, reasoning=1, calls=1) and judge.failed == 0
    assert solver.usage == Usage(prompt=27, completion=28, calls=2) and solver.usage.cached == 6
    assert (solver.failed, solver.retries, solver.waited_s, solver.unknown) == (3, 2, 2.5, 1)


def test_replies_are_counted_whole_and_only_where_something_shows() -> None:
    hidden = [
        row(0, "", Usage(prompt=1, completion=9, calls=1), role="a"),
        row(0, "no usage", Usage(calls=1, unmetered=1), role="b"),
        row(0, "one two", Usage(prompt=1, completion=50, reasoning=48, calls=1), role="c"),
        row(0, "one", Usage(prompt=1, completion=30, reasoning=20, calls=1), role="d", thinking="so it is " * 10),
    ]
    found = list(recounted_with([*ROWS, *hidden], {"m": count_tokens}))
    assert [(one.choices, one.stated, one.counted) for one in found] == [
        (2, 7, 5),
        (1, 20, 1),
        (1, 1, 1),
        (1, 2, 2),
        (1, 30, 31),
    ]
    assert [one.plausible for one in found] == [True, False, True, True, True]
    assert list(recounted_with(ROWS, {"other": count_tokens})) == []


@pytest.mark.parametrize(("stated", "plausible"), [(100, True), (109, True), (110, False), (91, True), (90, False)])
def test_what_is_plausible(stated: int, plausible: bool) -> None:
    one = Recounted(problem="p", role="solver", model="m", choices=1, stated=stated, counted=100)
    assert one.plausible is plausible


def test_the_command_shows_accounts_and_names_wrong_replies(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text(f'[models.nick]\nname = "openai:m"\ntokenizer = "{tmp_path}"\n')
    store = RunStore(run / "store.sqlite")
    store.put_completions([one._replace(model="openai:m") for one in ROWS])
    store.put_failed_call(failed(model="openai:m", lost=1))
    store.close()
    shown = CliRunner().invoke(app, ["tokens", str(run), "--recount"])
    assert shown.exit_code == 0, shown.output
    assert "1 of 3 replies" in shown.output and "unknown: 1 replies never came" in shown.output
    as_json = json.loads(CliRunner().invoke(app, ["tokens", str(run), "--recount", "--json"]).output)
    assert [one["plausible"] for one in as_json["recount"]] == [True, False, True]
    assert as_json["accounts"][1]["usage"]["prompt"] == 20 and as_json["accounts"][1]["unknown"] == 1
    nothing = CliRunner().invoke(app, ["tokens", str(tmp_path)])
    assert nothing.exit_code != 0 and "holds no run" in str(nothing.exception)
    (run / "config.toml").write_text("")
    assert "--tokenizer" in str(CliRunner().invoke(app, ["tokens", str(run), "--recount"]).exception)


def test_a_replica_that_breaks_off_is_counted_though_another_answers() -> None:
    from magicore._sync import run_sync
    from magicore.errors import ConnectionFailed

    class Replica:
        name, fingerprint = "m", ""

        def __init__(self, error: ConnectionFailed | None) -> None:
            self.error = error

        async def generate(self, request: Request) -> Generation:
            if self.error is not None:
                raise self.error
            return Generation(completions=(Completion(index=0, text="x", stop="stop"),))

        async def aclose(self) -> None:
            """Nothing to close."""

    def lost(*errors: ConnectionFailed | None) -> int:
        balanced = Balanced([Replica(error) for error in errors])
        request = Request(messages=messages(("user", "q")), key=CallKey(problem="p", role="solver"))
        return run_sync(balanced.generate(request)).lost

    assert lost(None) == 0
    assert lost(ConnectionFailed("refused", sent=False), None) == 0
    assert lost(ConnectionFailed("broke"), ConnectionFailed("refused", sent=False), None) == 1
    with pytest.raises(ConnectionFailed) as caught:
        lost(ConnectionFailed("broke"), ConnectionFailed("broke"))
    assert caught.value.lost == 2
