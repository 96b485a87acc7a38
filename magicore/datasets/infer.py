"""The kind of an answer where a file does not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from magicore.answers.kinds import Kind
from magicore.answers.number import parse_number

_YES_NO = re.compile(r"\s*(?:yes|no)\s*\.?\s*", re.IGNORECASE)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LATEX = re.compile(r"\\[A-Za-z]+|\\[(\[]|\$[^$]+\$|\^|_\{")
_COUNT = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_SUM = re.compile(r"(?:what is|calculate|compute|evaluate)[\s\d.,+\-*/×÷−()=?]+", re.IGNORECASE)
_ASKS_YES_NO = re.compile(r"\b(?:yes or no|yes/no)\b", re.IGNORECASE)


def infer_kind(question: str, gold: str | None, options: Sequence[str] | None = None) -> Kind:
    """What sort of answer is asked for.

    Listed options: choice; numeric gold without LaTeX commands: number; yes or no: yesno; LaTeX in the gold or the
    question: math; else text.

    Without a gold the question decides: "how many", "how much" and bare arithmetic ask for a number.
    """
    if options:
        return "choice"
    if gold is None:
        return _kind_asked(question)
    if not _COMMAND.search(gold) and parse_number(gold) is not None:
        return "number"
    if _YES_NO.fullmatch(gold):
        return "yesno"
    return "math" if _LATEX.search(gold) or _has_latex(question) else "text"


def _kind_asked(question: str) -> Kind:
    if _ASKS_YES_NO.search(question):
        return "yesno"
    if _has_latex(question):
        return "math"
    return "number" if _COUNT.search(question) or _SUM.fullmatch(question.strip()) else "text"


def _has_latex(question: str) -> bool:
    """LaTeX commands or formulas between dollar signs; two prices in one sentence are no formula."""
    formulas = re.findall(r"\$([^$\n]+)\$", question)
    return re.search(r"\\[A-Za-z]{2,}|\\[(\[]", question) is not None or any(
        re.search(r"[\^_=\\+]|^[A-Za-z]$", formula.strip()) and not re.search(r"[A-Za-z]{4,}", formula)
        for formula in formulas
    )
