"""Any endpoint that speaks OpenAI's chat completions, through the openai SDK: ``openai:NAME[@URL,...]``, ``azure:...``.

Endpoints differ in what they take and what they leave out. A parameter that is refused is left out from then on and
reported once, unless what was asked depends on it; what comes back is read field by field
(:mod:`magicore.llms.replies`) and remembered (:mod:`magicore.llms.profile`). Retrying, topping up and limiting are
:mod:`magicore.llms.sampler`'s; the SDK's own retries are off.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from magicore.errors import CapabilityError, InputError
from magicore.llms.base import Generation, Message, Request, Traits
from magicore.llms.faults import connection_failed, refused_parameters, status_error, unreadable
from magicore.llms.identity import request_seed
from magicore.llms.profile import EndpointProfile
from magicore.llms.replies import UnreadableReply, read_reply
from magicore.llms.room import Room
from magicore.llms.streams import gather_stream
from magicore.llms.transport import pooled_client, post_json
from reward_models.names import holds_secret

if TYPE_CHECKING:
    import httpx2
    import openai

OPENAI_URL = "https://api.openai.com/v1"
STREAM_FROM_TOKENS = 4096
"""Longer completions are streamed, so that the idle timeout does not cut a long chain."""
_CONNECT_TIMEOUT_S = 20.0
_NO_KEY = "none"  # the SDK wants a key, and so do some servers that check none
_CONTINUES_FINAL_MESSAGE = {"continue_final_message": True, "add_generation_prompt": False}
_SERVERS_THAT_CONTINUE = frozenset({"vllm", "sglang"})


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """How to talk to an endpoint.

    Attributes:
        extra_body: Further fields of every request, such as ``{"top_k": 20}``.
        idle_timeout: Seconds without a sign of life after which a call is given up. There is no total limit.
        stream: Whether to stream; by default only completions of more than 4,096 tokens.
        prefill: Whether the endpoint continues an assistant message; by default it is asked what server it is, once.
        max_n: The most samples to ask for in one call; by default 16, and fewer where the endpoint gives fewer.
        concurrency: The most samples to have in flight; by default found by trying.
        context: The most tokens of prompt and completion together. A request that cannot fit is refused here, before it
            is sent; see :class:`~magicore.llms.room.Room`.
        tokenizer: The Hub id or folder of the model's tokenizer, for counting tokens: of what ``context`` has to hold,
            and again by ``magicore tokens --recount``.
        azure_version: The API version of an Azure endpoint, whose URL is then the resource's.
    """

    extra_body: Mapping[str, Any] = field(default_factory=dict)
    idle_timeout: float = 600.0
    stream: bool | None = None
    prefill: bool | None = None
    max_n: int | None = None
    concurrency: int | None = None
    context: int | None = None
    tokenizer: str | None = None
    azure_version: str | None = None


class _Connection(NamedTuple):
    """What belongs to one event loop."""

    client: openai.AsyncOpenAI
    http: httpx2.AsyncClient
    first: asyncio.Lock


class OpenAICompatible:
    """One endpoint and one model there.

    Args:
        name: The model as the user named it; part of every content key.
        model: The model id that the endpoint knows.
        url: Its base URL; ``None`` for OpenAI's own (or ``OPENAI_BASE_URL``).
        api_key: The key; never shown. ``None``: no key is needed.
        profile: What is known of the endpoint already, shared between replicas.
        options: How to talk to it.

    Raises:
        InputError: The address holds a key or password, which messages would show; or the context or its tokenizer is
            none.
        MissingExtraError: Context and tokenizer are given, and the package that counts tokens is not installed.
    """

    def __init__(
        self,
        *,
        name: str,
        model: str,
        url: str | None = None,
        api_key: str | None = None,
        profile: EndpointProfile | None = None,
        options: EndpointOptions | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.url = (url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        if holds_secret(self.url):
            raise InputError(f"the address of {name} holds a key or password; name its variable by api_key_env instead")
        self.options = options or EndpointOptions()
        self.profile = profile if profile is not None else EndpointProfile()
        self.traits = Traits(
            remote=True,
            max_n=self.options.max_n,
            concurrency=self.options.concurrency,
        )
        context = self.options.context
        self._room = None if context is None else Room(name, context, self.options.tokenizer)
        self._own = url is None
        self._key = api_key or ""
        self._prefill = self.options.prefill
        self._notes: list[str] = []
        self._connections: dict[asyncio.AbstractEventLoop, _Connection] = {}
        if self.profile.limit is None:
            official = self._own or self.options.azure_version is not None or "api.openai.com" in self.url
            self.profile.limit = "max_completion_tokens" if official else "max_tokens"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.url})"

    @property
    def fingerprint(self) -> str:
        """What besides its name decides the samples: further fields, and an address from the environment."""
        decides: dict[str, Any] = {}
        if self.options.extra_body:
            decides["extra_body"] = dict(self.options.extra_body)
        if self._own and self.url != OPENAI_URL:
            decides["url"] = self.url
        if not decides:
            return ""
        return hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()[:16]

    async def generate(self, request: Request) -> Generation:
        """One call for all samples of the request; the endpoint may give fewer.

        Raises:
            CapabilityError: Log-probabilities or a prefill are required and the endpoint has none.
            ContextExceeded: Prompt and answer cannot fit the context that is stated, and nothing was sent.
            LanguageModelError: The call failed; see the kinds in :mod:`magicore.errors`.
        """
        if not request.indices:
            return Generation(completions=())
        if request.wants_logprobs and request.logprobs_required and self.profile.logprobs is None:
            async with self._connection().first:  # one call finds out, not a hundred at once
                return await self._generate(request)
        return await self._generate(request)

    async def aclose(self) -> None:
        """Close the connections of the running loop; those of loops that are gone went with them."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        self._connections.clear()
        if connection is not None:
            await connection.client.close()

    async def _generate(self, request: Request) -> Generation:
        self._check_logprobs(request)
        prefill = request.prefill is not None and await self._continues()
        body, seed = await self._call(request, prefill=prefill)
        try:
            completions = tuple(replace(one, seed=seed) for one in read_reply(body, request, self.profile))
        except UnreadableReply as why:
            stated = (None, None) if why.charged is None else (why.charged.prompt, why.charged.completion)
            raise unreadable(str(why), model=self.name, url=self.url, prompt=stated[0], completion=stated[1]) from None
        self.profile.answered = True
        if request.wants_logprobs and any(one.text for one in completions):
            came = any(one.token_logprobs or one.top_logprobs for one in completions)
            self.profile.logprobs = self.profile.logprobs or came
            self._check_logprobs(request)
        notes, self._notes = tuple(self._notes), []
        return Generation(completions=completions, notes=notes)

    def _check_logprobs(self, request: Request) -> None:
        if request.wants_logprobs and request.logprobs_required and self.profile.logprobs is False:
            raise CapabilityError(
                f"{self.name}: {self.url} gives no log-probabilities, which are needed here; use a server that does "
                "(vLLM does), or a reward model that needs none"
            )

    async def _call(self, request: Request, *, prefill: bool) -> tuple[Any, int | None]:
        """Send the request, leaving out what the endpoint refuses; the JSON of its answer, and the seed it had."""
        import openai

        while True:
            body = self._body(request, prefill=prefill)
            if self._room is not None:
                self._room.check((message["content"] for message in body["messages"]), _answer_limit(body))
            try:
                return await self._send(body), body.get("seed")
            except openai.APIStatusError as error:
                refused = refused_parameters(error, body)
                if not refused:
                    raise status_error(error, model=self.name, url=self.url, sent=self.model, key=self._key) from None
                for parameter in refused:
                    self._leave_out(parameter, request, error)
            except openai.APIConnectionError as error:
                raise connection_failed(
                    error, model=self.name, url=self.url, idle_s=self.options.idle_timeout
                ) from None

    def _body(self, request: Request, *, prefill: bool) -> dict[str, Any]:
        sampling = request.sampling
        messages = list(request.messages)
        if prefill and request.prefill is not None:
            messages.append(Message(role="assistant", content=request.prefill))
        fields: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "n": len(request.indices) if len(request.indices) > 1 else None,
            "seed": request_seed(self.name, self.fingerprint, request),
            "stop": list(sampling.stop) or None,
            "logprobs": True if request.wants_logprobs and self.profile.logprobs is not False else None,
            "top_logprobs": request.top_logprobs or None if self.profile.logprobs is not False else None,
            self.profile.limit or "max_tokens": sampling.max_tokens,
        }
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        body |= {
            name: value for name, value in fields.items() if value is not None and name not in self.profile.refused
        }
        if prefill:
            body |= _CONTINUES_FINAL_MESSAGE
        return body | dict(self.options.extra_body)

    async def _send(self, body: dict[str, Any]) -> Any:
        long = _answer_limit(body) > STREAM_FROM_TOKENS
        if self.options.stream if self.options.stream is not None else long:
            body = {**body, "stream": True, "stream_options": {"include_usage": True}}
            return await self._receive_stream(body)
        response = await self._post(body)
        try:
            return json.loads(response.content)
        except ValueError:
            raise unreadable("no JSON", model=self.name, url=self.url) from None

    async def _receive_stream(self, body: dict[str, Any]) -> Any:
        import httpx2

        try:
            response = await self._post(body, stream=True)
            try:
                if "json" in response.headers.get("content-type", ""):  # it does not stream
                    return json.loads(await response.aread())
                return await gather_stream(response.aiter_lines())
            finally:
                await response.aclose()
        except httpx2.RequestError as error:
            raise connection_failed(error, model=self.name, url=self.url, idle_s=self.options.idle_timeout) from None
        except UnreadableReply as why:
            raise unreadable(str(why), model=self.name, url=self.url) from None
        except ValueError:
            raise unreadable("no JSON", model=self.name, url=self.url) from None

    async def _post(self, body: dict[str, Any], *, stream: bool = False) -> httpx2.Response:
        import httpx2
        import openai

        client, http, _ = self._connection()
        if not stream and not self._own and self.options.azure_version is None:
            return await post_json(http, f"{self.url}/chat/completions", body)
        if not stream:
            return await client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        chunks = openai.AsyncStream[openai.types.chat.ChatCompletionChunk]
        response = await client.post(
            "/chat/completions", cast_to=httpx2.Response, body=body, stream=True, stream_cls=chunks
        )
        return cast("httpx2.Response", response)  # the SDK hands the response itself on when that is what is asked for

    def _leave_out(self, parameter: str, request: Request, error: openai.APIStatusError) -> None:
        """Remember that the endpoint refuses a parameter.

        Raises:
            CapabilityError: What was asked depends on it.
        """
        profile = self.profile
        if parameter in ("logprobs", "top_logprobs"):
            profile.logprobs = False
            self._check_logprobs(request)
        elif parameter == "max_tokens" and "max_completion_tokens" not in profile.refused:
            profile.limit = "max_completion_tokens"
        elif parameter == "max_completion_tokens" and "max_tokens" not in profile.refused:
            profile.limit = "max_tokens"
        if parameter == "n":
            profile.max_n = 1
        if parameter in profile.refused:
            return
        words = " ".join(error.message.split())[:160]
        profile.refused[parameter] = words
        if not parameter.startswith("max_") or {"max_tokens", "max_completion_tokens"} <= profile.refused.keys():
            self._notes.append(f"{self.name} refuses {parameter}, which is left out from now on")

    async def _continues(self) -> bool:
        """Whether the endpoint continues an assistant message; asked of the server once.

        Raises:
            CapabilityError: It does not.
        """
        if self._prefill is None:
            self._prefill = await self._server_kind() in _SERVERS_THAT_CONTINUE
        if not self._prefill:
            raise CapabilityError(
                f"{self.name}: {self.url} is not known to continue a reply that is begun for it (vLLM and SGLang do); "
                "if it does, set prefill = true for this model"
            )
        return True

    async def _server_kind(self) -> str:
        """Who owns the model by the endpoint's own list: ``vllm``, ``sglang``, ``openai`` ...; empty if it has none."""
        import httpx2
        import openai

        try:
            response = await self._connection().client.get("/models", cast_to=httpx2.Response)
            listed = json.loads(response.content).get("data") or []
        except openai.APIConnectionError as error:
            raise connection_failed(error, model=self.name, url=self.url, idle_s=self.options.idle_timeout) from None
        except (openai.APIStatusError, ValueError, AttributeError):
            return ""
        owners = [str(item.get("owned_by", "")).lower() for item in listed if isinstance(item, dict)]
        return owners[0] if owners else ""

    def _connection(self) -> _Connection:
        """What belongs to the running event loop: connections cannot outlive the loop that made them."""
        loop = asyncio.get_running_loop()
        found = self._connections.get(loop)
        if found is None:
            self._connections = {old: kept for old, kept in self._connections.items() if not old.is_closed()}
            found = self._connections[loop] = _Connection(*self._connect(), asyncio.Lock())
        return found

    def _connect(self) -> tuple[openai.AsyncOpenAI, httpx2.AsyncClient]:
        import httpx2
        import openai

        idle = self.options.idle_timeout
        timeout = httpx2.Timeout(connect=_CONNECT_TIMEOUT_S, read=idle, write=idle, pool=None)
        http = pooled_client(timeout=timeout, proxies=not _is_loopback(self.url))
        if not self._own:
            http.event_hooks = {"request": [self._without_openai_headers]}
        if self.options.azure_version is not None:
            azure = openai.AsyncAzureOpenAI(
                azure_endpoint=self.url,
                api_version=self.options.azure_version,
                api_key=self._key,
                max_retries=0,
                timeout=timeout,
                http_client=http,
            )
            return azure, http
        client = openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY, base_url=self.url, max_retries=0, timeout=timeout, http_client=http
        )
        return client, http

    async def _without_openai_headers(self, request: httpx2.Request) -> None:
        """Keep what the environment says for OpenAI (organization, project, further headers) from other servers."""
        ambient = [line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")]
        for header in ("authorization", "openai-organization", "openai-project", *ambient):
            if header:
                request.headers.pop(header, None)
        if self.options.azure_version is not None:
            request.headers["api-key"] = self._key
        else:
            request.headers["authorization"] = f"Bearer {self._key or _NO_KEY}"


def _answer_limit(body: Mapping[str, Any]) -> int:
    """The most tokens that a request lets an answer have; 0 where it says nothing."""
    limit: int = body.get("max_tokens", body.get("max_completion_tokens", 0))
    return limit


def _is_loopback(url: str) -> bool:
    """Whether the address is this machine's own, which no proxy leads to."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
