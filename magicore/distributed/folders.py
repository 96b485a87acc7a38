"""The shards' directories inside a run's: where workers keep what they pay for, on a disk that all see or by copies."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from magicore.config import RunConfig
from magicore.datasets.shards import Shard
from magicore.errors import StoreError
from magicore.runtime.directory import STORE, open_directory
from magicore.store.json_lines import read_bytes, write_whole
from magicore.store.locking import LOCK, is_network
from magicore.store.run_store import RunStore

SHARDS = "shards"
_MARK = ".seen-by-workers"
_HELD = "held-with-shards"
"""What the run's store notes of how many completions it held when last put together with its shards'."""
_NAME = re.compile(r"([1-9]\d*)-of-([1-9]\d*)", re.ASCII)


def shards_of(run: Path) -> Path:
    """The directory of a run's shards; made if it is not there.

    Raises:
        StoreError: it cannot be made.
    """
    parent = run / SHARDS
    try:
        parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"{parent} cannot be made: {error.strerror}") from error
    return parent


@dataclass(frozen=True, kw_only=True)
class ShardFolders:
    """The directories of a run's shards, ``DIR/shards/I-of-N``.

    Attributes:
        run: The run's directory.
        count: How many shards there are.
        token: What the mark on the disk holds, by which a worker knows that it sees the same disk.
    """

    run: Path
    count: int
    token: str

    @classmethod
    def of(cls, run: Path, wanted: int) -> ShardFolders:
        """Those of a run that is begun, or gone on with: one that was dealt to other shards keeps its own.

        Raises:
            StoreError: they cannot be made.
        """
        parent, token = shards_of(run), token_hex(8)
        names = [_NAME.fullmatch(path.name) for path in parent.iterdir()]
        counts = [int(found[2]) for found in names if found is not None]
        write_whole(parent / _MARK, [token.encode()])
        return cls(run=run, count=max(counts, default=wanted), token=token)

    @property
    def parent(self) -> Path:
        """The directory that holds them all."""
        return self.run / SHARDS

    @property
    def mark(self) -> Path:
        """The file by which a worker knows the disk."""
        return self.parent / _MARK

    @property
    def shards(self) -> list[Shard]:
        """All shards, in order."""
        return [Shard(index=index, count=self.count) for index in range(1, self.count + 1)]

    def folder(self, shard: Shard) -> Path:
        """One shard's directory."""
        return self.parent / f"{shard.index}-of-{shard.count}"

    def seeded(self, config: RunConfig) -> None:
        """Give the shards what the run's own store has and they have not: one process, going on alone, paid for it.

        Raises:
            StoreError: a store cannot be read or written.
        """
        whole = _open(self.run)
        try:
            if whole.completions_held() != (whole.get_state(_HELD) or 0):
                for shard in self._begun():
                    whole.absorb(self.folder(shard) / STORE)
                    shutil.rmtree(self.folder(shard))
            begun = self._begun()
            for shard in self.shards if whole.completions_held() else ():
                folder = self.folder(shard)
                if shard not in begun:
                    with open_directory(folder, replace(config, shard=str(shard))) as store:
                        store.absorb(self.run / STORE)
                    whole.note_absorbed(folder / STORE)
            whole.put_state(_HELD, whole.completions_held())
        finally:
            whole.close()

    def gathered(self) -> None:
        """Take what the shards' stores have into the run's own, so that nothing paid for is missing from its accounts.

        Raises:
            StoreError: a store cannot be read or written.
        """
        whole = _open(self.run)
        try:
            for shard in self._begun():
                whole.absorb(self.folder(shard) / STORE)
            whole.put_state(_HELD, whole.completions_held())
        finally:
            whole.close()

    def _begun(self) -> list[Shard]:
        return [shard for shard in self.shards if (self.folder(shard) / STORE).is_file()]

    def abandoned(self, shard: Shard) -> None:
        """Let go of the lock file of a worker that has died, which on a network file system outlives it."""
        if is_network(self.parent):
            (self.folder(shard) / LOCK).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove them all: the run's directory has everything."""
        shutil.rmtree(self.parent, ignore_errors=True)


def seen(mark: Path, token: str) -> bool:
    """Whether this process sees the disk on which the mark was made."""
    try:
        return mark.read_text(encoding="utf-8") == token
    except (OSError, UnicodeDecodeError):
        return False


def packed(folder: Path) -> dict[str, bytes]:
    """A shard's files by name, to be sent; none where there is no directory yet."""
    if not folder.is_dir():
        return {}
    return {path.name: read_bytes(path) for path in sorted(folder.iterdir()) if path.is_file() and path.name != LOCK}


def unpacked(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make the directory hold these files, and no others.

    Raises:
        StoreError: it cannot be written.
    """
    _check_names(list(files))
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in files and path.name != LOCK:
            path.unlink()
    for name, content in files.items():
        write_whole(folder / name, [content])


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if Path(name).name != name:
            raise StoreError(f"a worker sent a file named {name!r}, which is no plain name")


def _open(folder: Path) -> RunStore:
    return RunStore(folder / STORE, write_ahead=not is_network(folder))
