"""README's Python examples run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_there_is_a_ten_line_example() -> None:
    assert len(EXAMPLES) == 2
    assert len(EXAMPLES[0].strip().splitlines()) <= 11


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, tmp_path: Path) -> None:
    """In a process of its own, with warnings as a user would see them."""
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    if number == 0:
        assert [line.split()[0] for line in lines[:2]] == ["0", "1"]
        assert all(line.split()[-1] in ("easy", "hard") for line in lines[:2])
    else:
        assert 0 < float(lines[0]) < 1
