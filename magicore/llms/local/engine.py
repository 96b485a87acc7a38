"""The worker that samples for a local model: one thread, one batch, requests admitted as rows come free.

Requests of many problems that wait at the same time share every step. The k chains of a question share one reading of
its prompt. When a chain ends its row goes to whoever waits, so the batch stays full while chains end at their own pace.

Transformers' own continuous batching was tried and left (5.24, one thread, SmolLM2-135M in bfloat16, 4 questions of 8
chains of 48 tokens): 40 tokens per second of processor time against 140 here, and it has one random state for the whole
batch, so that a sample depends on its neighbours.

Where models take turns on one device, the engine holds the floor while it has jobs, and all that it keeps on the device
beside the weights is given up when another model enters.

In a deterministic engine every request runs by itself instead, in passes of a fixed number of rows in which sample i
always has row i mod rows: then sample i is the same to the last bit whether it is drawn with 3 others, with 39, or
alone.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch

from magicore.errors import ContextExceeded, LanguageModelError, MagicoreError
from magicore.llms.base import Message
from magicore.llms.local.batch import Batch, Row, Wanted
from magicore.llms.local.loading import LoadedModel
from magicore.llms.local.prompts import Prompt, PromptReader, prompt_tokens
from reward_models.local.processor import compute
from reward_models.turns import Seat, Turns

FIXED_ROWS = 16
_GATHER_S = 0.005
_READ_TOKENS = 16_384
"""So many tokens of prompts are read between two steps, and held until their chains have rows."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What came of a job: its chains in order, and the length of its prompt in tokens."""

    rows: tuple[Row, ...]
    prompt_tokens: int


@dataclass(eq=False, kw_only=True)
class Job:
    """One request: a conversation, and for each chain wanted of it its sample index and how to draw it."""

    messages: Sequence[Message]
    prefill: str | None
    wanted: Sequence[tuple[int, Wanted]]
    future: Future[Sampled] = field(default_factory=Future)
    finished: dict[int, Row] = field(default_factory=dict)

    def row(self, place: int, prompt: Prompt, context: int) -> Row:
        """The chain at ``place`` after the prompt, in a context of so many tokens."""
        _, wanted = self.wanted[place]

        def done(row: Row) -> None:
            self.finished[place] = row

        return Row(
            wanted=wanted,
            after=prompt.tokens[-1],
            limit=min(wanted.limit, context - len(prompt.tokens)),
            done=done,
            draw=random.Random(wanted.key),
            cancelled=self.future.cancelled,
        )

    def resolve(self, prompt_tokens: int) -> bool:
        """Hand over the chains after a prompt of so many tokens if all are finished; whether they are."""
        if len(self.finished) < len(self.wanted):
            return False
        rows = tuple(self.finished[place] for place in range(len(self.wanted)))
        self._settle(lambda: self.future.set_result(Sampled(rows=rows, prompt_tokens=prompt_tokens)))
        return True

    def fail(self, error: BaseException) -> None:
        """Hand over why there are no chains."""
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        except InvalidStateError:  # whoever waited has given up in the meantime
            return


