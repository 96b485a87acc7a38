"""RLHFlow's Llama 3.1 reward models: a dialogue in which the assistant answers each step with ``+`` or ``-``.

All steps are read in one forward pass: the position before each ``+`` sees exactly what the published loop over growing
dialogues shows the model. The outcome models are the same with the whole solution as the only step. Fixture: the real
Llama 3 vocabulary (``+`` 10, ``-`` 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reward_models.families.build import factory
from reward_models.families.chat import llama3
from reward_models.families.family import Family
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

GOOD, BAD = 10, 12
# Llama 3.1's template writes today's date into every prompt; this is the date it was published with.
SYSTEM = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """System header, then ``question step`` / ``+`` / ``step`` / ``+`` ..., read where each ``+`` is predicted."""
    header = [tokenizer.special(name) for name in ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>")]
    ids = [header[0], header[1], *tokenizer.encode("system"), header[2], *tokenizer.encode(f"\n\n{SYSTEM}")]
    ids.append(tokenizer.special("<|eot_id|>"))
    reads = []
    for index, step in enumerate(steps):
        ids += llama3(tokenizer, "user", f"{question} {step}" if index == 0 else step)
        ids += llama3(tokenizer, "assistant", "+")
        reads.append(len(ids) - 3)  # before "+" and the end of the turn
    return Reading(ids=tuple(ids[:-2]), reads=tuple(reads))


PRM = Family(
    name="rlhflow-prm",
    kind="process",
    source="RLHFlow/RLHF-Reward-Modeling math-rm/prm_evaluate.py",
    write=write,
    head=TokenPair(good=GOOD, bad=BAD),
    activation="softmax",
    aggregation="mean",
    aggregation_source="RLHFlow math-rm/prm_evaluate.py",
    context=8192,
    checkpoint="RLHFlow/Llama3.1-8B-PRM-Mistral-Data",
    tokens={"+": GOOD, "-": BAD},
    architectures=("LlamaForCausalLM",),
)
ORM = replace(
    PRM,
    name="rlhflow-orm",
    kind="outcome",
    source="RLHFlow/RLHF-Reward-Modeling math-rm/orm_evaluate.py",
    aggregation="last",
    aggregation_source="one score a solution",
    checkpoint="RLHFlow/Llama3.1-8B-ORM-Mistral-Data",
)
load_prm = factory(PRM)
load_prm_deepseek = factory(PRM, "RLHFlow/Llama3.1-8B-PRM-Deepseek-Data")
load_orm = factory(ORM)
load_orm_deepseek = factory(ORM, "RLHFlow/Llama3.1-8B-ORM-Deepseek-Data")
