"""The kinds of answer that can be extracted, compared and voted on."""

from typing import Final, Literal, get_args

Kind = Literal["number", "math", "choice", "yesno", "date", "text"]
"""What sort of answer a problem asks for; it decides how a response is read and when two answers are equal."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
