"""Language models by name: ``provider[:name][#revision][@URL[,URL...]]`` (see :mod:`reward_models.names`).

A name's provider is looked up among the nicknames that are given (``[models.NICK]`` tables of a configuration file),
the built-in table below, and the entry points of installed packages in the group ``magicore.language_models``. An entry
point names a factory ``(name: ModelName, **options) -> LanguageModel``. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, cast

from magicore.errors import InputError, MissingExtraError, UnknownNameError
from magicore.llms.base import LanguageModel
from reward_models.names import ModelName, parse_model_name
from reward_models.turns import Turns

GROUP = "magicore.language_models"


class Provider(NamedTuple):
    """One line of the built-in table: where the factory is, and what to say of it in a list."""

    target: str
    summary: str


# One line a provider, in alphabetical order.
PROVIDERS: dict[str, Provider] = {
    "azure": Provider("magicore.llms.providers:azure", "an Azure OpenAI deployment, azure:DEPLOYMENT[@URL]"),
    "embedded": Provider(
        "magicore.llms.embedded:embedded",
        "SmolLM2-135M, trained on generated tasks, runs here; embedded:base is untouched",
    ),
    "hf": Provider("magicore.llms.local:local", "a Hugging Face model run here, hf:ID_OR_FOLDER[#REVISION]"),
    "openai": Provider("magicore.llms.providers:openai", "any OpenAI-compatible endpoint, openai:NAME[@URL[,URL...]]"),
    "recorded": Provider("magicore.llms.providers:recorded", "replays recorded responses, recorded:FILE"),
    "scripted": Provider("magicore.llms.providers:scripted", "answers by rule, for trials; scripted:MODULE:FUNCTION"),
}

_RUN_OPTIONS = ("device", "dtype", "deterministic", "turns")
_EXTRAS = dict.fromkeys(("torch", "transformers", "gguf", "accelerate", "jinja2", "safetensors", "tokenizers"), "local")

Factory = Callable[..., LanguageModel]


def open_model(
    name: str,
    *,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    device: str | None = None,
    dtype: str | None = None,
    deterministic: bool | None = None,
    turns: Turns | None = None,
    **options: Any,
) -> LanguageModel:
    """Open a language model by name.

    ``models`` holds the tables of nicknames, each with a ``name`` (and ``urls``) and options of its provider.
    ``device``, ``dtype`` and ``deterministic`` are a run's, and go to models that run here; a table's own come first.
    ``turns`` is the floor that models of one device share; a model whose table names a device of its own has no part
    in it.
    Other ``options`` are the provider's.

    Raises:
        UnknownNameError: No such model, with near names.
        InputError: The name cannot be read, or the provider knows no such option.
        MissingExtraError: A package is not installed.
        AuthenticationFailed: The environment variable that should hold the key is not set.
    """
    tables = models or {}
    if name in tables:
        parsed, table = _nickname(name, tables[name])
        options = {**table, **options}
    else:
        parsed = _parse(name)
    factory = _factory(parsed, tables)
    known = _keywords(factory)
    floor = None if "device" in options else turns
    for option, value in zip(_RUN_OPTIONS, (device, dtype, deterministic, floor), strict=True):
        if value is not None and known is not None and option in known:
            options.setdefault(option, value)
    if known is not None:
        check_options(name, options, known)
    try:
        return factory(parsed, **options)
    except ModuleNotFoundError as error:
        raise _missing(error, name) from error


def model_names(models: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, str]:
    """Every provider and nickname with a one-line summary, sorted; imports nothing."""
    found = {point.name: _origin(point) for point in entry_points(group=GROUP)}
    found |= {name: provider.summary for name, provider in PROVIDERS.items()}
    found |= {nick: f"{table.get('name', '?')}, a nickname" for nick, table in (models or {}).items()}
    return dict(sorted(found.items()))


def full_name(nick: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """The name that a nickname stands for, as stores and results have it.

    Raises:
        InputError: Its table names no model.
    """
    return str(_nickname(nick, models[nick])[0])


def check_options(name: str, options: Iterable[str], known: Collection[str]) -> None:
    """Refuse an option that is not known.

    Raises:
        InputError: Names it, and a near one.
    """
    if strange := sorted(set(options) - set(known)):
        near = difflib.get_close_matches(strange[0], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(sorted(known)) or 'none'}"
        raise InputError(f"model {name!r}: there is no option {strange[0]!r}; {hint}")


def load_attribute(target: str, name: str) -> Any:
    """Import ``module:attribute``, which must be callable; ``name`` is the model it is for.

    Raises:
        InputError: The module has no such callable.
        ModuleNotFoundError: There is no such module.
    """
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"model {name!r}: {module} has no {path!r}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"model {name!r}: {target} cannot be called")
    return found


def _nickname(nick: str, table: Mapping[str, Any]) -> tuple[ModelName, dict[str, Any]]:
    """What a nickname's table stands for: a full name, and the options that remain."""
    options = dict(table)
    if "api_key" in options:
        raise InputError(
            f"[models.{nick}] holds a key, which would be saved with the results; name its variable by api_key_env"
        )
    target, urls = str(options.pop("name", "")), options.pop("urls", None)
    if not target:
        raise InputError(f'[models.{nick}] has no name; write name = "provider:model"')
    name = _parse(target, f"[models.{nick}]: ")
    if urls is None:
        return name, options
    if name.urls:
        raise InputError(f"[models.{nick}] gives addresses in its name and in urls; give them once")
    given = (urls,) if isinstance(urls, str) else tuple(map(str, urls))
    try:
        return ModelName(provider=name.provider, name=name.name, revision=name.revision, urls=given), options
    except ValueError as error:
        raise InputError(f"[models.{nick}]: {error}") from None


def _parse(text: str, where: str = "") -> ModelName:
    try:
        return parse_model_name(text)
    except ValueError as error:
        hint = f"; a Hugging Face model is hf:{text}" if re.fullmatch(r"[\w.-]+/[\w.-]+(#\S+)?", text) else ""
        raise InputError(f"{where}{error}{hint}") from None


def _factory(name: ModelName, models: Mapping[str, Any]) -> Factory:
    if provider := PROVIDERS.get(name.provider):
        return _load(provider.target, str(name))
    if point := _entry_point(name.provider):
        return _load(point.value, str(name))
    known = list(model_names(models))
    near = difflib.get_close_matches(name.provider.lower(), known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise UnknownNameError(f"no language model is called {str(name)!r}: {hint}")


def _entry_point(provider: str) -> EntryPoint | None:
    points = {point.value: point for point in entry_points(group=GROUP, name=provider)}
    if len(points) > 1:
        offered = "; ".join(sorted(_origin(point) for point in points.values()))
        raise InputError(f"several packages offer the language model {provider!r}: {offered}")
    return next(iter(points.values()), None)


def _load(target: str, name: str) -> Factory:
    try:
        return cast("Factory", load_attribute(target, name))
    except ModuleNotFoundError as error:
        raise _missing(error, name) from error


def _missing(error: ModuleNotFoundError, name: str) -> MissingExtraError:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    remedy = f"pip install 'magicore[{extra}]'" if extra else f"the module {error.name!r} is not installed here"
    return MissingExtraError(f"model {name!r} needs {package}: {remedy}")


def _keywords(factory: Factory) -> frozenset[str] | None:
    """The options a factory knows; ``None`` if it takes any (and checks them itself)."""
    parameters = list(inspect.signature(factory).parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


def _origin(point: EntryPoint) -> str:
    return f"{point.value}, from {point.dist.name} {point.dist.version}" if point.dist else point.value
