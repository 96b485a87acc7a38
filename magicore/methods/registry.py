"""Methods by name."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from difficulty import Router, router
from magicore.errors import InputError, UnknownNameError
from magicore.methods.base import AnyMethod

METHODS: dict[str, tuple[str, str]] = {
    "best-of-k": ("magicore.methods.best_of_k:BestOfK", "the chain with the largest outcome score"),
    "cot": ("magicore.methods.cot:ChainOfThought", "one sampled chain"),
    "debate": ("magicore.methods.debate:Debate", "agents read each other's solutions and answer again, majority"),
    "magicore": ("magicore.methods.magicore:Magicore", "aggregate easy questions, refine hard ones"),
    "magicore-published": (
        "magicore.methods.magicore_published:MagicorePublished",
        "the same as the published code runs it, faults included",
    ),
    "mars": ("magicore.methods.mars:Mars", "author, independent reviewers, meta-reviewer, rebuttal"),
    "peer-review": ("magicore.methods.peer_review:PeerReview", "agents review each other and revise, majority"),
    "sc+prm": ("magicore.methods.sc_prm:SelfConsistencyPRM", "majority weighted by process scores"),
    "self-consistency": ("magicore.methods.self_consistency:SelfConsistency", "majority of k chains"),
    "self-correction": ("magicore.methods.self_correction:SelfCorrection", "answer, critique, corrected answer"),
    "self-refine": ("magicore.methods.self_refine:SelfRefine", "one chain, refined without reward models"),
    "self-refine+sc": ("magicore.methods.self_refine:SelfRefineSC", "k chains, each so refined, then majority"),
    "self-reflection": ("magicore.methods.self_reflection:SelfReflection", "one chain, one pass of revising it"),
    "weighted-self-consistency": (
        "magicore.methods.weighted_self_consistency:WeightedSelfConsistency",
        "majority weighted by outcome + process scores",
    ),
}
"""Name -> where its class is, and one line on what it does."""


def method_names() -> dict[str, str]:
    """Every method with its one-line summary."""
    return {name: summary for name, (_, summary) in METHODS.items()}


def method_class(name: str) -> Any:
    """The class behind a method's name.

    Raises:
        UnknownNameError: there is no such method; near names are suggested.
    """
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"methods: {', '.join(METHODS)}"
        raise UnknownNameError(f"there is no method {name!r}; {hint}")
    module, _, attribute = METHODS[name][0].partition(":")
    return getattr(importlib.import_module(module), attribute)


def method_options(name: str) -> dict[str, dataclasses.Field[Any]]:
    """The options of a method: its dataclass fields."""
    return {f.name: f for f in dataclasses.fields(method_class(name))}


def make_method(name: str, **options: Any) -> AnyMethod:
    """A method by name. Options may be strings, as from a command line; they are checked against the field's type.

    Raises:
        UnknownNameError: there is no such method or option.
        InputError: an option's value does not fit.
    """
    cls = method_class(name)
    known = method_options(name)
    types_ = get_type_hints(cls)
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
            raise UnknownNameError(f"method {name} has no option {option!r}; {hint}")
        values[option] = _coerce(name, option, value, types_[option])
    made: AnyMethod = cls(**values)
    return made


def _coerce(method: str, option: str, value: Any, wanted: Any) -> Any:
    if wanted is Router:
        if isinstance(value, str):
            return parse_router(value)
        if callable(value):
            return value
        raise InputError(f"method {method}: {option} is a router or a router's name, not {value!r}")
    if get_origin(wanted) is Literal:
        if value not in get_args(wanted):
            raise InputError(f"method {method}: {option} is one of {', '.join(get_args(wanted))}, not {value!r}")
        return value
    if get_origin(wanted) is tuple:
        return _names(method, option, value)
    if get_origin(wanted) in (Union, types.UnionType):
        wanted = next(part for part in get_args(wanted) if part is not type(None))
        if value is None:
            return None
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return value
    return _parse(method, option, value, wanted)


def _names(method: str, option: str, value: Any) -> tuple[str, ...]:
    """A list of names, also as ``one,two``."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise InputError(f"method {method}: {option} takes names, as in one,two, not {value!r}")


def _parse(method: str, option: str, value: Any, wanted: Any) -> Any:
    try:
        if wanted is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if wanted in (int, float) and not (isinstance(value, float) and not value.is_integer() and wanted is int):
            return wanted(value)
    except (KeyError, ValueError, TypeError, OverflowError):
        pass
    raise InputError(f"method {method}: {option} takes {getattr(wanted, '__name__', wanted)}, not {value!r}")


def parse_router(text: str) -> Router:
    """A router by name, with options after a colon: ``random:rate=0.3``, ``magicore:z_threshold=0.5,...``.

    Raises:
        InputError: an option is not of the form name=number.
        UnknownRouterError, RouterOptionError: no such router or option.
    """
    name, _, rest = text.partition(":")
    options: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        try:
            options[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"router option {part!r} is not of the form name=number, as in random:rate=0.3")
    return router(name, **options)
