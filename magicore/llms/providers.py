"""From a parsed name to a model, for the providers that need no heavy packages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from magicore.errors import AuthenticationFailed, InputError
from magicore.llms.balance import Balanced
from magicore.llms.base import LanguageModel
from magicore.llms.openai_compatible import EndpointOptions, OpenAICompatible
from magicore.llms.profile import EndpointProfile
from magicore.llms.recorded import RecordedModel
from magicore.llms.registry import check_options, load_attribute
from magicore.llms.rules import answer_by_rule
from magicore.llms.scripted import ScriptedModel
from reward_models.names import NO_VARIABLE, ModelName, is_variable

AZURE_VERSION = "2024-10-21"
_AZURE_HOST = re.compile(r"\.(azure\.com|azure\.us|azure\.cn|azure-api\.net)$")
_OPTIONS = frozenset(field.name for field in fields(EndpointOptions)) - {"azure_version"}


def openai(
    name: ModelName, *, api_key_env: str | None = None, api_key: str | None = None, **options: Any
) -> LanguageModel:
    """An OpenAI-compatible endpoint, or several replicas of one; options as :class:`EndpointOptions`.

    OpenAI's own address gets ``OPENAI_API_KEY``; any other gets a key only if ``api_key_env`` names its variable.

    Raises:
        InputError: The name names no model, the address is of a scoring server, or there is no such option.
        AuthenticationFailed: The key's variable is not set.
    """
    if not name.name:
        raise InputError(
            "an endpoint's model needs a name: openai:gpt-4o-mini, openai:my-model@http://localhost:8000/v1"
        )
    if name.urls and name.engine != "http":
        raise InputError(f"model {str(name)!r}: language models are reached at plain http(s):// addresses")
    check_options(str(name), options, _OPTIONS | {"api_key_env"})
    key = api_key or _key(name, api_key_env or (None if name.urls else "OPENAI_API_KEY"))
    return _endpoints(name, name.endpoints or (None,), key, options)


def azure(
    name: ModelName,
    *,
    api_key_env: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
    **options: Any,
) -> LanguageModel:
    """An Azure OpenAI deployment; options as :class:`EndpointOptions`.

    The address is the resource's, ``AZURE_OPENAI_ENDPOINT`` unless given. ``AZURE_OPENAI_API_KEY`` goes to no other
    host than Azure's, unless ``api_key_env`` names it.

    Raises:
        InputError: No deployment or no address is given, or there is no such option.
        AuthenticationFailed: The key's variable is not set.
    """
    ambient = os.environ.get("AZURE_OPENAI_ENDPOINT")
    urls = name.endpoints or ((ambient,) if ambient else ())
    if not name.name or not urls:
        raise InputError(
            "an Azure model needs a deployment and an address: azure:my-deployment@https://my-resource.openai.azure.com"
            ", or set AZURE_OPENAI_ENDPOINT"
        )
    check_options(str(name), options, _OPTIONS | {"api_key_env", "api_version"})
    if not name.urls or all(_AZURE_HOST.search(urlsplit(url).hostname or "") for url in urls):
        api_key_env = api_key_env or "AZURE_OPENAI_API_KEY"
    options["azure_version"] = api_version or os.environ.get("OPENAI_API_VERSION") or AZURE_VERSION
    return _endpoints(name, urls, api_key or _key(name, api_key_env), options)


def recorded(name: ModelName) -> LanguageModel:
    """Recorded responses in a file.

    Raises:
        InputError: No file is named, or it cannot be read.
    """
    if not name.name:
        raise InputError("a recorded model needs its file: recorded:responses.jsonl")
    return RecordedModel(name.name, name=str(name))


def scripted(name: ModelName) -> LanguageModel:
    """``scripted`` is the built-in rule, ``scripted:MODULE:FUNCTION`` a script of the user's.

    Raises:
        InputError: There is no such function.
    """
    if not name.name:
        return ScriptedModel(answer_by_rule, name=str(name), logprobs=True)
    if ":" not in name.name:
        raise InputError(f"model {str(name)!r}: write scripted:MODULE:FUNCTION, e.g. scripted:my_scripts:answer")
    try:
        script = load_attribute(name.name, str(name))
    except ModuleNotFoundError as error:
        raise InputError(
            f"model {str(name)!r}: there is no module {error.name!r}; is its folder on PYTHONPATH?"
        ) from None
    return ScriptedModel(script, name=str(name), logprobs=True)


def _endpoints(
    name: ModelName, urls: Sequence[str | None], key: str | None, options: Mapping[str, Any]
) -> LanguageModel:
    """One endpoint for each address, balanced where there are several, with one profile."""
    profile = EndpointProfile()
    replicas = [
        OpenAICompatible(
            name=str(name),
            model=name.name,
            url=url,
            api_key=key,
            profile=profile,
            options=EndpointOptions(**options),
        )
        for url in urls
    ]
    return replicas[0] if len(replicas) == 1 else Balanced(replicas)


def _key(name: ModelName, variable: str | None) -> str | None:
    """The key in an environment variable; ``None`` if no variable is meant."""
    if variable is None:
        return None
    if not is_variable(variable):
        raise InputError(f"{name}: {NO_VARIABLE}")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AuthenticationFailed(
            f"the environment variable {variable} holds no API key; set it, or name another by api_key_env",
            model=str(name),
        )
    return key
