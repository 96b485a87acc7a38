"""The methods: one file each, readable top to bottom."""

from magicore.methods.base import AnyMethod, CalibratedMethod, Method, Prepared
from magicore.methods.presets import PRESETS, preset
from magicore.methods.registry import make_method, method_names, method_options

__all__ = [
    "PRESETS",
    "AnyMethod",
    "CalibratedMethod",
    "Method",
    "Prepared",
    "make_method",
    "method_names",
    "method_options",
    "preset",
]
