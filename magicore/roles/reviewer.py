"""The reviewers: they read a solution and say what is wrong with it and how to mend it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from magicore.answers import extract
from magicore.answers.review_fields import find_decision
from magicore.errors import InputError
from magicore.prompts.shown import shown_solution
from magicore.roles.review_text import ReviewFields, parse_review
from magicore.runtime.runtime import Runtime
from magicore.types import Chain, Completion, Problem, Review, ScoredChain

Confidence = Literal["verbal", "logprob"]
"""Where a review's confidence comes from: what the reviewer writes, from 1 to 5, or the mean probability that the model
gave the tokens of its decision, in [0, 1]. Written confidences are nearly always 5."""

StepScoreList = Sequence[float | None] | None
"""The step scores to show, one a step, ``None`` for a step without one; ``None`` alone shows no scores at all."""


async def review(rt: Runtime, scored: ScoredChain, scores: StepScoreList, *, round: int) -> Review:
    """Feedback on one chain, for a refiner.

    Raises:
        LanguageModelError: the review could not be had.
    """
    chain = scored.chain
    template = "reviewer" if scores is not None else "reviewer-unscored"
    messages = rt.messages(template, solution=shown_solution(chain.steps, scores))
    completion = (await rt.complete("reviewer", messages, round=round, parent=chain.id))[0]
    return Review(chain=chain.id, role="reviewer", round=round, text=completion.text, stop=completion.stop)


async def judge(
    rt: Runtime,
    chain: Chain,
    *,
    instance: int,
    round: int,
    scores: StepScoreList = None,
    persona: str | None = None,
    confidence: Confidence = "verbal",
) -> Review:
    """MARS's reviewer: whether the chain's answer is right, how sure that is, why, and which answer to recommend.

    Reviewers do not see each other; up to the persona, their prompts are equal.

    Raises:
        LanguageModelError: the review could not be had.
        CapabilityError: ``logprob`` confidence of a model that gives no log-probabilities.
    """
    prompts = rt.engine.prompts
    messages = rt.messages(
        "mars-reviewer",
        persona=persona,
        solution=chain_text(chain, scores),
        scores="" if scores is None else prompts.phrases.get("scores", ""),
    )
    completion = (
        await rt.complete(
            "reviewer",
            messages,
            instance=instance,
            round=round,
            parent=chain.id,
            token_scores=confidence == "logprob",
        )
    )[0]
    fields = parse_review(completion.text)
    stated = fields.confidence if confidence == "verbal" else decision_probability(completion)
    return read_review(rt.problem, chain, completion, fields, "reviewer", instance, round, stated)


async def meta_review(
    rt: Runtime,
    chain: Chain,
    reviews: Sequence[Review],
    *,
    round: int,
    scores: StepScoreList = None,
    confidence: Confidence = "verbal",
) -> Review:
    """MARS's meta-reviewer: merges the reviews, thinks for itself, and decides.

    Raises:
        LanguageModelError: the meta-review could not be had.
    """
    messages = rt.messages(
        "meta-reviewer",
        solution=chain_text(chain, scores),
        reviews="\n\n".join(_shown_review(number, one, confidence) for number, one in enumerate(reviews, 1)),
        scores="" if scores is None else rt.engine.prompts.phrases.get("scores", ""),
    )
    completion = (await rt.complete("meta-reviewer", messages, round=round, parent=chain.id))[0]
    fields = parse_review(completion.text)
    return read_review(rt.problem, chain, completion, fields, "meta-reviewer", 0, round, fields.confidence)


def chain_text(chain: Chain, scores: StepScoreList) -> str:
    """A chain as judges see it: as written, or step by step with scores."""
    return chain.text.strip() if scores is None else shown_solution(chain.steps, scores)


def read_review(
    problem: Problem,
    chain: Chain,
    completion: Completion,
    fields: ReviewFields,
    role: str,
    instance: int,
    round: int,
    confidence: float | None,
) -> Review:
    """A completion as a review of ``chain``; its recommended answer is read as the problem's kind."""
    answer = None
    if fields.answer is not None:
        answer = extract(f"Answer: {fields.answer}", problem.kind, options=problem.options, asked="answer").value
    return Review(
        chain=chain.id,
        role=role,
        instance=instance,
        round=round,
        text=completion.text,
        decision=fields.decision,
        confidence=confidence,
        justification=fields.justification,
        suggestions=fields.suggestions,
        answer=answer,
        stop=completion.stop,
    )


def _shown_review(number: int, review: Review, confidence: Confidence) -> str:
    """One review as the meta-reviewer sees it; a confidence that the reviewer did not write is told beside it."""
    measured = confidence == "logprob" and review.confidence is not None
    beside = f" (probability of its decision: {review.confidence:.2f})" if measured else ""
    return f"Review {number}{beside}:\n{review.text.strip()}"


def decision_probability(completion: Completion) -> float | None:
    """Mean probability, in [0, 1], of the tokens that state the decision; ``None`` where they cannot be told.

    The sampled token at a position is the alternative that has its log-probability.
    """
    found = find_decision(completion.text)
    scores, rows = completion.token_logprobs, completion.top_logprobs
    if found is None or scores is None or rows is None or len(scores) != len(rows):
        return None
    _, start, end = found
    tokens = [next((t for t, v in row if v == score), None) for score, row in zip(scores, rows, strict=True)]
    spans = token_spans(completion.text, tokens)
    chosen = [
        score
        for score, span in zip(scores, spans, strict=True)
        if span is not None and span[0] < end and span[1] > start
    ]
    return math.fsum(map(math.exp, chosen)) / len(chosen) if chosen else None


def token_spans(text: str, tokens: Sequence[str | None]) -> list[tuple[int, int] | None]:
    """Where each token stands in the text: matched from the end, white space aside, so that thinking before the text
    and end tokens after it have no place."""
    spans: list[tuple[int, int] | None] = [None] * len(tokens)
    end = len(text)
    for at in range(len(tokens) - 1, -1, -1):
        token = (tokens[at] or "").strip()
        if not token:
            continue
        body = text[:end].rstrip()
        if body.endswith(token):
            end = len(body) - len(token)
            spans[at] = (end, end + len(token))
        elif end < len(text):
            break
    return spans


def check_personas(rt: Runtime, personas: Sequence[str], count: int, what: str) -> list[str | None]:
    """The persona of each of ``count`` actors: those given, then none.

    Raises:
        InputError: more personas than actors.
        UnknownNameError: the prompt set has no such persona.
    """
    if len(personas) > count:
        raise InputError(f"{len(personas)} personas for {count} {what}: give at most one each")
    for persona in personas:
        rt.engine.prompts.persona(persona)
    return [*personas, *[None] * (count - len(personas))]
