"""The roles: each builds its prompt, calls its model, parses the reply, and returns a typed result that says what could
not be read."""

from magicore.roles.refiner import refine, review_and_refine
from magicore.roles.reviewer import review, shown_solution
from magicore.roles.solver import solve
from magicore.roles.verifier import state_confidence, verify

__all__ = ["refine", "review", "review_and_refine", "shown_solution", "solve", "state_confidence", "verify"]
