"""Check that a wheel holds every file of the three packages that the repository holds, and nothing else.

python scripts/check_wheel.py WHEEL
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("magicore", "reward_models", "difficulty")


def tracked_files() -> set[str]:
    """The packages' files as git knows them, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {name for name in listed.stdout.split("\0") if name}


def packed_files(wheel: Path) -> set[str]:
    """The wheel's files, its own metadata left out."""
    with ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def main() -> None:
    """Compare the two; end with 1 and the differences where there are any."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python scripts/check_wheel.py WHEEL")
    tracked, packed = tracked_files(), packed_files(Path(sys.argv[1]))
    faults = [f"left out of the wheel: {name}" for name in sorted(tracked - packed)]
    faults += [f"in the wheel, not in the repository: {name}" for name in sorted(packed - tracked)]
    if faults:
        raise SystemExit("\n".join(faults))
    Console().print(f"The wheel holds all {len(tracked)} files of the packages.", highlight=False)


if __name__ == "__main__":
    main()
