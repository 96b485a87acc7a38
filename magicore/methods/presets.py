"""Named settings: several that belong together under one name, for ``--preset`` and ``preset=``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from magicore.errors import UnknownNameError

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "published": {"method": "magicore-published", "calibration": "first"},
    "mars-p": {"method": "mars", "personas": ("conservative", "aggressive")},
}
"""Name -> settings of a run and options of its method. What is given beside a preset goes over it."""


def preset(name: str) -> dict[str, Any]:
    """The settings of a preset, as :func:`magicore.solve_batch` takes them.

    Raises:
        UnknownNameError: there is no such preset; near names are suggested.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"presets: {', '.join(PRESETS)}"
        raise UnknownNameError(f"there is no preset {name!r}; {hint}")
    return dict(PRESETS[name])
