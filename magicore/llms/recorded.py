"""Recorded responses: a model that replays a file, and a wrapper that writes one.

The file holds one JSON object a line: ``{problem, role, instance, round, parent, index, text, thinking, stop, tokens,
token_logprobs}``, and where they were asked for ``top_logprobs``, and ``usage`` as ``{prompt, completion, reasoning,
calls, unmetered}``. A response is found by its call and index alone, whatever the messages are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args

from magicore.errors import CapabilityError, InputError, RequestRefused
from magicore.llms.base import Generation, LanguageModel, Request, Traits, traits
from magicore.types import CallKey, Completion, StopReason, Usage

_STOPS = get_args(StopReason)


class _Key(NamedTuple):
    problem: str
    role: str
    instance: int
    round: int
    parent: str | None
    sample: int

    def __str__(self) -> str:
        parent = f", parent {self.parent!r}" if self.parent is not None else ""
        return (
            f"problem {self.problem!r}, role {self.role}, instance {self.instance}, round {self.round}{parent}, "
            f"index {self.sample}"
        )


class RecordedModel:
    """Replays recorded responses. Lines are checked and indexed when it is opened, and read when they are asked for.

    A request is answered with the samples that are on record; the others are missing, as from an endpoint that gave
    fewer than were asked for.

    Raises:
        InputError: The file cannot be read, or a line is no response; says which.
    """

    traits: ClassVar[Traits] = Traits(by_problem=True)

    def __init__(self, path: str | Path, *, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = name or f"recorded:{path}"
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as lines:
                self._offsets = _index(lines, digest.update, self.path)
            self._file = self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror or error})") from None
        self.fingerprint = digest.hexdigest()[:16]

    async def generate(self, request: Request) -> Generation:
        """The recorded samples of this call.

        Raises:
            RequestRefused: None of them is on record; names the first.
            CapabilityError: Log-probabilities are required and were not recorded.
        """
        return _recorded(request, self.name, self._load)

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()

    def _load(self, key: _Key) -> Completion | None:
        if key not in self._offsets:
            return None
        self._file.seek(self._offsets[key])
        return _read(self._file.readline(), f"{self.path}, {key}")[1]


class RecordedResponses:
    """Replays responses held in memory, as :class:`RecordedModel` does those of a file.

    Raises:
        InputError: There is no response, or two for one call and index.
    """

    traits: ClassVar[Traits] = Traits(by_problem=True)

    def __init__(self, responses: Iterable[tuple[CallKey, Completion]], *, name: str = "recorded") -> None:
        self.name = name
        self._responses: dict[_Key, Completion] = {}
        digest = hashlib.sha256()
        for call, completion in responses:
            key = _key(call, completion.index)
            if key in self._responses:
                raise InputError(f"{name}: a second response for {key}")
            self._responses[key] = completion
            digest.update(response_line(call, completion).encode("utf-8", "surrogatepass"))
        if not self._responses:
            raise InputError(f"{name}: holds no recorded response")
        self.fingerprint = digest.hexdigest()[:16]

    async def generate(self, request: Request) -> Generation:
        """The recorded samples of this call; errors as :meth:`RecordedModel.generate`."""
        return _recorded(request, self.name, self._responses.get)

    async def aclose(self) -> None:
        """Nothing to close."""


def _recorded(request: Request, name: str, load: Callable[[_Key], Completion | None]) -> Generation:
    """The samples of a request that are on record."""
    keys = [_key(request.key, index) for index in request.indices]
    loaded = [load(key) for key in keys]
    found = [one for one in loaded if one is not None]
    if keys and not found:
        raise RequestRefused(f"there is no recorded response for {keys[0]}", model=name)
    for wanted, field in ((request.logprobs, "token_logprobs"), (request.top_logprobs > 0, "top_logprobs")):
        if wanted and request.logprobs_required and any(getattr(one, field) is None for one in found):
            raise CapabilityError(f"{name}: {field} were asked for and are not on record; record them anew")
    return Generation(completions=tuple(found))


class RecordingModel:
    """Passes requests on to a model and appends what it answers to a file; what is on record is not written again."""

    def __init__(self, model: LanguageModel, path: str | Path) -> None:
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.path = Path(path)
        self._model = model
        self._known: set[_Key] = set()
        try:
            if self.path.exists() and self.path.stat().st_size:
                with self.path.open("rb") as lines:
                    self._known.update(_index(lines, lambda line: None, self.path))
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from None

    @property
    def traits(self) -> Traits:
        """Those of the model."""
        return traits(self._model)

    async def generate(self, request: Request) -> Generation:
        """What the model generates, on record before it is returned."""
        generation = await self._model.generate(request)
        self._write(request.key, generation.completions)
        return generation

    async def aclose(self) -> None:
        """Close the file and the model."""
        self._file.close()
        await self._model.aclose()

    def _write(self, call: CallKey, completions: Iterable[Completion]) -> None:
        new = {key: one for one in completions if (key := _key(call, one.index)) not in self._known}
        self._file.writelines(response_line(call, one) for one in new.values())
        self._file.flush()
        self._known.update(new)


def response_line(call: CallKey, completion: Completion) -> str:
    """One line of a recorded file, line end included."""
    body: dict[str, Any] = {
        "problem": call.problem,
        "role": call.role,
        "instance": call.instance,
        "round": call.round,
        "parent": call.parent,
        "index": completion.index,
        "text": completion.text,
        "thinking": completion.thinking,
        "stop": completion.stop,
        "tokens": completion.tokens,
        "token_logprobs": completion.token_logprobs,
    }
    if completion.top_logprobs is not None:
        body["top_logprobs"] = completion.top_logprobs
    body["usage"] = asdict(completion.usage)
    return json.dumps(body, ensure_ascii=False) + "\n"


def _index(lines: Iterable[bytes], seen: Callable[[bytes], None], path: Path) -> dict[_Key, int]:
    """Where each response begins. Every line is checked, and passed to ``seen``."""
    offsets: dict[_Key, int] = {}
    offset = 0
    for number, line in enumerate(lines, 1):
        seen(line)
        if line.strip():
            key, _ = _read(line, f"{path}, line {number}")
            if key in offsets:
                raise InputError(f"{path}, line {number}: a second response for {key}")
            offsets[key] = offset
        offset += len(line)
    if not offsets:
        raise InputError(f"{path}: holds no recorded response")
    return offsets


def _key(call: CallKey, index: int) -> _Key:
    return _Key(call.problem, call.role, call.instance, call.round, call.parent, index)


def _read(line: str | bytes, where: str) -> tuple[_Key, Completion]:
    """Read one line.

    Raises:
        InputError: It is no JSON object, or a field is missing or of the wrong type.
    """
    try:
        body = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({error})") from None
    if not isinstance(body, dict):
        raise InputError(f"{where}: is not a JSON object")
    return (
        _Key(
            _field(body, "problem", str, where),
            _field(body, "role", str, where),
            _field(body, "instance", int, where, 0),
            _field(body, "round", int, where, 0),
            _optional(body, "parent", str, where),
            _field(body, "index", int, where),
        ),
        _completion(body, where),
    )


def _completion(body: Mapping[str, Any], where: str) -> Completion:
    stop: StopReason = _field(body, "stop", str, where, "stop")
    if stop not in _STOPS:
        raise InputError(f"{where}: stop is {stop!r}; it is one of {', '.join(_STOPS)}")
    tokens = _optional(body, "tokens", int, where)
    logprobs = _optional(body, "token_logprobs", list, where)
    alternatives = _optional(body, "top_logprobs", list, where)
    usage = _optional(body, "usage", dict, where)
    try:
        return Completion(
            index=_field(body, "index", int, where),
            text=_field(body, "text", str, where),
            thinking=_optional(body, "thinking", str, where),
            stop=stop,
            tokens=tokens,
            token_logprobs=None if logprobs is None else tuple(map(float, logprobs)),
            top_logprobs=None
            if alternatives is None
            else tuple(tuple((str(token), float(value)) for token, value in row) for row in alternatives),
            usage=_unstated(tokens) if usage is None else Usage(**{name: int(count) for name, count in usage.items()}),
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: log-probabilities or usage cannot be read ({error})") from None


def _unstated(tokens: int | None) -> Usage:
    """What a line without usage is booked as: its own tokens, and a call whose prompt is unknown."""
    return Usage(completion=tokens or 0, calls=1, unmetered=1)


def _field(body: Mapping[str, Any], name: str, kind: type, where: str, default: object = None) -> Any:
    value = body.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(
            f"{where}: {name} is {'missing' if value is None else repr(value)[:60]}; {_KINDS[kind]} is needed"
        )
    return value


def _optional(body: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    return None if body.get(name) is None else _field(body, name, kind, where)


_KINDS = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}
