"""Reading what the roles reply."""

from __future__ import annotations

import pytest

from magicore.roles.verifier import read_confidence, read_yes_no


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Yes.", True),
        ("No, it is not.", False),
        ("yes, the answer is right", True),
        ("It is incorrect.", False),
        ("Yes or no?", None),
        ("I know nothing of that.", None),
        ("", None),
    ],
)
def test_yes_and_no(text: str, read: bool | None) -> None:
    assert read_yes_no(text) is read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("85", 0.85),
        ("About 7.5 %", 0.075),
        ("100", 1.0),
        ("8/10", 0.8),
        ("60 / 100", 0.6),
        ("250", None),
        ("very sure", None),
        ("", None),
    ],
)
def test_stated_confidence(text: str, read: float | None) -> None:
    assert read_confidence(text) == (None if read is None else pytest.approx(read))
