"""A run killed at random moments ends as one left alone, and pays for nothing twice."""

from __future__ import annotations

import json
from pathlib import Path

from magicore.testing.hostile import HostileEndpoint, Service
from magicore.testing.killing import kill_and_resume


def test_a_run_killed_three_times(tmp_path: Path) -> None:
    data = tmp_path / "problems.jsonl"
    rows = [{"question": f"What is {i} plus {3 * i + 1}?", "answer": str(4 * i + 1)} for i in range(12)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["--config", "{config}", "--data", str(data), "--method", "magicore", "--router", "hard", "--k", "3"]
    settings += ["--iterations", "1", "--orm", "likelihood", "--prm", "arithmetic", "--max-tokens", "120"]
    found = kill_and_resume(
        lambda port: HostileEndpoint(port=port, service=Service(slots=4, sample_s=0.05)),
        settings,
        tmp_path,
        kills=3,
        longest_s=0.8,
        seed=3,
    )
    assert found.kills > 0 and found.same
    assert found.repeated <= found.in_flight
