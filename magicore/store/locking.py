"""One process a run: a lock on the run's directory, and whether the directory lies on a network file system.

On a local disk the operating system holds the lock and lets go of it when the process ends, however it ends. On a
network file system, where such locks cannot be relied on, a lock file made exclusively stands for it; a lock file left
behind by a dead process of this machine is taken over, one of another machine is named in the error.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from magicore.errors import StoreError
from magicore.store.json_lines import unwritable

LOCK = ".lock"
NETWORK_TYPES = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)
"""File systems on which SQLite's write-ahead log and the operating system's locks are unsafe."""


@contextmanager
def locked(directory: Path, *, network: bool) -> Iterator[None]:
    """Hold the directory for this process.

    Raises:
        StoreError: another process holds it, or the lock file cannot be made.
    """
    holder = _lock_file if network else _os_lock
    with holder(directory / LOCK):
        yield


def is_network(path: Path, mounts: str | None = None) -> bool:
    """Whether ``path`` lies on a network file system, as far as the system tells (``/proc/mounts``); else false."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
    target = path.resolve()
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        if target.is_relative_to(point) and len(point.parts) > best:
            best, kind = len(point.parts), fields[2]
    return kind in NETWORK_TYPES


def _who() -> str:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname()})


def _taken(directory: Path, holder: str) -> StoreError:
    try:
        told = json.loads(holder)
        who = f"process {told['pid']} on {told['host']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return StoreError(f"{who} is working on the run in {directory}; wait for it, or give another --out")


@contextmanager
def _os_lock(path: Path) -> Iterator[None]:
    import fcntl

    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"the run's lock {path} cannot be made: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(path.parent, os.pread(file, 4096, 0).decode("utf-8", "replace")) from None
        with suppress(OSError):  # on a full disk the lock is held without saying by whom
            os.ftruncate(file, 0)
            os.pwrite(file, _who().encode(), 0)
        yield
    finally:
        os.close(file)


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    own = _who()
    for attempt in range(2):
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            break
        except FileExistsError:
            holder = path.read_text(encoding="utf-8", errors="replace")
            if attempt or not _dead_here(holder):
                raise _taken(path.parent, holder) from None
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"the run's lock {path} cannot be made: {error.strerror}") from error
    try:
        try:
            os.write(file, own.encode())
        except OSError as error:  # a file that does not say whose it is would stand for ever
            raise unwritable(path, error) from error
        finally:
            os.close(file)
        yield
    finally:
        path.unlink(missing_ok=True)


def _dead_here(holder: str) -> bool:
    """Whether the lock file's process ran on this machine and has ended."""
    try:
        told = json.loads(holder)
        if told["host"] != socket.gethostname():
            return False
        os.kill(int(told["pid"]), 0)
    except ProcessLookupError:
        return True
    except (ValueError, KeyError, TypeError, PermissionError):
        return False
    return False
