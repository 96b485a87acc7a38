"""Load prompt sets and fill their placeholders.

A prompt set is a TOML file:

* Each template (:data:`~magicore.prompts.templates.TEMPLATES`) is a table with ``user`` and, where it opens a
  conversation, ``system``.
* ``[formats]`` holds the sentence that asks for an answer format, by answer kind; ``[asked]`` names that format for
  extraction.
* ``[personas]`` holds what is said to a reviewer or solver that plays one; ``[phrases]`` sentences that only some
  variants of a method say.
* ``[[examples]]`` are worked examples (``kind``, ``question``, ``steps`` as ``[text, score of ten]``, ``feedback``,
  ``improved`` steps), shown to reviewers and refiners in their own template; ``[[exemplars.TEMPLATE]]`` are ready-made
  ``user`` and ``assistant`` turns. Both stand after the system message, so that the shared part of every prompt comes
  first and is byte-identical.
* ``extends = "default"`` takes from another set the tables that this one lacks.

A placeholder is a name in double braces, ``{{question}}``; anything else, LaTeX braces included, is left alone. Filling
is one pass: a question that contains ``{{solution}}`` is not expanded again.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from magicore.answers.extract import Asked
from magicore.answers.kinds import KINDS, Kind
from magicore.errors import InputError, UnknownNameError
from magicore.llms.base import Message
from magicore.prompts.templates import EXAMPLE_TEMPLATES, PHRASES, TEMPLATES

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, kw_only=True)
class Exemplar:
    """One worked example for a role: shown to questions of ``kind``, or to all when ``kind`` is ``None``."""

    user: str
    assistant: str
    kind: str | None = None


@dataclass(frozen=True, kw_only=True)
class RolePrompt:
    """The texts of one template."""

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
    personas: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)

    def messages(self, template: str, kind: Kind, *, persona: str = "", **values: str) -> tuple[Message, ...]:
        """The chat messages that open a conversation about one question.

        ``persona`` (a text of :meth:`persona`) stands where the template has ``{{persona}}``, else at the end of the
        system message.

        Raises:
            InputError: the set has no such template.
        """
        prompt = self._prompt(template)
        values = {"format": self.formats.get(kind, ""), "persona": persona, **values}
        system = fill(prompt.system, values) if prompt.system else ""
        if persona and "persona" not in _PLACEHOLDER.findall(prompt.user + (prompt.system or "")):
            system = f"{system}\n\n{persona}" if system else persona
        turns = [Message(role="system", content=system)] if system else []
        for exemplar in prompt.exemplars:
            if exemplar.kind in (None, kind):
                turns.append(Message(role="user", content=fill(exemplar.user, values)))
                turns.append(Message(role="assistant", content=exemplar.assistant))
        turns.append(Message(role="user", content=fill(prompt.user, values)))
        return tuple(turns)

    def turn(self, template: str, kind: Kind, **values: str) -> Message:
        """The user message that goes on with a conversation; errors as :meth:`messages`."""
        values = {"format": self.formats.get(kind, ""), **values}
        return Message(role="user", content=fill(self._prompt(template).user, values))

    def persona(self, name: str) -> str:
        """What is said to whoever plays the persona ``name``.

        Raises:
            UnknownNameError: the set has no such persona.
        """
        if name not in self.personas:
            near = difflib.get_close_matches(name, self.personas, n=1)
            known = ", ".join(sorted(self.personas)) or "none"
            hint = f"did you mean {near[0]!r}?" if near else f"it has {known}"
            raise UnknownNameError(f"prompt set {self.name!r} has no persona {name!r}; {hint}")
        return self.personas[name].strip()

    def exemplar_turns(self, kind: Kind) -> frozenset[tuple[str, str]]:
        """Role and text of every exemplar turn shown to questions of ``kind``: what a conversation can do without."""
        format_ = {"format": self.formats.get(kind, "")}
        return frozenset(
            turn
            for prompt in self.roles.values()
            for exemplar in prompt.exemplars
            if exemplar.kind in (None, kind)
            for turn in (("user", fill(exemplar.user, format_)), ("assistant", exemplar.assistant))
        )

    def _prompt(self, template: str) -> RolePrompt:
        known = TEMPLATES.get(template)
        for name in (template, known.fallback if known else None):
            if name is not None and name in self.roles:
                return self.roles[name]
        raise InputError(f"prompt set {self.name!r} has no [{template}] table, which this method needs")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{name}}`` that ``values`` has, in one pass; values go in unchanged.

    A line that holds nothing but a placeholder without text is left out.
    """
    lines = [line for line in template.strip().split("\n") if not _is_blank(line, values)]
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group(0)), "\n".join(lines).rstrip())


