"""The templates that a prompt set can hold: what each may be filled with, and what it has to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_QUESTION = frozenset({"question"})
_SOLUTION = frozenset({"question", "solution"})


@dataclass(frozen=True, kw_only=True)
class Template:
    """One template.

    Attributes:
        shows: The placeholders that its ``user`` text must have; without them the model would not see what it is asked
            about.
        may: Further placeholders.
        turn: Whether it goes on with a conversation, in which the question stands already. A turn has no system
            message and no exemplars.
        fallback: The template used where a set lacks this one.
    """

    shows: frozenset[str] = _QUESTION
    may: frozenset[str] = frozenset({"format"})
    turn: bool = False
    fallback: str | None = None

    @property
    def placeholders(self) -> frozenset[str]:
        """All that may be filled in."""
        return self.shows | self.may


def _turn(*shows: str, may: tuple[str, ...] = ()) -> Template:
    return Template(shows=frozenset(shows), may=frozenset({"format", *may}), turn=True)


_REVIEW = Template(shows=_SOLUTION)
_REFINE = Template(shows=_SOLUTION, may=frozenset({"format", "feedback"}))
_JUDGE = Template(may=frozenset({"answer", "solution"}))

TEMPLATES: Mapping[str, Template] = {
    "solver": Template(may=frozenset({"format", "persona"})),
    "author": Template(may=frozenset({"format", "persona"}), fallback="solver"),
    # MAgICoRe, Self-Refine
    "reviewer": _REVIEW,
    "reviewer-unscored": _REVIEW,
    "refiner": _REFINE,
    "refiner-unscored": _REFINE,
    "joint": _REVIEW,
    "joint-unscored": _REVIEW,
    "verifier": _JUDGE,
    "confidence": _JUDGE,
    # MARS
    "mars-reviewer": Template(shows=_SOLUTION, may=frozenset({"format", "persona", "scores"})),
    "meta-reviewer": Template(shows=_SOLUTION | {"reviews"}, may=frozenset({"format", "scores"})),
    "rebuttal": _turn("review"),
    # Conversations of one agent or several
    "debate": _turn("solutions"),
    "peer-reviewer": _turn("solution", may=("rating",)),
    "peer-revision": _turn("received", may=("rating",)),
    "reflection": _turn(),
    "critique": _turn(),
    "correction": _turn(),
    # Step labels: a solution that is begun, for a model that does not continue its own message
    "continuation": _turn(),
}

EXAMPLE_TEMPLATES = ("reviewer", "reviewer-unscored", "refiner", "refiner-unscored", "joint", "joint-unscored")
"""The templates that the worked ``[[examples]]`` of a set are shown with."""

PHRASES = frozenset({"scores", "rating"})
"""Sentences that fill a placeholder in some variants and are left out in others: ``scores`` where step scores are shown
to a MARS reviewer, ``rating`` where peer review asks for a confidence."""
