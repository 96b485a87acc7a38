"""Keys appear in nothing that is written or said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import magicore
from fake_servers import Answer, Call, serving
from magicore.cli.app import app
from magicore.config import RunConfig
from magicore.errors import InputError
from magicore.llms.registry import open_model
from reward_models.errors import RewardModelError
from reward_models.names import parse_model_name
from reward_models.registry import load_process_model

KEY = "sk-very-secret-0123456789"
QUESTION = [{"question": "What is 1 plus 2?", "answer": "3"}]


def holding_the_key(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"models": {"m": {"name": "openai:m", "api_key": KEY}}}, "models.m.api_key"),
        ({"models": {"m": {"name": "openai:m", "extra_body": {"X-Api-Key": KEY}}}}, "models.m.extra_body.X-Api-Key"),
        ({"models": {"m": {"name": "openai:m", "urls": [f"http://me:{KEY}@host/v1"]}}}, "models.m.urls"),
        ({"models": {"m": {"name": "openai:m", "api_key_env": KEY}}}, "models.m.api_key_env"),
        ({"reward_models": {"r": {"name": "genprm", "authorization": f"Bearer {KEY}"}}}, "reward_models.r"),
        ({"model": f"openai:m@http://{KEY}@host/v1"}, "address in model"),
        ({"model": f"openai:m@https://host/v1?api-key={KEY}"}, "address in model"),
        ({"prm": f"arithmetic@http://a,http://b/?token={KEY}"}, "address in prm"),
        ({"role_models": {"reviewer": f"openai:m@http://u:{KEY}@h/v1"}}, "address in role_models.reviewer"),
        ({"prices": {f"openai:m@http://u:{KEY}@h/v1": {"prompt": 1.0, "completion": 1.0}}}, "a setting"),
    ],
)
def test_a_key_among_the_settings_is_refused_before_anything_is_written(
    settings: dict[str, Any], where: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        magicore.solve_batch(QUESTION, method="cot", out=tmp_path / "run", **{"model": "m", **settings})
    assert where in str(caught.value) and "api_key_env" in str(caught.value) and KEY not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "key", [KEY, "hf_abcdefgh12345678", "ab" * 12 + "0f1e2d3c", "AKIA0123456789ABCDEF", "two words", ""]
)
def test_a_key_in_the_place_of_its_variables_name_is_not_repeated(key: str) -> None:
    makers: list[Callable[[], object]] = [
        lambda: open_model("openai:m@http://127.0.0.1:9/v1", api_key_env=key),
        lambda: load_process_model("qwen2.5-math-prm-7b@vllm+http://127.0.0.1:9", api_key_env=key),
    ]
    for make in makers if key else ():
        with pytest.raises((InputError, RewardModelError), match="name of an environment variable") as caught:
            make()
        assert key not in str(caught.value)
    for command in (["serve"], ["serve-reward-model", "arithmetic"]):
        result = CliRunner().invoke(app, [*command, "--port", "0", "--api-key-env", key])
        assert result.exit_code != 0
        said = result.output + str(result.exception)
        assert "name of an environment variable" in said
        assert not key or key not in said


def test_settings_without_a_key_are_no_key() -> None:
    table = {"name": "openai:m@http://host:8000/v1?api-version=3", "api_key_env": "MY_KEY", "tokenizer": "a/b"}
    RunConfig(models={"m": table | {"extra_body": {"top_k": 20, "max_new_tokens": 3}}}, prompts="a@b")


def test_an_address_from_the_environment_may_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{KEY}@host/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(InputError) as caught:
        open_model("openai:m")
    assert "api_key_env" in str(caught.value) and KEY not in str(caught.value)


def test_a_parameter_of_an_address_that_is_a_key_is_refused_with_the_name() -> None:
    with pytest.raises(ValueError, match="holds a key, user name or password") as caught:
        parse_model_name(f"genprm@http://host/score?access_token={KEY}")
    assert KEY not in str(caught.value)


def test_a_scoring_servers_key_appears_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server quotes the key in its refusal."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SCORE_KEY", KEY)

    def quote(call: Call) -> Answer:
        return Answer({"error": f"no such key: {call.headers.get('authorization')}"}, status=403)

    with serving(quote) as server:
        table = {"name": "arithmetic", "urls": [server.url], "api_key_env": "SCORE_KEY"}
        settings: dict[str, Any] = {"model": "scripted", "method": "sc+prm", "k": 2, "prm": "r"}
        settings |= {"reward_models": {"r": table}, "log_json": tmp_path / "log.jsonl"}
        with pytest.raises(RewardModelError, match=r"\*\*\*") as caught:
            magicore.solve_batch(QUESTION, out=tmp_path / "run", **settings)
        assert {call.headers.get("authorization") for call in server.calls} == {f"Bearer {KEY}"}
    assert KEY not in repr(caught.value) + caplog.text and holding_the_key(tmp_path) == []
