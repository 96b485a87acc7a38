"""Real servers for the integration tests: each a context manager that starts one on a free port and stops it.

Both serve the embedded model, exported once to a Hugging Face folder (``scripts/export_embedded.py``).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 600.0
STOP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server: its OpenAI-compatible base URL, the model's name there, and where its output goes."""

    url: str
    model: str
    log: Path

    @property
    def name(self) -> str:
        """The model's name for magicore, e.g. ``openai:smollm2@http://127.0.0.1:8000/v1``."""
        return f"openai:{self.model}@{self.url}"


class ServerError(RuntimeError):
    """A server ended or did not answer in time; carries the end of its output."""


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def exported_model(folder: Path) -> Path:
    """The embedded model as a Hugging Face folder, written into ``folder`` unless it is there already."""
    script = ROOT / "scripts" / "export_embedded.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder


def vllm_command() -> Path | None:
    """The ``vllm`` program of the environment that ``scripts/setup_vllm.sh`` makes, if it is there."""
    venv = Path(os.environ.get("MAGICORE_VLLM_VENV", ROOT / ".venv-vllm"))
    command = venv / "bin" / "vllm"
    return command if command.exists() else None


@contextmanager
def vllm(model: Path, log: Path, *, options: Sequence[str] = (), name: str = "smollm2") -> Iterator[Server]:
    """``vllm serve`` on a CPU, in eager mode: compilation costs a minute at every start and pays back only later.

    Args:
        model: A Hugging Face folder.
        log: The file that takes the server's output.
        options: Further options of ``vllm serve``.
        name: The name the model is served under.
    """
    command = vllm_command()
    if command is None:
        raise ServerError("vLLM is not installed; run scripts/setup_vllm.sh")
    port = free_port()
    arguments = [str(command), "serve", str(model), "--served-model-name", name]
    arguments += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    # On a CPU, vLLM 0.32 dies of a seeded request whose prompt it splits ("CPU Generator does not use offset"), which
    # it does where the prompts of one step exceed this many tokens.
    arguments += ["--max-num-batched-tokens", "65536"]
    arguments += ["--gpu-memory-utilization", "0.3", "--max-model-len", "2048", *options]
    settings = {"VLLM_NO_USAGE_STATS": "1", "VLLM_HOST_IP": "127.0.0.1"}
    with running(arguments, log, health=f"http://127.0.0.1:{port}/health", settings=settings):
        yield Server(url=f"http://127.0.0.1:{port}/v1", model=name, log=log)


@contextmanager
def transformers(model: Path, log: Path, *, options: Sequence[str] = ()) -> Iterator[Server]:
    """``transformers serve``, pinned to ``model``; the model's name there is the folder's path.

    Args:
        model: A Hugging Face folder.
        log: The file that takes the server's output.
        options: Further options of ``transformers serve``.
    """
    port = free_port()
    arguments = [str(Path(sys.executable).parent / "transformers"), "serve", str(model)]
    arguments += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", *options]
    # One thread: several spin against each other, and against the tests, on a small machine.
    with running(arguments, log, health=f"http://127.0.0.1:{port}/health", settings={"OMP_NUM_THREADS": "1"}):
        yield Server(url=f"http://127.0.0.1:{port}/v1", model=str(model), log=log)


@contextmanager
def running(command: Sequence[str], log: Path, *, health: str, settings: dict[str, str]) -> Iterator[None]:
    """Run ``command`` until the block ends, and enter the block once ``health`` answers.

    Raises:
        ServerError: It ended, or ``health`` gave no answer within ``START_SECONDS``.
    """
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **settings}
    with log.open("w", encoding="utf-8") as output:
        # A session of its own, so that the workers it starts end with it.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            wait_until_healthy(process, health, log)
            yield
        finally:
            stop(process)


def wait_until_healthy(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    """Return once ``health`` answers 200."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"the server ended with code {process.returncode}:\n{tail(log)}")
        with suppress(httpx2.TransportError):
            if httpx2.get(health, timeout=5, trust_env=False).status_code == httpx2.codes.OK:
                return
        time.sleep(0.5)
    raise ServerError(f"no answer from {health} within {START_SECONDS:.0f} s:\n{tail(log)}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and what it started: asked first, then killed, since a server may wait for a long generation."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(log: Path, lines: int = 30) -> str:
    """The last lines of the server's output."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
