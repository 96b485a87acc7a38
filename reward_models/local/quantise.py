"""Weights in 8 or 4 bits, by bitsandbytes: LLM.int8() (arXiv 2208.07339) and NF4 (arXiv 2305.14314).

On a GPU, on Apple's, and on a processor, where it saves memory and no time. Embeddings, norms and heads stay as they
are.
"""

from __future__ import annotations

import importlib.util
import logging
from typing import Literal, get_args

import torch
from transformers import BitsAndBytesConfig

from reward_models.errors import CapabilityError, MissingExtraError

Quantize = Literal["8bit", "4bit"]
BITS: dict[Quantize, int] = {"8bit": 8, "4bit": 4}


def check_quantize(wanted: str, *, model: str) -> Quantize:
    """The format, if there is such a one and what computes it is installed.

    Raises:
        CapabilityError: There is no such format.
        MissingExtraError: bitsandbytes is not installed.
    """
    if wanted not in BITS:
        raise CapabilityError(f"quantize is {' or '.join(get_args(Quantize))}, not {wanted!r}", model=model)
    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingExtraError(f"quantize={wanted} needs bitsandbytes: pip install 'magicore[quant]'", model=model)
    return wanted


def quantisation(quantize: Quantize, dtype: torch.dtype) -> BitsAndBytesConfig:
    """What transformers' loader is told; products are computed in ``dtype``."""
    # It says of each product that its input is rounded to float16, which is what LLM.int8() means.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    if quantize == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)
