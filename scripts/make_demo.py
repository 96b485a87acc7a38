"""Write magicore/data/demo.jsonl, the problems behind `make demo`: the same seed writes the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import magicore.data
from magicore.datasets import generate, problem_row
from magicore.store.json_lines import write_json_lines

SEED = 7
COUNT = 24


def main() -> None:
    """Make the problems and write them into the package's folder."""
    rows = (
        {key: value for key, value in problem_row(replace(problem, id=f"demo-{index}")).items() if value is not None}
        for index, problem in enumerate(generate("small", COUNT, SEED))
    )
    write_json_lines(Path(str(magicore.data.__file__)).with_name("demo.jsonl"), rows)


if __name__ == "__main__":
    main()
