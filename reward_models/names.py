"""The one grammar of model names, for language models and reward models alike.

``provider[:name][#revision][@URL[,URL...]]``

* The provider ends at the first colon; a bare word is a provider with an empty name.
* URLs begin at the last ``@`` that is followed by ``http(s)://``, ``vllm+http(s)://`` or ``sglang+http(s)://``, so
  names may hold ``:`` and ``@``. Several URLs, separated by commas, are replicas of one server.
* The revision follows the last ``#`` before the URLs.

    math-shepherd                                     a family's default checkpoint, loaded here
    math-shepherd:./my-checkpoint                     a folder
    hf:Qwen/Qwen2.5-1.5B-Instruct#main                a Hub id at a revision
    openai:my-model@http://localhost:8000/v1          an endpoint
    qwen2.5-math-prm-7b@vllm+http://a:8000,vllm+http://b:8000
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Engine = Literal["local", "vllm", "sglang", "http"]

_SCHEME = r"(?:(?:vllm|sglang)\+)?https?://"
_URL_AT = re.compile(rf"@(?={_SCHEME})", re.IGNORECASE)
_URL_COMMA = re.compile(rf",(?={_SCHEME})", re.IGNORECASE)
_ANY_URL = re.compile(r"@([A-Za-z][A-Za-z0-9+.\-]*)://")
_PROVIDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-+]*")
_SECRET = re.compile(
    r"https?://[^/\s,?#]*@|https?://\S*[?&][\w-]*(?:key|token|secret|password|sig|signature)=", re.IGNORECASE
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}")
NO_VARIABLE = (
    "api_key_env takes the name of an environment variable; what was given is none, or a key, and is not repeated"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class ModelName:
    """A parsed model name; ``str()`` gives the text back.

    Attributes:
        provider: What the registry knows: a family, a provider of language models, a nickname.
        name: A Hub id, a path, an endpoint's model id; empty where the provider's default is meant.
        revision: Branch, tag or commit of a checkpoint.
        urls: The replicas as written, scheme prefix included.
    """

    provider: str
    name: str = ""
    revision: str | None = None
    urls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _PROVIDER.fullmatch(self.provider):
            raise ValueError(
                f"model name {self.provider!r}: what stands before the first colon is letters, digits and '._-+'"
            )
        shown = self.name or self.provider
        if _CONTROL.search(self.name) or self.name != self.name.strip():
            raise ValueError(f"model name {shown!r}: control characters and outer white space are not allowed")
        if self.revision is None and "#" in self.name:
            raise ValueError(f"model name {shown!r}: '#' begins a revision, so a name without one cannot hold it")
        if self.revision is not None and not re.fullmatch(r"[^\s#@]+", self.revision):
            raise ValueError(f"model name {shown!r}: the revision after '#' is empty or holds a space, '#' or '@'")
        for url in self.urls:
            _check_url(url, shown)
        if len({_engine(url) for url in self.urls}) > 1:
            raise ValueError(f"model name {shown!r}: its URLs are of different engines; give one kind of server")

    def __str__(self) -> str:
        text = f"{self.provider}:{self.name}" if self.name else self.provider
        if self.revision is not None:
            text += f"#{self.revision}"
        return f"{text}@{','.join(self.urls)}" if self.urls else text

    @property
    def engine(self) -> Engine:
        """Who computes: this process (no URL), vLLM, SGLang, or a plain HTTP server."""
        return _engine(self.urls[0]) if self.urls else "local"

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The URLs to connect to, without the engine's prefix and without a slash at the end."""
        return tuple(re.sub(r"^(?:vllm|sglang)\+", "", url, flags=re.IGNORECASE).rstrip("/") for url in self.urls)


def parse_model_name(text: str) -> ModelName:
    """Read a model name.

    Raises:
        ValueError: The text does not follow the grammar; one sentence says where.
    """
    text = text.strip()
    if not text:
        raise ValueError("a model name is empty; write provider:name, e.g. openai:gpt-4o-mini")
    head = text
    urls: tuple[str, ...] = ()
    marks = [match.start() for match in _URL_AT.finditer(text)]
    if marks:
        head, urls = text[: marks[-1]], tuple(url.strip() for url in _URL_COMMA.split(text[marks[-1] + 1 :]))
    elif unknown := _ANY_URL.search(text):
        raise ValueError(
            f"model name {text!r}: '{unknown[1]}://' is not known; URLs begin with http(s)://, vllm+http(s):// or "
            "sglang+http(s)://"
        )
    head, hash_sign, revision = head.rpartition("#") if "#" in head else (head, "", "")
    provider, colon, name = head.partition(":")
    if colon and not name:
        raise ValueError(f"model name {text!r}: nothing follows the colon; write {provider}:NAME or {provider} alone")
    return ModelName(provider=provider, name=name, revision=revision if hash_sign else None, urls=urls)


def is_variable(text: str) -> bool:
    """Whether a text can name an environment variable, and is not by mistake the key that one should hold: no part of
    it is a long mix of letters and digits.

    >>> is_variable("OPENAI_API_KEY"), is_variable("sk-proj-1a2b"), is_variable("hf_abcdefgh12345678")
    (True, False, False)
    """
    return bool(_VARIABLE.fullmatch(text)) and not any(map(_RANDOM.fullmatch, text.split("_")))


def holds_secret(text: str) -> bool:
    """Whether a text has a URL with a user name, a password, or a key among its parameters."""
    return _SECRET.search(text) is not None


def _engine(url: str) -> Engine:
    lowered = url.lower()
    if lowered.startswith("vllm+"):
        return "vllm"
    return "sglang" if lowered.startswith("sglang+") else "http"


def _check_url(url: str, shown: str) -> None:
    """A URL has a known scheme and a host, and carries no password: names are written to logs and result files."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"model name {shown!r}: a URL cannot be read ({error})") from None
    if parts.password is not None or parts.username is not None or holds_secret(url):
        raise ValueError(
            f"model name {shown!r}: a URL holds a key, user name or password; name an environment variable by "
            "api_key_env"
        )
    if not re.match(_SCHEME, url, re.IGNORECASE) or not host or re.search(r"[\s,]", url):
        raise ValueError(f"model name {shown!r}: {url!r} is no http(s)://, vllm+http(s):// or sglang+http(s):// URL")
