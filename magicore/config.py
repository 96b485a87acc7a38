"""One run's configuration: command line over TOML over defaults, saved beside the results as ``config.toml``."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from magicore.answers.kinds import KINDS
from magicore.credentials import refuse_keys
from magicore.datasets.shards import Shard
from magicore.errors import InputError, UnknownNameError
from magicore.llms.base import Sampling

Duplicates = Literal["count", "once"]
Placement = Literal["together", "phased", "cpu-rewards"]
CALIBRATIONS = ("batch", "first", "running")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a run does. Names are those of :mod:`magicore.llms.registry`, :mod:`reward_models.registry` and
    :mod:`magicore.methods.registry`.

    Attributes:
        model: The language model, or a nickname from ``models``.
        role_models: Another model for a role, one of several, or all that an agent does: ``{"reviewer": "openai:...",
            "reviewer/1": ..., "agent/2": ...}``; see :mod:`magicore.roles.names`.
        models: ``[models.NICK]`` tables of the configuration file.
        orm: The outcome reward model, or a nickname from ``reward_models``; ``None`` for none.
        prm: The process reward model; ``None`` for none.
        reward_models: ``[reward_models.NICK]`` tables.
        method: The method's name; ``options`` are its options.
        data: Where the problems are (see :func:`magicore.datasets.load_problems`); ``None`` when given from Python.
        kind: The answer kind of all problems, instead of each one's own.
        fields: Renamed input fields, ``{"question": "problem"}``.
        limit: Take at most so many problems, after skipping ``offset``.
        shard: Take one of several shards of those, ``2/8`` for the second of eight (see
            :class:`magicore.datasets.shards.Shard`).
        prompts: A prompt set's name or TOML file.
        temperature, top_p, max_tokens: Sampling; ``None`` leaves temperature and top_p to the endpoint.
        aggregation: How step scores become s: ``product`` (the paper's), ``min``, ``last``, ``mean``,
            ``geometric-mean``, or ``family`` for the reward model's own recommendation.
        duplicates: What chains weigh that repeat an earlier one word for word: ``count`` (each is a vote; the result
            says how many there are) or ``once`` (they abstain).
        calibration: ``batch``, ``first`` (the published code's), ``running``, or a saved calibration file.
        seed: The run's seed.
        deterministic: Local models in fp32 with a fixed batch order.
        device, dtype: Where and how local models run. With ``auto`` each machine takes what it is fast with; machines
            that share a run or a cache need one dtype, since another precision gives other samples.
        placement: How local models share the device: ``together``, all loaded at once; ``phased``, one at a time, in
            waves over the problems that are worked on at once; ``cpu-rewards``, reward models run on the processor. A
            model whose table names a ``device`` of its own stays there.
        concurrency: Problems worked on at once.
        cache: A store file that runs share: what it has is not paid for again.
        budget: Limits, ``{"run.tokens": 1e6, "problem.seconds": 60}``: of ``run`` or ``problem``, on ``tokens``,
            ``calls``, ``money`` or ``seconds``. Near a limit a method answers with what it has.
        prices: ``[prices."MODEL"]`` tables with ``prompt`` and ``completion``, in money per million tokens.
    """

    model: str = "embedded"
    role_models: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    orm: str | None = None
    prm: str | None = None
    reward_models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    method: str = "magicore"
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    kind: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    offset: int = 0
    shard: str | None = None
    prompts: str = "default"
    temperature: float | None = 0.8
    top_p: float | None = 0.95
    max_tokens: int = 1000
    aggregation: str = "product"
    duplicates: str = "count"
    calibration: str = "batch"
    seed: int = 0
    deterministic: bool = False
    device: str = "auto"
    dtype: str = "auto"
    placement: str = "together"
    concurrency: int = 64
    cache: str | None = None
    budget: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least = {"max_tokens": 1, "concurrency": 1, "offset": 0}
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise InputError(f"{name} must be at least {minimum}, got {getattr(self, name)}")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit must be at least 1, got {self.limit}")
        refuse_keys({spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)})
        if self.shard is not None:
            Shard.read(self.shard)
        if self.temperature is not None and self.temperature < 0:
            raise InputError(f"temperature must not be negative, got {self.temperature}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p lies in (0, 1], got {self.top_p}")
        if self.kind is not None and self.kind not in KINDS:
            raise UnknownNameError(f"there is no answer kind {self.kind!r}; kinds: {', '.join(KINDS)}")
        if self.duplicates not in get_args(Duplicates):
            raise InputError(f"duplicates is {' or '.join(get_args(Duplicates))}, not {self.duplicates!r}")
        if self.placement not in get_args(Placement):
            raise InputError(f"placement is {', '.join(get_args(Placement))}, and {self.placement!r} is none")
        if self.calibration not in CALIBRATIONS and not Path(self.calibration).is_file():
            raise InputError(
                f"calibration is {', '.join(CALIBRATIONS)} or a saved file, and {self.calibration!r} is none"
            )

    @property
    def sampling(self) -> Sampling:
        """The sampling parameters of chains."""
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)


def load_config(path: str | Path | None, overrides: Mapping[str, Any]) -> RunConfig:
    """Defaults, then the TOML file, then ``overrides`` (only those that were given). Tables are merged key by key.

    Raises:
        InputError: the file cannot be read, is not TOML, or a value does not fit.
        UnknownNameError: it has a key that is none of :class:`RunConfig`'s.
    """
    values: dict[str, Any] = {}
    if path is not None:
        values = _read(Path(path))
    for name, value in overrides.items():
        values[name] = {**values.get(name, {}), **value} if isinstance(value, Mapping) else value
    known = {f.name: f for f in dataclasses.fields(RunConfig)}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownNameError(f"configuration{f' {path}' if path else ''} has no setting {name!r}{hint}")
        _check(name, value, str(known[name].type))
    return RunConfig(**values)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"configuration {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"configuration {path} is not TOML: {error}") from error


def _check(name: str, value: Any, declared: str) -> None:
    """Check a value against a field's declared type, as far as TOML's own types go."""
    if value is None and "None" in declared:
        return
    accepted: dict[str, tuple[type, ...]] = {
        "str": (str,),
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "Mapping": (Mapping,),
    }
    wanted = declared.split(" | ", maxsplit=1)[0].split("[", maxsplit=1)[0]
    if not isinstance(value, accepted[wanted]) or (isinstance(value, bool) and wanted != "bool"):
        given = "a table" if isinstance(value, Mapping) else repr(value)
        raise InputError(f"setting {name} takes {'a table' if wanted == 'Mapping' else wanted}, not {given}")


def config_toml(config: RunConfig) -> str:
    """The configuration as TOML; ``None`` values are left out. Keys are never part of a configuration."""
    plain: list[str] = []
    tables: list[str] = []
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if isinstance(value, Mapping):
            tables.extend(_table(f.name, value))
        elif value is not None:
            plain.append(f"{f.name} = {_value(value)}")
    return "\n".join([*plain, *tables]) + "\n"


def _table(name: str, table: Mapping[str, Any]) -> list[str]:
    if not table:
        return []
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [
        f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in nested and value is not None
    ]
    head = [f"\n[{name}]", *lines] if lines else []
    return head + [line for key, value in nested.items() for line in _table(f"{name}.{_key(key)}", value)]


def _key(key: str) -> str:
    return key if key and all(c.isalnum() or c in "-_" for c in key) and key.isascii() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in text)
    return f'"{escaped}"'
