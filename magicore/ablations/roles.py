"""Roles: separate reviewer and refiner, one call for both, no reviewer, MARS's reviewers, personas, other models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magicore.ablations.arms import Arm
from magicore.ablations.options import Options
from magicore.ablations.study import Study
from magicore.ablations.variants import finished_magicore, variants_study
from magicore.errors import InputError

NAME = "roles"
ARMS: Mapping[str, Mapping[str, Any]] = {
    "separate": {"review": "separate"},
    "joint": {"review": "joint"},
    "no reviewer": {"review": "none"},
    "mars": {"review": "mars"},
    "mars, personas": {"review": "mars", "personas": ("conservative", "aggressive")},
}
MIXED = "mixed models"


def roles_study(directory: Path, options: Options) -> Study:
    """The study ``roles``. ``--role-model ROLE=MODEL`` adds an arm whose roles other models play. Option
    ``arms=separate;joint`` takes some only.

    Raises:
        InputError: there is no finished run of ``magicore``, or no such arm.
    """
    values = options.taking(NAME, "arms")
    base = finished_magicore(directory, NAME)
    role_models = options.settings.get("role_models")
    others = {name: value for name, value in options.settings.items() if name != "role_models"}
    arms = [Arm(name=name, settings=settings) for name, settings in ARMS.items()]
    if role_models:
        arms.append(Arm(name=MIXED, settings={"review": "separate", "role_models": role_models}))
    if "arms" in values:
        wanted = [part.strip() for part in str(values["arms"]).split(";")]
        known = [arm.name for arm in arms]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise InputError(f"{NAME}: there is no arm {unknown[0]!r}; there are {'; '.join(known)}")
        arms = [arm for arm in arms if arm.name in wanted]
    plain = Options(
        luck=options.luck,
        baseline=options.baseline,
        limit=options.limit,
        settings=others,
        values=options.values,
        consent=options.consent,
    )
    return variants_study(NAME, base, arms, plain, baseline=arms[0].name, title="Who reviews and who refines")
