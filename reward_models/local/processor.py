"""One thread computes: whatever PyTorch does on the processor's cores goes through it, whoever asks.

Every thread that calls OpenMP gets a team as wide as the machine. Two teams at work share the cores badly; and once the
process has more threads in teams than the machine has cores, even a team that works alone no longer spins between its
loops but is put to sleep and woken by the system. Measured on two cores, SmolLM2-135M in bfloat16, 64 chains: a step of
sampling took 112 ms in the only thread that had a team, and 170 ms beside an idle second one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")

_NAME = "processor"
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=_NAME)


def compute(work: Callable[[], T], device: torch.device | str = "cpu") -> T:
    """Do the work and give what it returns, or raise what it raises: in the one thread that computes where it is for
    the processor, here where it is for another device. What is asked for first is done first.
    """
    if torch.device(device).type != "cpu" or threading.current_thread().name.startswith(_NAME):
        return work()
    return _thread.submit(work).result()
