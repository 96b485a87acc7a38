"""The refiner: writes a solution anew, from a solution with step scores and the feedback on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from magicore.errors import BadReply
from magicore.roles.reviewer import shown_solution
from magicore.runtime.runtime import Runtime
from magicore.types import CallKey, Chain, Review, ScoredChain

_IMPROVED = re.compile(r"^\W*improved solution\W*?:\W*?$", re.IGNORECASE | re.MULTILINE)


async def refine(
    rt: Runtime,
    scored: ScoredChain,
    scores: Sequence[float | None] | None,
    feedback: str | None,
    *,
    round: int,
    index: int,
) -> Chain:
    """The round's ``index``-th new chain, whose parent is ``scored``. ``feedback=None``: no reviewer, scores only.

    Raises:
        LanguageModelError: the chain could not be had.
    """
    chain = scored.chain
    solution = shown_solution(chain.steps, scores)
    messages = rt.messages("refiner", solution=solution, feedback=feedback or "(none; go by the scores)")
    return (await rt.chains("refiner", messages, indices=(index,), round=round, parent=chain.id))[0]


async def review_and_refine(
    rt: Runtime, scored: ScoredChain, scores: Sequence[float | None] | None, *, round: int, index: int
) -> tuple[Review, Chain]:
    """Both in one call (the `joint` variant): the feedback, then, below "Improved solution:", the new chain.

    Raises:
        BadReply: the reply has no improved solution, so there is nothing to keep.
        LanguageModelError: the reply could not be had.
    """
    parent = scored.chain.id
    messages = rt.messages("joint", solution=shown_solution(scored.chain.steps, scores))
    completion = (await rt.complete("joint", messages, indices=(index,), round=round, parent=parent))[0]
    marks = list(_IMPROVED.finditer(completion.text))
    if not marks:
        raise BadReply("the joint reply has no line 'Improved solution:'", model=rt.engine.model("joint").name)
    feedback, text = completion.text[: marks[-1].start()].strip(), completion.text[marks[-1].end() :].strip()
    key = CallKey(problem=rt.problem.id, role="joint", round=round, parent=parent)
    review = Review(chain=parent, role="joint", round=round, text=feedback, stop=completion.stop)
    return review, rt.read(key, replace(completion, text=text, token_logprobs=None, top_logprobs=None))
