"""From a model's name to a method: ``METHOD`` or ``METHOD:option=value,option=value``."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from difficulty.errors import DifficultyError
from magicore.errors import InputError, UnknownNameError
from magicore.methods import AnyMethod, make_method, method_names, method_options
from magicore.serve.failures import invalid, not_found


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """The method of a model's name, and the options in it; ``;`` separates them as ``,`` does.

    >>> split_name("magicore:k=8,router=random:rate=0.3")
    ('magicore', {'k': '8', 'router': 'random:rate=0.3'})

    Raises:
        InputError: An option is not of the form name=value.
    """
    method, _, rest = name.partition(":")
    options: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in rest.replace(";", ",").split(","))):
        option, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{part!r} in the model's name is no option: write {method}:name=value,name=value")
        options[option.strip()] = value.strip()
    return method.strip(), options


def choose(
    name: str, given: Mapping[str, Any], *, defaults: Mapping[str, Any], rewards: Collection[str], most: int
) -> AnyMethod:
    """The method that a request asks for.

    Args:
        name: The model's name.
        given: Options from the request's ``magicore`` object; they go over those in the name.
        defaults: The server's options, for every method that knows them.
        rewards: The reward models that are there: ``orm``, ``prm``.
        most: Completions that a request may take.

    Raises:
        Refusal: There is no such method here (404), or an option of it is wrong (400).
    """
    try:
        method, named = split_name(name)
        if method not in method_names():
            raise not_found(_unknown(method, rewards), param="model")
        known = method_options(method)
        options = {option: value for option, value in defaults.items() if option in known} | named | dict(given)
        made = make_method(method, **options)
    except (InputError, DifficultyError) as error:
        raise invalid(str(error), param="model" if not given else "magicore") from None
    if missing := sorted(made.needs - set(rewards)):
        raise not_found(
            f"method {method} needs an {' and a '.join(missing)} model, which this server has not", param="model"
        )
    _check_runnable(made)
    if made.completions[1] > most:
        raise invalid(
            f"{method} may take {made.completions[1]:,} completions as it is asked for, and {most:,} are allowed a "
            "request; ask for fewer chains or rounds",
            param="model",
            code="too_many_completions",
        )
    return made


def served(defaults: Mapping[str, Any], rewards: Collection[str]) -> dict[str, str]:
    """The methods that can be run with the reward models that are there, with a line on each."""
    found: dict[str, str] = {}
    for name, summary in method_names().items():
        known = method_options(name)
        made = make_method(name, **{option: value for option, value in defaults.items() if option in known})
        if made.needs <= set(rewards):
            found[name] = summary
    return found


def check_defaults(defaults: Mapping[str, Any]) -> None:
    """Refuse, when the server starts, options that no method knows or takes.

    Raises:
        UnknownNameError: No method has such an option.
        InputError: A value does not fit.
    """
    known = {option for method in method_names() for option in method_options(method)}
    for option in defaults:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownNameError(f"no method has an option {option!r}{hint}")
    served(defaults, ())


def _unknown(method: str, rewards: Collection[str]) -> str:
    there = served({}, rewards)
    near = difflib.get_close_matches(method, there, n=1)
    return f"there is no model {method!r}; " + (
        f"did you mean {near[0]!r}?" if near else f"models are methods: {', '.join(there)}"
    )


def _check_runnable(method: Any) -> None:
    """Refuse what needs a gold answer or labels, which no request has."""
    router = getattr(method, "router", None)
    if router is not None and "coarse_correct" in getattr(router, "needs", ()):
        raise invalid("the oracle router needs a gold answer, which a request has not", param="model")
    if getattr(method, "step_scores", None) == "oracle":
        raise invalid("oracle step scores need labelled solutions, which a request has not", param="model")