class Engine:
    """Samples in a thread of its own. The thread starts, and loads the model, with the first request.

    Args:
        load: Loads the model, or loads it again.
        unload: Frees the device of it; called between turns only.
        rows: The most chains in one batch.
        deterministic: Whether every request runs by itself, in passes of a fixed shape.
        turns: The floor that this model shares with others; its own otherwise.
    """

    def __init__(
        self,
        load: Callable[[], LoadedModel],
        *,
        rows: int,
        deterministic: bool,
        unload: Callable[[], None] = lambda: None,
        turns: Turns | None = None,
    ) -> None:
        self._load = load
        self._unload = unload
        self._work: _Work = _Alone() if deterministic else _Together(rows)
        self._turns = turns or Turns()
        self._device = torch.device("cpu")
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._seat: Seat | None = None
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """Take a job on; its future resolves when all its chains are there."""
        with self._lock:
            if self._thread is None:
                self._seat = self._turns.seat(enter=self._enter, leave=self._leave)
                self._thread = threading.Thread(
                    target=self._run, args=(self._seat,), name="magicore-local-model", daemon=True
                )
                self._thread.start()
        self._inbox.put(job)

    def close(self) -> None:
        """Give up what is under way, end the thread and wait for it. A later job starts a new one."""
        with self._lock:
            thread, self._thread = self._thread, None
            seat, self._seat = self._seat, None
        if thread is not None and seat is not None:
            self._inbox.put(None)
            seat.close()
            thread.join()

    def _enter(self) -> None:
        loaded = compute(self._load)
        self._device = loaded.device
        self._work.begin(loaded)

    def _leave(self) -> None:
        self._work.end()
        self._unload()

    def _run(self, seat: Seat) -> None:
        work = self._work
        late: list[Job] = []
        while True:
            if not work.jobs:
                work.jobs.extend(late)
                late.clear()
            arrived = self._arrived(wait=not work.jobs)
            closing = None in arrived
            jobs = [job for job in arrived if job is not None]
            (late if work.jobs and seat.overdue else work.jobs).extend(jobs)
            if closing or not self._turn(work, seat):
                break
        for job in [*work.drop(), *late]:
            job.fail(LanguageModelError("the model was closed"))
        work.end()

    def _turn(self, work: _Work, seat: Seat) -> bool:
        """One turn of the work, once the floor is there; ``False`` if it never will be."""
        try:
            if not seat.take():
                return False
        except Exception as error:  # noqa: BLE001 - whatever it was, those who wait must hear of it
            for job in work.drop():
                job.fail(_unloadable(error))
            return True
        try:
            compute(lambda: _infer(work), self._device)
        except Exception as error:  # noqa: BLE001 - whatever it was, those who wait must hear of it
            for job in work.drop():
                job.fail(LanguageModelError(f"sampling failed ({type(error).__name__}: {error})"))
        if not work.jobs:
            seat.rest()
        return True

    def _arrived(self, *, wait: bool) -> list[Job | None]:
        """The jobs in the inbox; with ``wait`` at least one, and those that come right behind it."""
        found: list[Job | None] = []
        if wait:
            found.append(self._inbox.get())
            time.sleep(_GATHER_S)
        while not self._inbox.empty():
            found.append(self._inbox.get())
        return found


def _infer(work: _Work) -> None:
    with torch.inference_mode():
        work.turn()


def _unloadable(error: Exception) -> MagicoreError:
    if isinstance(error, MagicoreError):
        return error
    return LanguageModelError(f"the model cannot be loaded ({type(error).__name__}: {error})")


