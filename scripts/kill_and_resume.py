"""Kill one run at random moments, take it up each time, and compare it with a run left alone.

python scripts/kill_and_resume.py [--kills 30] [--problems 400] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from magicore.testing.hostile import HostileEndpoint, Service
from magicore.testing.killing import kill_and_resume


def main() -> int:
    """Print what came of it; exit 1 if the results differ, a call was repeated that need not be, or the run ended
    before it was killed so often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--longest-s", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "problems.jsonl"
        rows = [
            {"question": f"What is {i} plus {3 * i + 1}?", "answer": str(4 * i + 1)} for i in range(options.problems)
        ]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        settings = ["--config", "{config}", "--data", str(data), "--method", "magicore", "--router", "hard", "--k", "4"]
        settings += ["--iterations", "1", "--orm", "likelihood", "--prm", "arithmetic", "--max-tokens", "120", "--yes"]
        found = kill_and_resume(
            lambda port: HostileEndpoint(port=port, service=Service(slots=16, sample_s=0.05)),
            settings,
            folder,
            kills=options.kills,
            longest_s=options.longest_s,
            seed=options.seed,
        )
    text = json.dumps(asdict(found), indent=2)
    sys.stdout.write(text + "\n")
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if found.kills < options.kills:
        sys.stderr.write(f"the run ended after {found.kills} kills; give more --problems, or a smaller --longest-s\n")
    return 0 if found.same and found.repeated <= found.in_flight and found.kills == options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
