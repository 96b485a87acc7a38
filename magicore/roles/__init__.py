"""The roles: each builds its prompt, calls its model, parses the reply, and returns a typed result that says what could
not be read."""

from magicore.prompts.shown import shown_solution
from magicore.roles.agent import Agent, Exchange, after, ask_review, open_agent, revise
from magicore.roles.refiner import refine, review_and_refine
from magicore.roles.review_text import ReviewFields, parse_review
from magicore.roles.reviewer import Confidence, StepScoreList, check_personas, judge, meta_review, review
from magicore.roles.solver import solve
from magicore.roles.verifier import state_confidence, verify

__all__ = [
    "Agent",
    "Confidence",
    "Exchange",
    "ReviewFields",
    "StepScoreList",
    "after",
    "ask_review",
    "check_personas",
    "judge",
    "meta_review",
    "open_agent",
    "parse_review",
    "refine",
    "review",
    "review_and_refine",
    "revise",
    "shown_solution",
    "solve",
    "state_confidence",
    "verify",
]
