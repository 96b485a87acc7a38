"""Checkpoint folders: found or fetched, read without running anything they contain.

Weights come from safetensors, or from ``.bin`` files by PyTorch's weights-only reader, which builds tensors and nothing
else; a file that wants more is refused. No remote code is ever imported: every family's architecture is built from
transformers' own classes.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from reward_models.errors import CheckpointError

ADAPTER_CONFIG = "adapter_config.json"
_SMALL_FILES = ("*.json", "*.model", "*.txt", "*.jinja", "*.tiktoken", "reward_head.pt")


class Checkpoint:
    """A folder with a configuration, a tokenizer and weights.

    ``safe_revision`` is named where its weights have to be refused. ``declared`` is what the folder says of its own
    input format, in ``reward_model.json`` as ``magicore train`` writes it.
    """

    DECLARED = "reward_model.json"

    def __init__(
        self, folder: Path, *, name: str, revision: str | None = None, safe_revision: str | None = None
    ) -> None:
        self.folder = folder
        self.name = name
        self.revision = revision
        self.safe_revision = safe_revision
        try:
            self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{folder / 'config.json'} cannot be read ({error})", model=name) from error
        self._files = self._index()
        self.declared: dict[str, Any] | None = None
        if (folder / self.DECLARED).is_file():
            from reward_models.local.adapter import read_declared

            self.declared = read_declared(folder)

    @classmethod
    def open(cls, where: str, *, revision: str | None = None, safe_revision: str | None = None) -> Checkpoint:
        """A local folder, of a whole model or a LoRA adapter, or a Hub id, which is downloaded once.

        Raises:
            CheckpointError: It is neither, or it is damaged.
        """
        path = Path(where).expanduser()
        if path.is_dir():
            if (path / ADAPTER_CONFIG).is_file() and not (path / "config.json").is_file():
                from reward_models.local.adapter import open_adapter

                return open_adapter(path)
            return cls(path, name=where, safe_revision=safe_revision)
        if where.startswith((".", "/", "~")):
            raise CheckpointError(f"there is no folder {where}", model=where)
        try:
            small = Path(snapshot_download(where, revision=revision, allow_patterns=list(_SMALL_FILES)))
            indexed = list(small.glob("*.index.json"))
            safe = any("safetensors" in file.name for file in indexed)
            weights = ["*.safetensors"] if safe else ["*.safetensors", "pytorch_model*.bin"]
            folder = Path(snapshot_download(where, revision=revision, allow_patterns=[*_SMALL_FILES, *weights]))
        except (RepositoryNotFoundError, LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
            raise CheckpointError(
                f"it is no folder here, and the Hub does not give it ({error})", model=where
            ) from error
        return cls(folder, name=where, revision=folder.name, safe_revision=safe_revision)

    @property
    def architecture(self) -> str:
        """The class its configuration names."""
        return str((self.config.get("architectures") or ["unknown"])[0])

    @property
    def identity(self) -> str:
        """Changes whenever the weights may: the commit on the Hub, or sizes and times of a folder's weight files."""
        if self.revision:
            return f"{self.name}@{self.revision}"
        stats = [
            (file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(set(self._files.values()))
        ]
        heads = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self.folder.glob("*.pt")]
        return f"{self.folder.resolve()}@{[*stats, *heads]}"

    @property
    def bytes(self) -> int:
        """The size of its weight files."""
        return sum(file.stat().st_size for file in set(self._files.values()))

    def has(self, key: str) -> bool:
        """Whether there is a tensor of this name."""
        return key in self._files

    def keys(self) -> list[str]:
        """The names of all tensors."""
        return list(self._files)

    def tensor(self, key: str, *, rows: Sequence[int] | None = None) -> Tensor:
        """One tensor in float32, or some of its rows.

        Raises:
            CheckpointError: It is not there, or its file is damaged.
        """
        file = self._files.get(key)
        if file is None:
            raise CheckpointError(f"there is no tensor {key!r} in {self.folder}", model=self.name)
        if file.suffix != ".safetensors":
            whole = self._read_pickled(file)[key]
            return (whole if rows is None else whole[list(rows)]).float()
        try:
            with safe_open(file, framework="pt") as opened:
                part = opened.get_slice(key)
                if rows is None:
                    found: Tensor = opened.get_tensor(key)
                    return found.float()
                return torch.cat([part[row : row + 1] for row in rows]).float()
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{file} cannot be read ({error})", model=self.name) from error

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor as it is stored, file by file."""
        for file in sorted(set(self._files.values())):
            if file.suffix == ".safetensors":
                with safe_open(file, framework="pt") as opened:
                    yield from ((key, opened.get_tensor(key)) for key in opened.keys())
            else:
                yield from self._read_pickled(file).items()

    def beside(self, file: str) -> dict[str, Tensor]:
        """A small file of tensors next to the weights, read weights-only."""
        return self._read_pickled(self.folder / file)

    def finish(self, model: Any) -> None:
        """Whatever remains to be done to a backbone that was loaded from the folder; nothing, for a whole model."""

    def check_readable(self) -> None:
        """Raise if ``.bin`` weights hold anything but tensors, before a model is built.

        Raises:
            CheckpointError: They do, or they are damaged.
        """
        for file in sorted(set(self._files.values())):
            if file.suffix != ".safetensors":
                self._read_pickled(file)

    def _read_pickled(self, file: Path) -> dict[str, Tensor]:
        try:
            read: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True, mmap=_is_zip(file))
        except pickle.UnpicklingError as error:
            hint = f"; use revision {self.safe_revision}, which has safetensors" if self.safe_revision else ""
            raise CheckpointError(
                f"{file.name} holds more than tensors and is not loaded{hint}", model=self.name
            ) from error
        except (OSError, RuntimeError, EOFError, ValueError) as error:
            raise CheckpointError(f"{file} cannot be read ({error})", model=self.name) from error
        return read

    def _index(self) -> dict[str, Path]:
        """Which file holds which tensor."""
        for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
            path = self.folder / index
            if path.exists():
                weights: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
                files = {key: self.folder / Path(file).name for key, file in weights.items()}
                if missing := sorted({file.name for file in files.values() if not file.exists()}):
                    raise CheckpointError(f"weight files are missing: {', '.join(missing)}", model=self.name)
                return files
        single = self.folder / "model.safetensors"
        if single.exists():
            try:
                with safe_open(single, framework="pt") as opened:
                    return dict.fromkeys(opened.keys(), single)
            except (SafetensorError, OSError) as error:
                raise CheckpointError(f"{single} cannot be read ({error})", model=self.name) from error
        pickled = self.folder / "pytorch_model.bin"
        if pickled.exists():
            return dict.fromkeys(self._read_pickled(pickled), pickled)
        raise CheckpointError(
            f"{self.folder} holds no weights (model.safetensors or pytorch_model.bin)", model=self.name
        )


def _is_zip(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(2) == b"PK"
