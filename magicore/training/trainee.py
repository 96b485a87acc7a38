"""The model in training: a frozen base, LoRA matrices by PEFT, and the head's values at the positions that are read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from magicore.errors import CapabilityError, InputError
from magicore.llms.local.loading import choose_device, choose_dtype, quiet
from magicore.training.config import TrainingConfig
from magicore.training.examples import Example, Write
from magicore.training.head_loss import head_loss
from reward_models.errors import CheckpointError
from reward_models.errors import MissingExtraError as MissingRewardExtraError
from reward_models.families import math_shepherd, sequence_classifier, trl_prm
from reward_models.families.tokens import TextTokenizer
from reward_models.local.adapter import EMBEDDED, EMBEDDED_BASE, WEIGHTS, Adapter, base_of, is_adapter
from reward_models.local.checkpoint import ADAPTER_CONFIG, Checkpoint

_CLASSES: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "language-model": (transformers.AutoModelForCausalLM, {}),
    "math-shepherd": (transformers.AutoModelForCausalLM, {}),
    "trl-prm": (transformers.AutoModelForTokenClassification, {"num_labels": 2}),
    "sequence-classification": (transformers.AutoModelForSequenceClassification, {"num_labels": 1}),
}
_LANGUAGE_MODEL = "language-model"


class Trainee(nn.Module):
    """A base model with trainable LoRA matrices and a head; see :func:`open_trainee`.

    Only positions that are read meet the head, so a language model's logits are computed for the answer's tokens alone.
    Sequences are padded on the right without a mask: under causal attention no token sees what follows it. A mask keeps
    apart sequences that share their beginning.

    Attributes:
        tokenizer: The base's.
        write: The input format, for reward models.
        declared: What ``reward_model.json`` says, for reward models.
        mixed: Whether all products, the adapter's own among them, are taken in bfloat16.
    """

    def __init__(self, model: Any, tokenizer: Any, head: str, base: str, *, mixed: bool) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.head = head
        self.base = base
        self.mixed = mixed
        self.write: Write | None = None
        self.declared: dict[str, Any] | None = None
        words = TextTokenizer(tokenizer)
        if head == "math-shepherd":
            self.declared = math_shepherd.declare(words)
            self.write = math_shepherd.FAMILY.adapted(self.declared, words).write
            rows = model.get_output_embeddings().weight[[self.declared["good"], self.declared["bad"]]].detach().float()
            self.register_buffer("direction", rows[0] - rows[1], persistent=False)
        elif head != _LANGUAGE_MODEL:
            family = trl_prm.FAMILY if head == "trl-prm" else sequence_classifier.FAMILY
            self.declared = {"family": family.name}
            self.write = family.write

    @property
    def backbone(self) -> Any:
        """The model without its head."""
        inner = self.model.get_base_model()
        return getattr(inner, inner.base_model_prefix)

    def hidden(self, inputs: Padded) -> Tensor:
        """Last hidden states ``[reads, width]`` where they are read."""
        mask = inputs.mask
        if mask is not None:  # as the attention of every kind takes it: to be added
            dtype = self.backbone.dtype
            mask = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)
        states: Tensor = self.backbone(
            input_ids=inputs.ids, position_ids=inputs.positions, attention_mask=mask, use_cache=False
        ).last_hidden_state
        return states.flatten(0, 1).index_select(0, inputs.rows * inputs.ids.shape[1] + inputs.columns)

    def values(self, hidden: Tensor) -> Tensor:
        """A reward model's logit of being right for each hidden state, ``[reads]``, in float32."""
        if self.head == "math-shepherd":
            projected: Tensor = hidden.float() @ self.get_buffer("direction")
            return projected
        found: Tensor = self.model.get_base_model().score(hidden.float()).float()
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found[:, 0]

    def forward(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        """The loss, and a reward model's values.

        The loss is the sum over reads, in nats: cross-entropy of the next token, or binary cross-entropy of labels in
        [0, 1].
        """
        with torch.autocast(inputs.ids.device.type, torch.bfloat16, enabled=self.mixed):
            return self._losses(inputs)

    def _losses(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        hidden, targets = self.hidden(inputs), inputs.targets
        if self.head == _LANGUAGE_MODEL:
            weight = self.model.get_output_embeddings().weight
            if self.mixed:
                weight = weight.to(torch.bfloat16)
            return head_loss(hidden, weight, targets.long()), None
        values = self.values(hidden)
        return binary_cross_entropy_with_logits(values, targets, reduction="sum"), values

    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters that are trained, by name, in a fixed order."""
        return {name: one for name, one in sorted(self.named_parameters()) if one.requires_grad}

    def save(self, folder: Path, dtype: torch.dtype) -> None:
        """Write the adapter as PEFT does, its head with it, and what a reward model declares."""
        state = peft.get_peft_model_state_dict(self.model)
        tensors = {key: value.detach().to("cpu", dtype).contiguous() for key, value in state.items()}
        config: Any = self.model.peft_config["default"]
        config.save_pretrained(str(folder))
        described = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        described["base_model_name_or_path"] = self.base
        (folder / ADAPTER_CONFIG).write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        if self.declared is not None:
            text = json.dumps(self.declared, indent=2, ensure_ascii=False) + "\n"
            (folder / Checkpoint.DECLARED).write_text(text, encoding="utf-8")


def open_trainee(config: TrainingConfig) -> Trainee:
    """Load the base, merge the adapters it stands for, and put new LoRA matrices on every linear layer below the head.

    Raises:
        InputError: There is no such base, or it is damaged.
        CapabilityError: Its architecture has no linear layers or no head of the kind.
        MissingExtraError: The embedded model is not installed.
    """
    where, adapters, name = find_base(config.base)
    loader, options = _CLASSES[config.chosen_head]
    dtype = frozen_dtype(config)
    torch.manual_seed(config.seed)
    with quiet():
        try:
            tokenizer: Any = transformers.AutoTokenizer.from_pretrained(where, trust_remote_code=False)
            model: Any = loader.from_pretrained(
                where,
                dtype=dtype,
                attn_implementation=_attention(config),
                use_safetensors=True,
                trust_remote_code=False,
                **options,
            )
        except (OSError, ValueError, ImportError, SafetensorError) as error:
            raise InputError(f"base {config.base!r} cannot be loaded ({str(error).splitlines()[0]})") from error
    try:
        for adapter in adapters:
            Adapter(adapter).merge(model)
    except CheckpointError as error:
        raise InputError(str(error)) from error
    backbone = getattr(model, model.base_model_prefix, None)
    if backbone is None or backbone is model:
        raise CapabilityError(f"{type(model).__name__} has no backbone apart from its head, which training needs")
    linear = sorted({path.rpartition(".")[2] for path, one in backbone.named_modules() if isinstance(one, nn.Linear)})
    if not linear:
        raise CapabilityError(f"{type(model).__name__} has no linear layers to put LoRA matrices on")
    classifies = config.chosen_head in ("trl-prm", "sequence-classification")
    settings: dict[str, Any] = {
        "r": config.rank,
        "lora_alpha": config.scale,
        "lora_dropout": config.dropout,
        "target_modules": linear,
        "modules_to_save": ["score"] if classifies else None,
    }
    lora = peft.LoraConfig(**settings)
    torch.manual_seed(config.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers under an old name
        wrapped: Any = peft.get_peft_model(model, lora)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:  # what is trained is float32, whatever the frozen weights are
            parameter.data = parameter.data.float()
    if dtype == torch.bfloat16:  # their products are taken in it: a copy of each input in float32 would only be kept
        layers: list[Any] = [one for one in wrapped.modules() if isinstance(one, BaseTunerLayer)]
        for layer in layers:
            layer.cast_input_dtype_enabled = False
    mixed = config.precision == "autocast" or dtype == torch.bfloat16
    try:
        return Trainee(wrapped, tokenizer, config.chosen_head, name, mixed=mixed)
    except CheckpointError as error:
        raise CapabilityError(str(error)) from error


def _attention(config: TrainingConfig) -> str:
    """On a processor the fused kernel's backward pass is slow: plain products make 1.09 times the speed of training."""
    return "eager" if choose_device(config.device).type == "cpu" else "sdpa"


def frozen_dtype(config: TrainingConfig) -> torch.dtype:
    """The number format of the frozen weights; ``auto`` takes bfloat16 where the device is faster with it."""
    if config.precision == "auto":
        found = choose_dtype("auto", choose_device(config.device), deterministic=False)
        return found if found == torch.bfloat16 else torch.float32
    return torch.bfloat16 if config.precision == "bf16" else torch.float32


def find_base(base: str) -> tuple[str, list[Path], str]:
    """Where a base is loaded from, the adapters that are merged into it first, and its name in ``adapter_config.json``.

    Raises:
        InputError: There is no such base.
        MissingExtraError: The embedded model is not installed.
    """
    name = base.removeprefix("hf:")
    adapters: list[Path] = []
    where: Path | str = Path(name).expanduser() if Path(name).expanduser().is_dir() else name
    named = str(where.resolve()) if isinstance(where, Path) else name
    try:
        if name in (EMBEDDED, EMBEDDED_BASE) and not isinstance(where, Path):
            where = base_of(Path(), name)
        while isinstance(where, Path) and is_adapter(where):
            adapters.insert(0, where)
            where = base_of(where, Adapter(where).base)
        if isinstance(where, str):
            where = Checkpoint.open(where).folder
    except CheckpointError as error:
        raise InputError(f"base {base!r}: {error}") from error
    except MissingRewardExtraError as error:
        raise InputError(str(error)) from error
    return str(where), adapters, named


@dataclass(frozen=True, kw_only=True)
class Padded:
    """Examples side by side, padded on the right.

    Attributes:
        ids: int64 ``[examples, tokens]``.
        rows, columns: Where the reads are, int64 ``[reads]`` each.
        targets: Theirs, float32 ``[reads]``.
        positions: int64 ``[examples, tokens]`` where an example holds several sequences, else ``None``.
        mask: Beside them, what may be attended to: bool ``[examples, 1, tokens, tokens]``.
    """

    ids: Tensor
    rows: Tensor
    columns: Tensor
    targets: Tensor
    positions: Tensor | None = None
    mask: Tensor | None = None


def padded(examples: Sequence[Example], filler: int, device: torch.device) -> Padded:
    """Put examples side by side; a mask only where one of them holds several sequences."""
    longest = max(len(example.ids) for example in examples)
    ids = torch.full((len(examples), longest), filler, dtype=torch.long)
    for row, example in enumerate(examples):
        ids[row, : len(example.ids)] = torch.tensor(example.ids)
    rows = torch.tensor([row for row, example in enumerate(examples) for _ in example.reads])
    columns = torch.tensor([at for example in examples for at in example.reads])
    targets = torch.tensor([value for example in examples for value in example.targets])
    found = Padded(ids=ids.to(device), rows=rows.to(device), columns=columns.to(device), targets=targets.to(device))
    if not any(example.starts for example in examples):
        return found
    positions = torch.arange(longest).repeat(len(examples), 1)
    sequence = torch.zeros(len(examples), longest, dtype=torch.long)
    for row, example in enumerate(examples):
        for number, start in enumerate(example.starts, 1):
            positions[row, start:] = torch.arange(example.trunk, example.trunk + longest - start)
            sequence[row, start:] = number
        sequence[row, : example.trunk] = -1
    own = (sequence[:, :, None] == sequence[:, None, :]) | (sequence[:, None, :] == -1)
    mask = own & torch.ones(longest, longest, dtype=torch.bool).tril()
    return replace(found, positions=positions.to(device), mask=mask[:, None].to(device))
