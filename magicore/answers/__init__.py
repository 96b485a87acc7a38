"""Answers: read them from responses, compare them, group equal ones.

`extract` reads what a response says its answer is; `equivalent` compares two answers; `classes` groups many. Parsing
runs in worker processes with hard limits, and nothing here ever evaluates what a model wrote.
"""

from magicore.answers.canonical import Key, canonical_key, canonical_keys
from magicore.answers.classes import aclasses, classes, partition
from magicore.answers.equivalence import equivalent, same
from magicore.answers.extract import Extraction, extract
from magicore.answers.kinds import KINDS, Kind

__all__ = [
    "KINDS",
    "Extraction",
    "Key",
    "Kind",
    "aclasses",
    "canonical_key",
    "canonical_keys",
    "classes",
    "equivalent",
    "extract",
    "partition",
    "same",
]
