"""Many connections to one server without the cost of one large pool, and requests without that of the SDK.

httpx's connection pool looks at every connection it holds for each request, so that a thousand requests in flight spend
more time in the pool than on the network. Requests are dealt out in turn to several small pools instead.
"""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx2

POOLS = 16
_JSON = {"content-type": "application/json", "accept": "application/json"}


def pooled_client(*, timeout: httpx2.Timeout, proxies: bool, keep_s: float = 30.0) -> httpx2.AsyncClient:
    """A client without a limit on connections; each is kept for ``keep_s`` seconds of rest.

    ``proxies`` says whether the environment's proxies are used; where there are any, there is one pool.
    """
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=keep_s)
    if proxies and urllib.request.getproxies().keys() - {"no"}:
        return httpx2.AsyncClient(limits=limits, timeout=timeout, follow_redirects=True)
    return httpx2.AsyncClient(
        transport=_spread(httpx2.create_ssl_context(), limits),
        timeout=timeout,
        follow_redirects=True,
        trust_env=proxies,
    )


def _spread(context: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncBaseTransport:
    import httpx2

    class Spread(httpx2.AsyncBaseTransport):
        """Deals requests out to pools in turn."""

        def __init__(self) -> None:
            self._pools = [httpx2.AsyncHTTPTransport(verify=context, limits=limits) for _ in range(POOLS)]
            self._turns = itertools.cycle(self._pools)

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return await next(self._turns).handle_async_request(request)

        async def aclose(self) -> None:
            for pool in self._pools:
                await pool.aclose()

    return Spread()


async def post_json(http: httpx2.AsyncClient, url: str, body: Mapping[str, Any]) -> httpx2.Response:
    """Post a JSON body as the openai SDK does, with its exceptions, at two thirds of its cost in processor time.

    Raises:
        openai.APIConnectionError: Nothing came (``APITimeoutError``: in time).
        openai.APIStatusError: The status is 400 or above.
    """
    import httpx2
    import openai

    content = json.dumps(body, separators=(",", ":")).encode()
    try:
        response = await http.post(url, content=content, headers=_JSON)
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=error.request) from error
    except httpx2.RequestError as error:
        raise openai.APIConnectionError(request=error.request) from error
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return response
    try:
        said = response.json()
    except ValueError:
        said = None
    said = said.get("error", said) if isinstance(said, dict) else said
    raise openai.APIStatusError(f"Error code: {response.status_code} - {response.text}", response=response, body=said)
