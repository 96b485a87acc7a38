"""VersaPRM (arXiv 2502.06737), Llama-PRM800K and Qwen-PRM800K: ``+`` or ``-`` at four line feeds after every step.

The tag is one token on both vocabularies, 23535 for Llama 3 and 22701 for Qwen, and so are the answers, 10 and 12.
Fixture: both real vocabularies.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.errors import CheckpointError
from reward_models.families.build import factory
from reward_models.families.family import Family, tagged
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAGS = frozenset({23535, 22701})


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``question \\n\\nstep \\n\\n\\n\\nstep \\n\\n\\n\\n``, read at each tag itself."""
    tag = tokenizer.encode(" \n\n\n\n")
    if len(tag) != 1 or tag[0] not in TAGS:
        raise CheckpointError(
            f"the tokenizer encodes the step tag ' \\n\\n\\n\\n' as {tag}, not as one of {sorted(TAGS)}"
        )
    text = f"{question} \n\n" + "".join(f"{step} \n\n\n\n" for step in steps)
    return tagged([*tokenizer.start, *tokenizer.encode(text)], tag[0], len(steps))


FAMILY = Family(
    name="versa-prm",
    kind="process",
    source="UW-Madison-Lee-Lab/VersaPRM evaluation/get_rewards_reasoning_step.py",
    write=write,
    head=TokenPair(good=10, bad=12),
    activation="softmax",
    aggregation="min",
    aggregation_source="VersaPRM evaluates min, last and mean; its main tables take the minimum",
    context=4096,
    checkpoint="UW-Madison-Lee-Lab/VersaPRM",
    tokens={"+": 10, "-": 12},
    architectures=("LlamaForCausalLM", "Qwen2ForCausalLM"),
)
load = factory(FAMILY)
load_llama_prm800k = factory(FAMILY, "UW-Madison-Lee-Lab/Llama-PRM800K")
load_qwen_prm800k = factory(FAMILY, "UW-Madison-Lee-Lab/Qwen-PRM800K")
