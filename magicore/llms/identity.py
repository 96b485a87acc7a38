"""Content keys and seeds: two calls are the same call exactly when their keys are equal (architecture.md, Identity)."""

from __future__ import annotations

import hashlib
import json

from magicore.llms.base import Request

KEY_VERSION = 1
SEEDS = 2**31
"""A run's seed lies below this where it is drawn or derived."""


def content_key(model: str, fingerprint: str, request: Request, index: int) -> str:
    """The key under which one sample is stored: 64 hex digits.

    It covers the model as named, its fingerprint, the messages, the sampling parameters without n, the fields asked
    for, the run's seed, and the logical key without the problem (the parent as its round and index): so equal questions
    share samples, k = 16 reuses the chains of k = 8, and a kept chain that is reviewed again in a later round is really
    reviewed again.
    """
    key = request.key
    parent = None if key.parent is None else key.parent.split("/")[-2:]
    body = {
        "version": KEY_VERSION,
        "model": model,
        "fingerprint": fingerprint,
        "messages": [[message["role"], message["content"]] for message in request.messages],
        "prefill": request.prefill,
        "sampling": [
            request.sampling.temperature,
            request.sampling.top_p,
            request.sampling.max_tokens,
            list(request.sampling.stop),
        ],
        "fields": [request.logprobs, request.top_logprobs],
        "seed": request.seed,
        "call": [key.role, key.instance, key.round, parent, index],
    }
    text = json.dumps(body, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sample_seed(key: str) -> int:
    """A 31-bit seed from a content key: what is sent to an endpoint or seeds a local sampler."""
    return int(key[:16], 16) % (2**31 - 1)


def request_seed(model: str, fingerprint: str, request: Request) -> int:
    """The seed of a request for several samples: hashed from its first sample's content key."""
    return sample_seed(content_key(model, fingerprint, request, request.indices[0]))


def sibling_seed(seed: int, index: int) -> int:
    """The run's seed of the ``index``-th of several answers to one question: the first has the seed that was given."""
    if index == 0:
        return seed
    digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    return int.from_bytes(digest[:8]) % SEEDS