def _is_blank(line: str, values: Mapping[str, str]) -> bool:
    found = _PLACEHOLDER.fullmatch(line.strip())
    return found is not None and values.get(found.group(1)) == ""


def prompt_set_names() -> list[str]:
    """The prompt sets that come with magicore."""
    folder = resources.files("magicore.prompts")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_prompts(source: str) -> PromptSet:
    """Load a prompt set by name, or from a TOML file.

    Raises:
        UnknownNameError: no set of that name and no file at that path.
        InputError: the file is not TOML, lacks a template, or uses a placeholder its template does not have.
    """
    if source in (names := prompt_set_names()):
        return parse_prompts(_shipped(source), source)
    path = Path(source)
    if not path.is_file():
        near = difflib.get_close_matches(source, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known sets: {', '.join(names)}, or give a TOML file"
        raise UnknownNameError(f"there is no prompt set {source!r}{hint}")
    try:
        return parse_prompts(path.read_text(encoding="utf-8"), source)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt file {source} cannot be read: {error}") from error


def _shipped(name: str) -> str:
    return resources.files("magicore.prompts").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def parse_prompts(text: str, name: str) -> PromptSet:
    """Parse and check a prompt set's TOML text; errors as :func:`load_prompts`."""
    data = _data(text, name)
    exemplars, examples = data.pop("exemplars", {}), data.pop("examples", [])
    formats, asked = data.pop("formats", {}), data.pop("asked", {})
    personas, phrases = data.pop("personas", {}), data.pop("phrases", {})
    _check_names(name, (*data, *exemplars), TEMPLATES, "template")
    _check_names(name, (*formats, *asked, *_kinds(name, examples)), KINDS, "answer kind")
    _check_names(name, phrases, PHRASES, "phrase")
    for kind, found in asked.items():
        if found not in get_args(Asked):
            raise InputError(f"prompt set {name}: asked.{kind} is one of {', '.join(get_args(Asked))}, not {found!r}")
    for label, table in (("formats", formats), ("personas", personas), ("phrases", phrases)):
        if strange := [key for key, value in table.items() if not isinstance(value, str)]:
            raise InputError(f"prompt set {name}: {label}.{strange[0]} is a text")
    roles = {role: _role(name, role, table, exemplars.get(role, []), examples) for role, table in data.items()}
    if "solver" not in roles:
        raise InputError(f"prompt set {name} has no [solver] table")
    return PromptSet(name=name, roles=roles, formats=formats, asked=asked, personas=personas, phrases=phrases)


def _data(text: str, name: str) -> dict[str, Any]:
    """The set's tables, with those of the set that it extends."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"prompt set {name} is not TOML: {error}") from error
    base = data.pop("extends", None)
    if base is None:
        return data
    if base not in prompt_set_names():
        raise InputError(f"prompt set {name} extends {base!r}; it may extend {', '.join(prompt_set_names())}")
    return {**_data(_shipped(base), base), **data}


def _check_names(name: str, given: Sequence[str] | Mapping[str, Any], known: Any, what: str) -> None:
    if strange := sorted(set(given) - set(known)):
        near = difflib.get_close_matches(strange[0], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
        raise InputError(f"prompt set {name}: unknown {what} {strange[0]!r}; {hint}")


def _role(name: str, role: str, table: Any, exemplars: Any, examples: Sequence[Mapping[str, Any]]) -> RolePrompt:
    if not isinstance(table, dict) or not isinstance(table.get("user"), str):
        raise InputError(f"prompt set {name}: [{role}] needs a `user` template")
    template = TEMPLATES[role]
    prompt = RolePrompt(
        user=table["user"],
        system=table.get("system"),
        exemplars=tuple(_exemplar(name, role, number, item) for number, item in enumerate(exemplars, 1)),
    )
    if template.turn and (prompt.system or prompt.exemplars):
        raise InputError(f"prompt set {name}: [{role}] goes on with a conversation and takes `user` alone")
    for text in (prompt.user, prompt.system or "", *(exemplar.user for exemplar in prompt.exemplars)):
        for found in _PLACEHOLDER.findall(text):
            if found not in template.placeholders:
                allowed = ", ".join(sorted(template.placeholders))
                raise InputError(f"prompt set {name}: [{role}] uses {{{{{found}}}}}; it may use {allowed}")
    shown = _PLACEHOLDER.findall(prompt.user)
    if missing := sorted(template.shows - set(shown)):
        raise InputError(f"prompt set {name}: [{role}] never shows the {{{{{missing[0]}}}}}")
    if role not in EXAMPLE_TEMPLATES or prompt.exemplars:
        return prompt
    worked = tuple(_worked(role, prompt.user, example) for example in examples)
    return RolePrompt(user=prompt.user, system=prompt.system, exemplars=worked)


def _exemplar(name: str, role: str, number: int, item: Any) -> Exemplar:
    user, assistant = (item.get("user"), item.get("assistant")) if isinstance(item, dict) else (None, None)
    if not isinstance(user, str) or not isinstance(assistant, str):
        raise InputError(f"prompt set {name}: [[exemplars.{role}]], exemplar {number}, needs `user` and `assistant`")
    return Exemplar(user=user, assistant=assistant, kind=item.get("kind"))


def _kinds(name: str, examples: Any) -> list[str]:
    """The kinds of the worked examples, which are checked on the way."""
    if not isinstance(examples, list):
        raise InputError(f"prompt set {name}: examples are tables, [[examples]]")
    for number, item in enumerate(examples, 1):
        if not _is_example(item):
            raise InputError(
                f"prompt set {name}: example {number} needs `kind`, `question`, `feedback`, `steps` of the form "
                "[text, score of ten], and `improved` steps"
            )
    return [item["kind"] for item in examples]


def _is_example(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if not all(isinstance(item.get(key), str) for key in ("kind", "question", "feedback")):
        return False
    steps, improved = item.get("steps"), item.get("improved")
    if not isinstance(steps, list) or not isinstance(improved, list) or not steps or not improved:
        return False
    return all(isinstance(step, str) for step in improved) and all(
        isinstance(step, list) and [type(part) for part in step] == [str, int] for step in steps
    )


def _worked(role: str, user: str, example: Mapping[str, Any]) -> Exemplar:
    """A worked example in a template's own words."""
    scored = not role.endswith("-unscored")
    steps = [
        f"Step {number} (score {score}/10): {text}" if scored else f"Step {number}: {text}"
        for number, (text, score) in enumerate(example["steps"], 1)
    ]
    improved = "\n".join(f"Step {number}: {text}" for number, text in enumerate(example["improved"], 1))
    feedback = example["feedback"].strip()
    replies = {"reviewer": feedback, "refiner": improved, "joint": f"{feedback}\n\nImproved solution:\n{improved}"}
    values = {"question": example["question"], "solution": "\n".join(steps), "feedback": feedback}
    return Exemplar(user=fill(user, values), assistant=replies[role.removesuffix("-unscored")], kind=example["kind"])
