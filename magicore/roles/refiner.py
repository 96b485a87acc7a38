"""The refiner: writes a solution anew, from a solution with step scores and the feedback on it."""

from __future__ import annotations

import re
from dataclasses import replace

from magicore.errors import BadReply
from magicore.prompts.shown import shown_solution
from magicore.roles.reviewer import StepScoreList
from magicore.runtime.runtime import Runtime
from magicore.types import CallKey, Chain, Review, ScoredChain

_IMPROVED = re.compile(r"^\W*improved solution\W*?:\W*?$", re.IGNORECASE | re.MULTILINE)
_NO_FEEDBACK = {True: "(none; go by the scores)", False: "(none)"}


async def refine(
    rt: Runtime,
    scored: ScoredChain,
    scores: StepScoreList,
    feedback: str | None,
    *,
    round: int,
    index: int,
) -> Chain:
    """The round's ``index``-th new chain, whose parent is ``scored``. ``feedback=None``: no reviewer, go by the scores.

    Raises:
        LanguageModelError: the chain could not be had.
    """
    chain = scored.chain
    solution = shown_solution(chain.steps, scores)
    template = "refiner" if scores is not None else "refiner-unscored"
    messages = rt.messages(template, solution=solution, feedback=feedback or _NO_FEEDBACK[scores is not None])
    return (await rt.chains("refiner", messages, indices=(index,), round=round, parent=chain.id))[0]


async def review_and_refine(
    rt: Runtime, scored: ScoredChain, scores: StepScoreList, *, round: int, index: int
) -> tuple[Review, Chain]:
    """Both in one call (the `joint` variant): the feedback, then, below "Improved solution:", the new chain.

    Raises:
        BadReply: the reply has no improved solution, so there is nothing to keep.
        LanguageModelError: the reply could not be had.
    """
    parent = scored.chain.id
    template = "joint" if scores is not None else "joint-unscored"
    messages = rt.messages(template, solution=shown_solution(scored.chain.steps, scores))
    completion = (await rt.complete("joint", messages, indices=(index,), round=round, parent=parent))[0]
    marks = list(_IMPROVED.finditer(completion.text))
    if not marks:
        raise BadReply("the joint reply has no line 'Improved solution:'", model=rt.engine.model("joint").name)
    feedback, text = completion.text[: marks[-1].start()].strip(), completion.text[marks[-1].end() :].strip()
    key = CallKey(problem=rt.problem.id, role="joint", round=round, parent=parent)
    review = Review(chain=parent, role="joint", round=round, text=feedback, stop=completion.stop)
    return review, rt.read(key, replace(completion, text=text, token_logprobs=None, top_logprobs=None))
