"""A Hugging Face model that runs here, as a language model: ``hf:ID_OR_FOLDER[#REVISION]``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from magicore.errors import CapabilityError, MagicoreError
from magicore.llms.base import Generation, Request
from magicore.llms.identity import content_key
from magicore.llms.local.batch import Row, Wanted
from magicore.llms.local.checking import self_check
from magicore.llms.local.engine import Engine, Job
from magicore.llms.local.loading import LoadedModel, is_quantised
from magicore.types import Completion, Usage
from reward_models.local.parking import can_park, release
from reward_models.steps import split_thinking
from reward_models.turns import Turns

ROWS = 256


class LocalModel:
    """Samples with transformers in a thread of its own; see :mod:`magicore.llms.local.engine`.

    Usage is exact: the prompt is counted once a request, generated tokens include the end token. Log-probabilities are
    those of the model's own softmax at temperature 1, whatever the sampling parameters, one for each generated token.

    Args:
        name: The model as the user named it.
        fingerprint: What decides its samples besides: checkpoint, precision, whether batches are fixed.
        load: Loads it; called in the worker thread with the first request.
        rows: The most chains in one batch.
        deterministic: Whether sample i must not depend on what else is sampled.
        turns: The floor, where models take turns on one device: the model is loaded in its turns alone.
        check_room: Raises :class:`~magicore.errors.CapabilityError` where there is no room for it, without loading it.
    """

    def __init__(
        self,
        *,
        name: str,
        fingerprint: str,
        load: Callable[[], LoadedModel],
        rows: int = ROWS,
        deterministic: bool = False,
        turns: Turns | None = None,
        check_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.check_room = check_room
        self._load = load
        self._loaded: LoadedModel | None = None
        self._checked = False
        self._refusal: MagicoreError | None = None
        self._engine = Engine(self._load_now, unload=self._unload, rows=rows, deterministic=deterministic, turns=turns)

    async def generate(self, request: Request) -> Generation:
        """All samples of the request.

        Raises:
            ContextExceeded: The prompt leaves no room for an answer.
            CapabilityError: The chat template cannot hold the conversation.
            InputError: The model cannot be loaded.
            LanguageModelError: Sampling failed.
        """
        if not request.indices:
            return Generation(completions=())
        sampling = request.sampling
        wanted = [
            (
                index,
                Wanted(
                    temperature=1.0 if sampling.temperature is None else sampling.temperature,
                    top_p=1.0 if sampling.top_p is None else sampling.top_p,
                    limit=sampling.max_tokens,
                    stops=tuple(stop for stop in sampling.stop if stop),
                    logprobs=request.logprobs,
                    top=request.top_logprobs,
                    key=content_key(self.name, self.fingerprint, request, index),
                ),
            )
            for index in request.indices
        ]
        job = Job(messages=request.messages, prefill=request.prefill, wanted=wanted)
        self._engine.submit(job)
        sampled = await asyncio.wrap_future(job.future)
        return Generation(
            completions=tuple(
                self._completion(index, row, Usage(prompt=sampled.prompt_tokens, calls=1) if place == 0 else Usage())
                for place, (index, row) in enumerate(zip(request.indices, sampled.rows, strict=True))
            )
        )

    async def aclose(self) -> None:
        """End the worker thread and free the model."""
        await asyncio.to_thread(self._engine.close)
        self._loaded = self._refusal = None

    def _load_now(self) -> LoadedModel:
        """The model on its device, loaded or brought back; checked once. One that cannot be loaded is tried once."""
        if self._refusal is not None:
            raise self._refusal
        loaded = self._loaded
        if loaded is not None and loaded.model is not None:
            loaded.model.to(loaded.device)
            return loaded
        try:
            loaded = self._load()
            if not self._checked:
                self_check(loaded)
        except MagicoreError as error:
            self._refusal = error
            raise
        self._loaded, self._checked = loaded, True
        return loaded

    def _unload(self) -> None:
        """Make room on the device: the weights wait in the processor's memory, or on disk where that is short."""
        loaded = self._loaded
        if loaded is None or loaded.model is None:
            return
        device = loaded.device
        size = sum(weights.nbytes for weights in loaded.model.parameters())
        if can_park(size, device) and not is_quantised(loaded.model):
            loaded.model.to("cpu")
        else:
            self._loaded = replace(loaded, model=None)
        del loaded
        release(device)

    def _completion(self, index: int, row: Row, head: Usage) -> Completion:
        loaded = self._loaded
        if loaded is None or row.stop is None:
            raise CapabilityError(f"{self.name}: was closed")
        tokenizer = loaded.tokenizer
        ids = row.tokens[:-1] if row.tokens[-1] in loaded.ends else row.tokens
        text: str = tokenizer.decode(ids, skip_special_tokens=True)
        found = [at for stop in row.wanted.stops if (at := text.find(stop)) >= 0]
        text = text[: min(found)] if found else text
        if row.stop == "length":
            text = text.rstrip("\ufffd")  # a character cut in the middle
        thinking, text = split_thinking(text)
        spelled = {token: tokenizer.decode([token]) for line in row.alternatives for token, _ in line}
        return Completion(
            index=index,
            text=text,
            thinking=thinking,
            stop=row.stop,
            tokens=len(row.tokens),
            token_logprobs=tuple(row.logprobs) if row.wanted.logprobs else None,
            top_logprobs=tuple(tuple((spelled[token], value) for token, value in line) for line in row.alternatives)
            if row.wanted.top
            else None,
            usage=head + Usage(completion=len(row.tokens)),
        )
