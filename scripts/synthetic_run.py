"""Make a synthetic run of known truth, for studies to be tried on.

python scripts/synthetic_run.py DIR [--problems 200] [--k 16] [--alpha 1] [--beta 1] [--orm-auroc 0.8]
    [--prm-auroc 0.75] [--fix 0.3] [--spoil 0.1] [--iterations 1] [--router hard] [--seed 0]
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from rich.console import Console

from magicore.testing.synthetic import SyntheticTruth, synthetic_run, truth_row

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--router", default="hard", help="hard refines everything, so that every router can be asked")
    for one in dataclasses.fields(SyntheticTruth):
        name = f"--{one.name.replace('_', '-')}"
        parser.add_argument(name, type=type(one.default), default=one.default, help=f"default {one.default}")
    given = vars(parser.parse_args())
    directory, router = given.pop("directory"), given.pop("router")
    truth = SyntheticTruth(**given)
    run = synthetic_run(directory, truth, router=router)
    console = Console(highlight=False)
    console.print(f"{len(run.results)} problems in {directory}; accuracy {run.summary['accuracy']:.3f}")
    console.print(", ".join(f"{name} {value:.4f} (closed form)" for name, value in truth_row(truth).items()))
