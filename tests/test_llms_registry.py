"""Language models by name: what a name opens, which key goes where, and what is said about one that opens nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_endpoint import completion, serving
from magicore.errors import AuthenticationFailed, InputError, MissingExtraError, UnknownNameError
from magicore.llms import registry
from magicore.llms.balance import Balanced
from magicore.llms.base import LanguageModel, Request, messages
from magicore.llms.openai_compatible import OpenAICompatible
from magicore.llms.recorded import RecordedModel
from magicore.llms.registry import model_names, open_model
from magicore.llms.scripted import ScriptedModel
from magicore.types import CallKey

REQUEST = Request(messages=messages(("user", "What is 2 + 3?")), key=CallKey(problem="p", role="solver"))
RUN = {"device": "auto", "dtype": "auto", "deterministic": False}


def authorisation(name: str, **options: Any) -> str:
    """The Authorization header that a model of this name sends to ``URL`` in it."""
    with serving([completion("5")]) as endpoint:
        tables = options.pop("models", None)
        if tables:
            tables = {nick: {**table, "urls": [endpoint.url]} for nick, table in tables.items()}
        model = open_model(name.replace("URL", endpoint.url), models=tables, **options)

        async def run() -> None:
            await model.generate(REQUEST)
            await model.aclose()

        asyncio.run(run())
        return endpoint.headers[0]["authorization"]


def test_a_custom_address_is_never_sent_openais_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("MY_KEY", "sk-mine")
    assert "sk-openai" not in authorisation("openai:m@URL")
    assert authorisation("openai:m@URL", api_key_env="MY_KEY") == "Bearer sk-mine"
    assert authorisation("openai:m@URL", api_key_env="OPENAI_API_KEY") == "Bearer sk-openai"
    assert authorisation("nick", models={"nick": {"name": "openai:m", "api_key_env": "MY_KEY"}}) == "Bearer sk-mine"


def test_openais_own_address_wants_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY holds no API key"):
        open_model("openai:gpt-4o-mini")
    with pytest.raises(AuthenticationFailed, match="OTHER holds no API key"):
        open_model("openai:m@http://localhost:1/v1", api_key_env="OTHER")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    model = open_model("openai:gpt-4o-mini", **RUN)
    assert isinstance(model, OpenAICompatible)
    assert (model.name, model.model, model.url) == ("openai:gpt-4o-mini", "gpt-4o-mini", "https://api.openai.com/v1")


def test_azures_key_goes_to_azure_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    model = open_model("azure:my-deployment@https://me.openai.azure.com")
    assert isinstance(model, OpenAICompatible)
    assert model._key == "azure-key"
    elsewhere = open_model("azure:my-deployment@https://azure.com.example")
    assert isinstance(elsewhere, OpenAICompatible)
    assert elsewhere._key == ""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com")
    ambient = open_model("azure:my-deployment")
    assert isinstance(ambient, OpenAICompatible)
    assert (ambient.url, ambient.options.azure_version) == ("https://me.openai.azure.com", "2024-10-21")


def test_an_azure_deployment_is_called_at_its_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "azure-key")
    with serving([completion("5")]) as endpoint:
        address = endpoint.url.removesuffix("/v1")
        model = open_model(f"azure:dep@{address}", api_key_env="MY_KEY", api_version="2024-10-21")

        async def run() -> None:
            await model.generate(REQUEST)
            await model.aclose()

        asyncio.run(run())
        assert endpoint.paths == ["/openai/deployments/dep/chat/completions?api-version=2024-10-21"]
        assert endpoint.headers[0]["api-key"] == "azure-key"


def test_several_addresses_are_balanced_and_share_what_is_learned() -> None:
    model = open_model("openai:m@http://localhost:1/v1,http://localhost:2/v1")
    assert isinstance(model, Balanced)
    assert model.name == "openai:m@http://localhost:1/v1,http://localhost:2/v1"
    replicas = [replica.model for replica in model._replicas]
    assert [replica.url for replica in replicas if isinstance(replica, OpenAICompatible)] == [
        "http://localhost:1/v1",
        "http://localhost:2/v1",
    ]
    assert all(getattr(replica, "profile", None) is model.profile for replica in replicas)


def test_a_nickname_is_a_name_with_options() -> None:
    table = {
        "name": "openai:my/model:8b",
        "urls": ["http://localhost:1/v1"],
        "extra_body": {"top_k": 20},
        "context": 8192,
    }
    model = open_model("big", models={"big": table}, **RUN)
    assert isinstance(model, OpenAICompatible)
    assert model.name == "openai:my/model:8b@http://localhost:1/v1"
    assert (model.model, model.options.extra_body, model.options.context) == ("my/model:8b", {"top_k": 20}, 8192)
    plain = open_model("openai:my/model:8b@http://localhost:1/v1")
    assert model.fingerprint != plain.fingerprint == ""


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, r"\[models.nick\] has no name"),
        ({"name": "openai:m@http://a/v1", "urls": ["http://b/v1"]}, "give them once"),
        ({"name": "openai:m", "urls": ["ftp://b"]}, r"\[models.nick\].*ftp://b"),
        ({"name": "openai:m", "api_key": "sk-secret"}, "name its variable by api_key_env"),
        (
            {"name": "openai:m", "urls": "http://b/v1", "extra_bdy": {}},
            "no option 'extra_bdy'; did you mean 'extra_body'",
        ),
        ({"name": "openai:m", "urls": "http://b/v1", "context": "8k"}, "context is a whole number of tokens above 0"),
        ({"name": "scripted", "temperature": 1}, "there is no option 'temperature'; it knows none"),
    ],
)
def test_a_table_that_is_wrong(table: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        open_model("nick", models={"nick": table})
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("opnai:gpt", UnknownNameError, "no language model is called 'opnai:gpt': did you mean openai?"),
        ("recordd:x", UnknownNameError, "did you mean recorded?"),
        ("nonsense", UnknownNameError, "there are azure, embedded, hf, openai, recorded, scripted"),
        ("Qwen/Qwen2.5-1.5B-Instruct", InputError, "a Hugging Face model is hf:Qwen/Qwen2.5-1.5B-Instruct"),
        ("", InputError, "a model name is empty"),
        ("openai", InputError, "an endpoint's model needs a name: openai:gpt-4o-mini"),
        ("openai:m@vllm+http://a:1", InputError, "reached at plain http"),
        ("azure:m", InputError, "needs a deployment and an address"),
        ("recorded", InputError, "recorded:responses.jsonl"),
        ("scripted:no_such_module:f", InputError, "there is no module 'no_such_module'"),
        ("scripted:json:no_such_function", InputError, "json has no 'no_such_function'"),
        ("scripted:json:__name__", InputError, "cannot be called"),
        ("scripted:json", InputError, "write scripted:MODULE:FUNCTION"),
    ],
)
def test_a_name_that_opens_nothing_is_answered_in_one_sentence(name: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as caught:
        open_model(name, **RUN)
    assert says in str(caught.value)


def test_names_that_need_no_server(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"problem": "p", "role": "solver", "index": 0, "text": "5"}\n')
    model = open_model(f"recorded:{tmp_path / 'r.jsonl'}", **RUN)
    assert isinstance(model, RecordedModel)
    asyncio.run(model.aclose())
    assert isinstance(open_model("scripted", **RUN), ScriptedModel)


def test_a_script_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_scripts.py").write_text("def answer(request, index):\n    return f'sample {index}'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    model = open_model("scripted:my_scripts:answer", **RUN)
    [one] = asyncio.run(model.generate(REQUEST)).completions
    assert one.text == "sample 0"


class _Point:
    """An entry point as :func:`importlib.metadata.entry_points` gives it."""

    dist = None

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_Point]]:
    """Entry points of packages that are not there."""
    points: list[_Point] = []

    def found(*, group: str, name: str | None = None) -> list[_Point]:
        return [point for point in points if group == registry.GROUP and name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", found)
    (tmp_path / "plug_in.py").write_text(
        "from magicore.llms.scripted import ScriptedModel\n"
        "def make(name, *, loud=False):\n    return ScriptedModel(lambda *_: name.name, name=str(name))\n"
        "def needs_torch(name):\n    import torchx_that_is_absent\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield points
    sys.modules.pop("plug_in", None)


def test_a_model_from_another_package(installed: list[_Point]) -> None:
    installed.append(_Point("mine", "plug_in:make"))
    model = open_model("mine:thing", loud=True, **RUN)
    assert model.name == "mine:thing"
    assert model_names()["mine"] == "plug_in:make"
    with pytest.raises(InputError, match="no option 'lod'; did you mean 'loud'"):
        open_model("mine:thing", lod=True)
    with pytest.raises(UnknownNameError, match="did you mean mine"):
        open_model("mien:thing")


def test_two_packages_that_offer_one_name(installed: list[_Point]) -> None:
    installed += [_Point("mine", "plug_in:make"), _Point("mine", "other:make")]
    with pytest.raises(InputError, match="several packages offer the language model 'mine': other:make; plug_in:make"):
        open_model("mine:thing")


def test_a_missing_package_is_named(installed: list[_Point], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.append(_Point("mine", "plug_in:needs_torch"))
    with pytest.raises(MissingExtraError, match="'torchx_that_is_absent' is not installed here"):
        open_model("mine:x")
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in [name for name in sys.modules if name.startswith("magicore.llms.local")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtraError, match=r"needs torch: pip install 'magicore\[local\]'"):
        open_model("hf:some/model")


def test_the_list_of_names_imports_nothing_heavy() -> None:
    names = model_names({"big": {"name": "openai:m"}})
    assert list(names) == ["azure", "big", "embedded", "hf", "openai", "recorded", "scripted"]
    assert names["big"] == "openai:m, a nickname"


def test_every_builtin_provider_is_there() -> None:
    pytest.importorskip("torch")
    for name, provider in registry.PROVIDERS.items():
        assert callable(registry.load_attribute(provider.target, name))


def test_what_opens_is_a_language_model() -> None:
    assert isinstance(open_model("scripted"), LanguageModel)
    assert isinstance(open_model("openai:m@http://localhost:1/v1"), LanguageModel)
