"""Write magicore/data/demo.jsonl, the problems behind `make demo`: the same seed writes the same bytes.

They are of the families that the embedded models are trained for and solve, from the test split, with a seed that
nothing else of the package draws from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import magicore.data
from magicore.datasets.tasks import task_records
from magicore.store.json_lines import write_json_lines

FAMILIES = ("stories", "units")
SEED = 7
EACH = 12


def rows() -> Iterator[Mapping[str, Any]]:
    """The problems, a family after the other in turn, so that the first few are of every family."""
    drawn = [task_records(f"gen:{family}:{EACH}:{SEED}:test") for family in FAMILIES]
    for records in zip(*drawn, strict=True):
        for record in records:
            yield {name: record.row[name] for name in ("id", "question", "answer", "kind")}


def main() -> None:
    """Make the problems and write them into the package's folder."""
    write_json_lines(Path(str(magicore.data.__file__)).with_name("demo.jsonl"), rows())


if __name__ == "__main__":
    main()
