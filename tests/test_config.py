"""Configuration: precedence, checking, and saving without loss."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.config import RunConfig, config_toml, load_config
from magicore.errors import InputError, UnknownNameError


def test_options_go_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('seed = 3\ntemperature = 0.5\n[options]\nk = 4\niterations = 2\n[models.nick]\nname = "hf:x"\n')
    config = load_config(path, {"seed": 5, "options": {"k": 8}})
    assert (config.seed, config.temperature, config.top_p) == (5, 0.5, 0.95)
    assert config.options == {"k": 8, "iterations": 2} and config.models == {"nick": {"name": "hf:x"}}


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ("seed = ", InputError, "is not TOML"),
        ("sed = 1", UnknownNameError, "did you mean 'seed'"),
        ("seed = 'x'", InputError, "seed takes int"),
        ("seed = true", InputError, "seed takes int"),
        ("options = 3", InputError, "options takes a table"),
        ("limit = 0", InputError, "limit must be at least 1"),
        ("top_p = 1.5", InputError, "top_p lies in"),
        ("kind = 'nmber'", UnknownNameError, "no answer kind 'nmber'"),
        ("calibration = 'all'", InputError, "calibration is batch"),
        ("concurrency = 0", InputError, "concurrency must be at least 1"),
    ],
)
def test_wrong_settings_are_one_sentence(text: str, kind: type[Exception], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(kind, match=sentence):
        load_config(path, {})


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_config(tmp_path / "none.toml", {})


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: Any = st.one_of(
    TEXT, st.integers(-(2**60), 2**60), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.dictionaries(TEXT, st.one_of(VALUES, st.lists(VALUES, max_size=3))), TEXT)
def test_a_saved_configuration_reads_back_equal(table: dict[str, Any], model: str) -> None:
    config = RunConfig(model=model, models={"a.b": table, "c": {"extra_body": table}}, options=table, temperature=None)
    read = tomllib.loads(config_toml(config))
    assert read["model"] == model and read.get("options", {}) == table
    assert read.get("models", {}).get("a.b", {}) == table and "temperature" not in read
