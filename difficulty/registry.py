"""Routers by name."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from difficulty.errors import RouterOptionError, UnknownRouterError
from difficulty.published import PublishedRouter
from difficulty.routers import (
    Condition1Router,
    Condition2Router,
    EasyRouter,
    FunctionRouter,
    HardRouter,
    MagicoreRouter,
    OracleRouter,
    RandomRouter,
    Router,
    SelfVerificationRouter,
    StatedConfidenceRouter,
)

RouterFactory = Callable[..., Router]
F = TypeVar("F", bound=RouterFactory)

_FACTORIES: dict[str, RouterFactory] = {
    "condition-1": Condition1Router,
    "condition-2": Condition2Router,
    "easy": EasyRouter,
    "hard": HardRouter,
    "magicore": MagicoreRouter,
    "oracle": OracleRouter,
    "published": PublishedRouter,
    "random": RandomRouter,
    "self-verification": SelfVerificationRouter,
    "stated-confidence": StatedConfidenceRouter,
}


def router_names() -> list[str]:
    """The registered names, sorted."""
    return sorted(_FACTORIES)


def register_router(name: str) -> Callable[[F], F]:
    """Decorator that registers a factory (a class or function that returns a router) under a name.

    Raises:
        RouterOptionError: The name is taken, empty or contains a colon.
    """
    if not name or ":" in name:
        raise RouterOptionError(f"{name!r} cannot be a router's name: it must be non-empty and without a colon")
    if name in _FACTORIES:
        raise RouterOptionError(f"there is already a router named {name!r}")

    def register(factory: F) -> F:
        _FACTORIES[name] = factory
        return factory

    return register


def router(name: str, **options: object) -> Router:
    """Make a router.

    Args:
        name: A registered name, or ``module:attribute``: a function of the evidence that returns true for easy, a
            router, or a router class.
        options: What the router takes: ``z_threshold`` and ``confidence_threshold`` (magicore), ``rate`` (random),
            ``threshold`` (stated-confidence) ...

    Raises:
        UnknownRouterError: No such router; the message says what is near.
        RouterOptionError: The router does not take an option, or not that value.
    """
    if ":" in name:
        return _imported(name, options)
    if name not in _FACTORIES:
        near = difflib.get_close_matches(name, _FACTORIES, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(router_names())}"
        raise UnknownRouterError(f"no router is named {name!r}: {hint}")
    return _made(name, _FACTORIES[name], options)


def _imported(name: str, options: Mapping[str, object]) -> Router:
    module_name, _, attribute = name.partition(":")
    try:
        target = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, ValueError) as error:
        raise UnknownRouterError(f"router {name!r}: cannot import {module_name!r}: {error}") from error
    except AttributeError as error:
        raise UnknownRouterError(f"router {name!r}: module {module_name!r} has no {attribute!r}") from error
    if isinstance(target, type):
        return _made(name, cast("type[Router]", target), options)
    if not callable(target):
        raise UnknownRouterError(f"router {name!r} is a {type(target).__name__}, which cannot be called")
    if options:
        raise RouterOptionError(f"router {name!r} is a ready-made object and takes no options: got {_listed(options)}")
    return target if isinstance(target, Router) else FunctionRouter(function=target, name=name)


def _made(name: str, factory: RouterFactory, options: Mapping[str, object]) -> Router:
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        known = list(inspect.signature(factory).parameters)
        takes = f"it takes {', '.join(known)}" if known else "it takes no options"
        raise RouterOptionError(f"router {name!r}: {error}; {takes}") from error
    made = factory(**options)
    if not isinstance(made, Router):
        raise UnknownRouterError(f"router {name!r}: {type(made).__name__} has no name, needs and call")
    return made


def _listed(options: Mapping[str, object]) -> str:
    return ", ".join(sorted(options))
