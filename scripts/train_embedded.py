"""Train the embedded set, a policy, a process and an outcome reward model for SmolLM2-135M, by the recipe.

    python scripts/train_embedded.py WORK             all stages; the same command goes on where it stopped
    python scripts/train_embedded.py WORK --quick     every stage in about a minute; trains nothing of use
    python scripts/train_embedded.py WORK --install   and put the adapters into the package

Each stage says beforehand about how long it takes; WORK/recipe.json records settings, seeds, minutes and hashes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from magicore.training.recipe import QUICK, STAGES, Recipe, estimate, install, package_folders, run_recipe


def main() -> None:
    """Run the stages asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder of the stages")
    parser.add_argument("--quick", action="store_true", help="a tiny run of every stage")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1], help="the last stage to run")
    parser.add_argument("--precision", choices=("fp32", "bf16", "autocast"), help="of all trainings")
    parser.add_argument("--plan", action="store_true", help="say the stages and their minutes, and do nothing")
    parser.add_argument("--install", action="store_true", help="copy the finished adapters into the package")
    asked = parser.parse_args()
    recipe: Recipe = QUICK if asked.quick else Recipe()
    if asked.precision:
        changed = {name: replace(getattr(recipe, name), precision=asked.precision) for name in ("policy", "prm", "orm")}
        recipe = replace(recipe, **changed)
    console = Console(highlight=False, soft_wrap=True)
    minutes = estimate(recipe)
    console.print(", ".join(f"{stage} {minutes[stage]:.0f} min" for stage in STAGES))
    console.print(f"about {sum(minutes.values()):.0f} minutes on two cores")
    if asked.plan:
        return
    run_recipe(recipe, asked.work, until=asked.until, say=console.print)
    if asked.install:
        sizes = install(asked.work, package_folders())
        console.print(f"installed {sum(sizes.values()):,} bytes: {', '.join(sizes)}")


if __name__ == "__main__":
    main()
