"""A check at load that batched sampling computes what the model computes."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from magicore.errors import CapabilityError
from magicore.llms.local.loading import LoadedModel
from magicore.llms.local.masks import step_mask
from magicore.llms.local.prompts import PromptReader, forward
from magicore.llms.local.slots import SlotCache

_LENGTHS = (9, 20)
_TOLERANCE = {torch.float32: 0.02}
_TOLERANCE_HALF = 0.4


def self_check(loaded: LoadedModel) -> None:
    """Read two prompts of different lengths in one pass, one of them in two parts, continue them in one batch by one
    token, and compare the logits with those of a plain pass over each whole text.

    Raises:
        CapabilityError: They differ: the architecture's attention or positions work in another way than this package
            knows, and its samples would be wrong without a sign.
    """
    vocabulary = int(loaded.model.config.get_text_config().vocab_size)
    texts = [[(17 * at + 5 * length) % vocabulary for at in range(length + 1)] for length in _LENGTHS]
    with torch.inference_mode():
        plain = torch.cat([_whole(loaded, text) for text in texts])
        batched = _in_parts(loaded, texts)
    tolerance = _TOLERANCE.get(loaded.model.dtype, _TOLERANCE_HALF)
    difference = float((plain - batched).abs().max() / plain.std())
    if not difference <= tolerance:
        raise CapabilityError(
            f"{type(loaded.model).__name__} does not sample in batches as it does alone (logits differ by "
            f"{difference:.2g} standard deviations); serve it (with vLLM, say) and use openai:NAME@URL"
        )


def _whole(loaded: LoadedModel, text: list[int]) -> torch.Tensor:
    tokens = torch.tensor([text], device=loaded.device)
    positions = torch.arange(len(text), device=loaded.device)[None]
    return forward(loaded, tokens, positions, DynamicCache(), mask=None)


def _in_parts(loaded: LoadedModel, texts: list[list[int]]) -> torch.Tensor:
    reader = PromptReader(loaded, reuse=True)
    reader.read([text[:-2] for text in texts])  # so that the next reading takes up where this one ends
    cache = SlotCache(len(texts), loaded.device)
    for prompt in reader.read(texts):
        cache.insert(prompt.states, 1)
    positions, mask = cache.begin_step()
    tokens = torch.tensor([text[-1:] for text in texts], device=loaded.device)
    return forward(loaded, tokens, positions, cache, step_mask(loaded, positions, mask))
