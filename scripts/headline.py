"""The headline: MAgICoRe beside more samples, best-of-k, Self-Refine, MARS and refining everything, with the embedded
models, on held-out problems of three generated families.

    python scripts/headline.py WORK                          three families, 100 problems each, k = 16, 3 rounds
    python scripts/headline.py WORK --families stories --n 20 --k 8 --iterations 1

The same command goes on where it stopped. Tables and figures are written to WORK/headline. Completion tokens are what a
method generates; tokens are these, its prompts, and what the reward models read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from magicore.ablations.headline import Headline, headline
from magicore.ablations.study import write_study
from magicore.errors import MagicoreError
from magicore.report.study_tables import show_study
from reward_models.errors import RewardModelError


def main() -> None:
    """Run what is missing, and show and write the tables."""
    plan = Headline()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder of the runs")
    parser.add_argument("--families", nargs="+", default=list(plan.families), help="generated families")
    parser.add_argument("--n", type=int, default=plan.n, help="problems of each")
    parser.add_argument("--k", type=int, default=plan.k, help="chains")
    parser.add_argument("--iterations", type=int, default=plan.iterations, help="rounds at the most")
    parser.add_argument("--seed", type=int, default=plan.seed, help="of the problems")
    parser.add_argument("--model", default="embedded", help="policy; also hf:FOLDER")
    parser.add_argument("--orm", default="embedded", help="outcome reward model")
    parser.add_argument("--prm", default="embedded", help="process reward model")
    parser.add_argument("--prompts", default=plan.settings["prompts"], help="prompt set")
    parser.add_argument("--max-tokens", type=int, default=plan.settings["max_tokens"], help="of a completion")
    asked = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    try:
        chosen = Headline(
            families=tuple(asked.families),
            n=asked.n,
            k=asked.k,
            iterations=asked.iterations,
            seed=asked.seed,
            settings={name: getattr(asked, name) for name in plan.settings},
        )
        study = headline(asked.work, chosen, say=console.print)
        show_study(study, console)
        write_study(study, asked.work / "headline")
    except (MagicoreError, RewardModelError) as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
