"""Load prompt sets and fill their placeholders.

A prompt set is a TOML file. Each role is a table with ``system`` (optional) and ``user``; ``[formats]`` holds the
sentence that asks for one answer format, by answer kind; ``[asked]`` names that format for extraction;
``[[exemplars.ROLE]]`` are worked examples (``kind``, and ``user``/``assistant`` turns), placed after the system message
so that the shared part of every prompt comes first and is byte-identical.

A placeholder is a name in double braces, ``{{question}}``; anything else, LaTeX braces included, is left alone. Filling
is one pass: a question that contains ``{{solution}}`` is not expanded again.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from magicore.answers.extract import Asked
from magicore.answers.kinds import KINDS, Kind
from magicore.errors import InputError, UnknownNameError
from magicore.llms.base import Message

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")

PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "solver": frozenset({"question", "format"}),
    "reviewer": frozenset({"question", "format", "solution"}),
    "refiner": frozenset({"question", "format", "solution", "feedback"}),
    "joint": frozenset({"question", "format", "solution"}),
    "verifier": frozenset({"question", "answer", "solution"}),
    "confidence": frozenset({"question", "answer", "solution"}),
}
"""Which placeholders each role's templates may use; every user template holds ``question``."""


@dataclass(frozen=True, kw_only=True)
class Exemplar:
    """One worked example for a role: shown to questions of ``kind``, or to all when ``kind`` is ``None``."""

    user: str
    assistant: str
    kind: str | None = None


@dataclass(frozen=True, kw_only=True)
class RolePrompt:
    """The templates of one role."""

    user: str
    system: str | None = None
    exemplars: tuple[Exemplar, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """A checked prompt set. ``asked`` names the answer format by kind, as :func:`magicore.answers.extract` takes it."""

    name: str
    roles: Mapping[str, RolePrompt]
    formats: Mapping[str, str]
    asked: Mapping[str, Asked]

    def messages(self, role: str, kind: Kind, **values: str) -> tuple[Message, ...]:
        """The chat messages of ``role`` for one question.

        Raises:
            InputError: the set has no prompt for this role.
        """
        prompt = self.roles.get(role)
        if prompt is None:
            raise InputError(f"prompt set {self.name!r} has no [{role}] table, which this method needs")
        values = {"format": self.formats.get(kind, ""), **values}
        turns: list[Message] = []
        if prompt.system:
            turns.append(Message(role="system", content=fill(prompt.system, values)))
        for exemplar in prompt.exemplars:
            if exemplar.kind in (None, kind):
                turns.append(Message(role="user", content=fill(exemplar.user, values)))
                turns.append(Message(role="assistant", content=exemplar.assistant))
        turns.append(Message(role="user", content=fill(prompt.user, values)))
        return tuple(turns)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{name}}`` that ``values`` has, in one pass; values go in unchanged."""
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group(0)), template.strip())


def prompt_set_names() -> list[str]:
    """The prompt sets that come with magicore."""
    folder = resources.files("magicore.prompts")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_prompts(source: str) -> PromptSet:
    """Load a prompt set by name, or from a TOML file.

    Raises:
        UnknownNameError: no set of that name and no file at that path.
        InputError: the file is not TOML, lacks a template, or uses a placeholder its role does not have.
    """
    if source in (names := prompt_set_names()):
        text = resources.files("magicore.prompts").joinpath(f"{source}.toml").read_text(encoding="utf-8")
        return parse_prompts(text, source)
    path = Path(source)
    if not path.is_file():
        near = difflib.get_close_matches(source, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known sets: {', '.join(names)}, or give a TOML file"
        raise UnknownNameError(f"there is no prompt set {source!r}{hint}")
    try:
        return parse_prompts(path.read_text(encoding="utf-8"), source)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt file {source} cannot be read: {error}") from error


def parse_prompts(text: str, name: str) -> PromptSet:
    """Parse and check a prompt set's TOML text; errors as :func:`load_prompts`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"prompt set {name} is not TOML: {error}") from error
    exemplars = data.pop("exemplars", {})
    formats, asked = data.pop("formats", {}), data.pop("asked", {})
    unknown = sorted(set(data) - set(PLACEHOLDERS)) + sorted(set(exemplars) - set(PLACEHOLDERS))
    if unknown:
        raise InputError(f"prompt set {name}: unknown role {unknown[0]!r}; roles: {', '.join(sorted(PLACEHOLDERS))}")
    for table in (formats, asked):
        if strange := sorted(set(table) - set(KINDS)):
            raise InputError(f"prompt set {name}: unknown answer kind {strange[0]!r}; kinds: {', '.join(KINDS)}")
    for kind, found in asked.items():
        if found not in get_args(Asked):
            raise InputError(f"prompt set {name}: asked.{kind} is one of {', '.join(get_args(Asked))}, not {found!r}")
    roles = {role: _role(name, role, table, exemplars.get(role, [])) for role, table in data.items()}
    if "solver" not in roles:
        raise InputError(f"prompt set {name} has no [solver] table")
    return PromptSet(name=name, roles=roles, formats=formats, asked=asked)


def _role(name: str, role: str, table: Any, exemplars: Any) -> RolePrompt:
    if not isinstance(table, dict) or not isinstance(table.get("user"), str):
        raise InputError(f"prompt set {name}: [{role}] needs a `user` template")
    prompt = RolePrompt(
        user=table["user"],
        system=table.get("system"),
        exemplars=tuple(_exemplar(name, role, number, item) for number, item in enumerate(exemplars, 1)),
    )
    for template in (prompt.user, prompt.system or "", *(exemplar.user for exemplar in prompt.exemplars)):
        for found in _PLACEHOLDER.findall(template):
            if found not in PLACEHOLDERS[role]:
                allowed = ", ".join(sorted(PLACEHOLDERS[role]))
                raise InputError(f"prompt set {name}: [{role}] uses {{{{{found}}}}}; it may use {allowed}")
    if "{{question}}" not in prompt.user.replace(" ", ""):
        raise InputError(f"prompt set {name}: [{role}] never shows the {{{{question}}}}")
    return prompt


def _exemplar(name: str, role: str, number: int, item: Any) -> Exemplar:
    user, assistant = (item.get("user"), item.get("assistant")) if isinstance(item, dict) else (None, None)
    if not isinstance(user, str) or not isinstance(assistant, str):
        raise InputError(f"prompt set {name}: [[exemplars.{role}]], exemplar {number}, needs `user` and `assistant`")
    return Exemplar(user=user, assistant=assistant, kind=item.get("kind"))
