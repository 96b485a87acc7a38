"""What every test runs under: no network but this machine's own, no keys, no Hub, plain terminal output."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from servers import Server

ROOT = Path(__file__).resolve().parent.parent
# Read by huggingface_hub, transformers and rich as they are imported.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "160",
}
PATCHES = pytest.MonkeyPatch()


class NetworkBlocked(RuntimeError):
    """A test tried to reach another machine."""


def is_local(host: object) -> bool:
    """Whether ``host`` names this machine: the loopback range, its name, or any address (what a server binds to)."""
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name in ("", "localhost"):
        return True
    try:
        address = ip_address(str(name).split("%", maxsplit=1)[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def guard_connect(real: Callable[..., Any]) -> Callable[..., Any]:
    """``socket.connect`` or ``connect_ex``, refusing internet addresses that are not local."""

    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_local(address[0]):
            raise NetworkBlocked(f"a test tried to connect to {address[0]}: tests reach this machine only")
        return real(self, address)

    return connect


def guard_lookup(real: Callable[..., Any]) -> Callable[..., Any]:
    """``socket.getaddrinfo``, refusing names that are not local."""

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise NetworkBlocked(f"a test tried to look {host!r} up: tests reach this machine only")
        return real(host, *args, **kwargs)

    return getaddrinfo


def pytest_configure() -> None:
    """Set all of it before anything is collected: an import that reaches out is a fault as well."""
    for name, value in ENVIRONMENT.items():
        PATCHES.setenv(name, value)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_API_TOKEN")) or name == "HF_TOKEN":
            PATCHES.delenv(name)
    # A terminated run ends as an interrupted one does, so that fixtures stop the servers they started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    PATCHES.setattr(socket.socket, "connect", guard_connect(socket.socket.connect))
    PATCHES.setattr(socket.socket, "connect_ex", guard_connect(socket.socket.connect_ex))
    PATCHES.setattr(socket, "getaddrinfo", guard_lookup(socket.getaddrinfo))


def pytest_unconfigure() -> None:
    """Leave the process as it was."""
    PATCHES.undo()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark and replay data, which is not part of the product; without it the test is skipped.

    ``MAGICORE_TEST_DATA`` names it; otherwise it is looked for beside the checkout.
    """
    folder = Path(os.environ.get("MAGICORE_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; MAGICORE_TEST_DATA names the folder")
    return folder


@pytest.fixture(scope="session")
def embedded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model as a Hugging Face folder, for servers; half a minute's work, so for integration tests only."""
    from servers import exported_model

    return exported_model(tmp_path_factory.mktemp("embedded") / "smollm2")


@pytest.fixture(scope="session")
def vllm_server(embedded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """vLLM serving the embedded model; skipped where ``scripts/setup_vllm.sh`` has not run."""
    import servers

    if servers.vllm_command() is None:
        pytest.skip("vLLM is not installed; scripts/setup_vllm.sh installs it")
    with servers.vllm(embedded_folder, tmp_path_factory.mktemp("vllm") / "log") as server:
        yield server


@pytest.fixture(scope="session")
def transformers_server(embedded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """``transformers serve`` with the embedded model."""
    import servers

    with servers.transformers(embedded_folder, tmp_path_factory.mktemp("transformers") / "log") as server:
        yield server