class _Work(Protocol):
    """What the worker does between ``begin`` and ``end``; ``jobs`` may wait before it."""

    jobs: deque[Job]

    def begin(self, loaded: LoadedModel) -> None: ...

    def turn(self) -> None: ...

    def drop(self) -> list[Job]: ...

    def end(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class _Open:
    """What is on the device during a turn."""

    loaded: LoadedModel
    reader: PromptReader
    batch: Batch


@dataclass(kw_only=True)
class _Begun:
    """How far a job has come: the length of its ``prompt``, which is let go once all chains are placed."""

    prompt: Prompt | None
    prompt_tokens: int
    placed: int = 0


class _Together:
    """All jobs in one batch.

    Rows are given to those who wait when an eighth of the batch is free or nothing is under way, so that prompts are
    read several at a time.
    """

    def __init__(self, rows: int) -> None:
        self.jobs: deque[Job] = deque()
        self._rows = rows
        self._open: _Open | None = None
        self._begun: dict[Job, _Begun] = {}

    def begin(self, loaded: LoadedModel) -> None:
        """Work with this model from now on."""
        self._open = _Open(loaded=loaded, reader=PromptReader(loaded, reuse=True), batch=Batch(loaded, self._rows))

    def end(self) -> None:
        """Let go of the model, and of the keys and values that are kept."""
        self._open = None

    def turn(self) -> None:
        """Admit what fits, and draw one token for every chain."""
        opened = self._open
        if opened is None:
            raise LanguageModelError("the model is not loaded")
        for job in [job for job in self.jobs if job.future.cancelled()]:
            self._forget(job)
        if not opened.batch.active or opened.batch.free >= self._rows // 8:
            self._place(opened)
            if not any(begun.prompt for begun in self._begun.values()):
                self._read(opened)
                self._place(opened)
        if opened.batch.active:
            opened.batch.step()
        for job, begun in list(self._begun.items()):
            if job.resolve(begun.prompt_tokens):
                self._forget(job)

    def drop(self) -> list[Job]:
        """Stop everything; gives the jobs that were not done."""
        left = list(self.jobs)
        if self._open is not None:
            self._open = replace(self._open, batch=self._open.batch.emptied())
        self.jobs.clear()
        self._begun.clear()
        return left

    def _read(self, opened: _Open) -> None:
        """Read the prompts of those whose chains come next: as many as fill a batch, within reason."""
        rows, room = self._rows, _READ_TOKENS
        unread: dict[Job, list[int]] = {}
        for job in [job for job in self.jobs if job not in self._begun]:
            if rows <= 0 or room <= 0:
                break
            tokens = _tokens(opened.loaded, job)
            if tokens is None:
                self.jobs.remove(job)
                continue
            unread[job] = tokens
            rows, room = rows - len(job.wanted), room - len(tokens)
        for job, prompt in zip(unread, opened.reader.read(list(unread.values())), strict=True):
            self._begun[job] = _Begun(prompt=prompt, prompt_tokens=len(prompt.tokens))

    def _place(self, opened: _Open) -> None:
        """Give rows to the chains that come next."""
        for job, begun in self._begun.items():
            if (prompt := begun.prompt) is None:
                continue
            context = opened.loaded.context
            longest = min(context, len(prompt.tokens) + job.wanted[begun.placed][1].limit)
            room = opened.batch.room(prompt.bytes_per_token * longest)
            places = range(begun.placed, min(len(job.wanted), begun.placed + room))
            if not places:
                return
            opened.batch.add(prompt, [job.row(place, prompt, context) for place in places])
            begun.placed = places.stop
            if begun.placed == len(job.wanted):
                begun.prompt = None

    def _forget(self, job: Job) -> None:
        self.jobs.remove(job)
        self._begun.pop(job, None)


class _Alone:
    """Each job by itself, in passes of a fixed shape."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self._loaded: LoadedModel | None = None

    def begin(self, loaded: LoadedModel) -> None:
        """Work with this model from now on."""
        self._loaded = loaded

    def end(self) -> None:
        """Let go of the model."""
        self._loaded = None

    def turn(self) -> None:
        """Do the job that has waited longest."""
        loaded = self._loaded
        if loaded is None:
            raise LanguageModelError("the model is not loaded")
        job = self.jobs[0]
        tokens = None if job.future.cancelled() else _tokens(loaded, job)
        if tokens is not None:
            [prompt] = PromptReader(loaded, reuse=False).read([tokens])
            passes: dict[int, list[int]] = {}
            for place, (index, _) in enumerate(job.wanted):
                passes.setdefault(index // FIXED_ROWS, []).append(place)
            for places in passes.values():
                self._pass(loaded, job, prompt, places)
            job.resolve(len(tokens))
        self.jobs.popleft()

    def drop(self) -> list[Job]:
        """Stop everything; gives the jobs that were not done."""
        left = list(self.jobs)
        self.jobs.clear()
        return left

    def _pass(self, loaded: LoadedModel, job: Job, prompt: Prompt, places: Sequence[int]) -> None:
        rows: list[Row | None] = [None] * FIXED_ROWS
        for place in places:
            rows[job.wanted[place][0] % FIXED_ROWS] = job.row(place, prompt, loaded.context)
        batch = Batch(loaded, FIXED_ROWS, fixed=True)
        batch.add(prompt, rows)
        while batch.active:
            batch.step()


def _tokens(loaded: LoadedModel, job: Job) -> list[int] | None:
    """A job's prompt; ``None`` if it cannot be made or leaves no room, which the job is then told."""
    try:
        tokens = prompt_tokens(loaded.tokenizer, job.messages, job.prefill)
        if len(tokens) >= loaded.context:
            raise ContextExceeded(
                f"the prompt has {len(tokens)} tokens, the model reads {loaded.context}; shorten it, or take a model "
                "that reads more"
            )
    except MagicoreError as error:
        job.fail(error)
        return None
    return tokens
