"""Let a language model go on with a solution that is begun: by a prefill where it can, else by asking for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from magicore.errors import CapabilityError
from magicore.llms.base import Message
from magicore.runtime.runtime import Runtime
from magicore.types import CallKey, Chain

ROLE = "completer"


class Continuer:
    """Completes prefixes of solutions with a run's model.

    A local model, vLLM and SGLang continue the assistant's message itself (a prefill). Any other endpoint is shown the
    beginning as its own message and asked for the rest (the prompt set's ``continuation``); which of the two it is, is
    found out once. The chains returned hold the whole solution, beginning included.
    """

    def __init__(self) -> None:
        self._prefills = True

    @property
    def by_instruction(self) -> bool:
        """Whether the model had to be asked, because it does not continue a message."""
        return not self._prefills

    async def complete(self, rt: Runtime, prefix: str, n: int) -> list[Chain]:
        """``n`` solutions that begin with ``prefix``, fewer where some could not be had; an empty prefix is none.

        Equal prefixes of equal questions have the same samples, which are drawn once.

        Raises:
            LanguageModelError: Not one could be had.
        """
        opening = rt.messages("solver")
        if self._prefills and prefix:
            try:
                return await self._ask(rt, opening, prefix, n, prefill=prefix)
            except CapabilityError:
                self._prefills = False
        if not prefix:
            return await self._ask(rt, opening, prefix, n, prefill=None)
        begun = Message(role="assistant", content=prefix.rstrip())
        return await self._ask(rt, (*opening, begun, rt.turn("continuation")), prefix, n, prefill=None)

    async def _ask(
        self, rt: Runtime, messages: Sequence[Message], prefix: str, n: int, *, prefill: str | None
    ) -> list[Chain]:
        completions = await rt.complete(ROLE, messages, indices=range(n), prefill=prefill)
        key = CallKey(problem=rt.problem.id, role=ROLE)
        between = "\n" if prefix and prefill is None and not prefix.endswith("\n") else ""
        return [rt.read(key, replace(one, text=f"{prefix}{between}{one.text}")) for one in completions]
