"""The names of the roles, by which another model can be given to one."""

from __future__ import annotations

import difflib

from magicore.errors import InputError, UnknownNameError

ROLES: dict[str, str] = {
    "solver": "draws chains; an agent of debate, peer review, self-reflection and self-correction",
    "author": "MARS's solver",
    "reviewer": "reviews a chain",
    "meta-reviewer": "merges MARS's reviews and decides",
    "refiner": "writes a chain anew from feedback",
    "joint": "reviews and refines in one call",
    "verifier": "says whether an answer is right (a router asks)",
    "confidence": "says how likely an answer is right (a router asks)",
    "completer": "completes solutions from a step on (label-steps)",
    "judge": "scores chains, where a reward model is a language model",
    "agent": "agent/N: whatever the N-th of several equal actors does, in every role",
}
"""Role -> what it does. One of several is named ``reviewer/0``, ``reviewer/1`` ..."""


def check_role(name: str) -> None:
    """Check a role to which a model is given; roles that only a user's own method knows are let through.

    Raises:
        UnknownNameError: it looks like a misspelt role.
        InputError: the number after a slash is none, or ``agent`` has none.
    """
    role, slash, number = name.partition("/")
    if role not in ROLES:
        near = difflib.get_close_matches(role, ROLES, n=1)
        if near:
            raise UnknownNameError(f"there is no role {role!r}; did you mean {near[0]!r}?")
    if (slash and not number.isdecimal()) or (role == "agent" and not slash):
        raise InputError(f"role {name!r}: one of several actors is named with its number, as in {role}/1")
