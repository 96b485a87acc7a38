"""Components: selective refinement, error localisation and iteration, the paper's three issues, alone and together."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from magicore.ablations.arms import Arm
from magicore.ablations.options import Options
from magicore.ablations.study import Study
from magicore.ablations.variants import finished_magicore, variants_study

NAME = "components"
PARTS = ("selective", "localised", "iterated")
NONE, ALL = "none of them", "all three"


def components_study(directory: Path, options: Options) -> Study:
    """The study ``components``: none of the three, each alone, all; with the option ``pairs=true`` pairs as well.

    *Selective*: the run's router decides; without, everything is refined. *Localised*: reviewer and refiner see the
    process model's step scores; without, none. *Iterated*: the run's number of rounds; without, one.

    Raises:
        InputError: there is no finished run of ``magicore``.
    """
    values = options.taking(NAME, "pairs")
    base = finished_magicore(directory, NAME)
    pairs = str(values.get("pairs", "false")).lower() == "true"
    rounds = int(options.settings.get("iterations", base.config.options.get("iterations", 3)))
    router = base.config.options.get("router", "magicore")
    arms = [
        component_arm(chosen, router=router, rounds=rounds)
        for chosen in product((False, True), repeat=len(PARTS))
        if pairs or sum(chosen) != 2
    ]
    arms.sort(key=lambda arm: (arm.name != NONE, arm.name == ALL, arm.name.count("+")))
    if rounds == 1:
        # One round is no iteration: the arms that differ in it alone are one run.
        arms = [arm for arm in arms if "iterated" not in arm.name]
    return variants_study(NAME, base, arms, options, baseline=ALL, title="The three components")


def component_arm(chosen: tuple[bool, ...], *, router: Any, rounds: int) -> Arm:
    """The arm with some of the parts."""
    selective, localised, iterated = chosen
    names = [name for name, on in zip(PARTS, chosen, strict=True) if on]
    return Arm(
        name={0: NONE, len(PARTS): ALL}.get(len(names), " + ".join(names)),
        settings={
            "router": router if selective else "hard",
            "step_scores": "prm" if localised else "none",
            "iterations": rounds if iterated else 1,
        },
    )
