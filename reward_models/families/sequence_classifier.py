"""Any sequence classifier with one label: one unbounded score at the last token of a user and an assistant turn.

Covers Skywork-Reward and Skywork-Reward-V2 (arXiv 2410.18451, 2507.01352) and what is trained by the same recipe. The
checkpoint's own chat template writes the turns. Fixture: a template that begins with a beginning-of-sequence token,
which must not be doubled.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.errors import CheckpointError, TagInTextError
from reward_models.families.build import factory
from reward_models.families.family import Family
from reward_models.families.heads import LinearHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer, UnreadableTextError


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """The template's text, encoded without adding tokens, read at the last token that is not padding."""
    backend = tokenizer.backend
    if not getattr(backend, "chat_template", None):
        raise CheckpointError("the tokenizer has no chat template, which a sequence classifier needs")
    for name in backend.all_special_tokens:
        if name in question or name in steps[0]:
            raise TagInTextError(f"the text holds the special token {name!r}")
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": steps[0]}]
    text = backend.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UnreadableTextError("it holds half of a surrogate pair") from None
    ids = tuple(backend(text, add_special_tokens=False, verbose=False)["input_ids"])
    last = next((at for at in reversed(range(len(ids))) if ids[at] != backend.pad_token_id), len(ids) - 1)
    return Reading(ids=ids, reads=(last,))


FAMILY = Family(
    name="sequence-classification",
    kind="outcome",
    source="model cards of Skywork/Skywork-Reward-*; transformers modeling_layers.py for the position",
    write=write,
    head=LinearHead(weight="score.weight", bias="score.bias", optional_bias=True),
    activation="sigmoid",
    context=4096,
    checkpoint="Skywork/Skywork-Reward-V2-Qwen3-0.6B",
)
load = factory(FAMILY)
load_skywork = factory(FAMILY, "Skywork/Skywork-Reward-V2-Llama-3.1-8B")
