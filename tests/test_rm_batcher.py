"""The batcher: order, errors to their owners, nothing lost, few batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from reward_models.batcher import Batcher
from reward_models.errors import RewardModelError, StepCountError
from reward_models.types import OutcomeScore, Solution

WAIT = 20


def solutions(*values: float) -> list[Solution]:
    return [Solution(question="q", text=str(value)) for value in values]


def values(scores: Sequence[OutcomeScore]) -> list[float | None]:
    return [score.value for score in scores]


class Gated:
    """Scores a solution with the number it is; waits at a gate, and fails on the text "bad"."""

    name = "gated"

    def __init__(self, *, is_open: bool = False) -> None:
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        if is_open:
            self.gate.set()

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        self.batches.append([solution.text for solution in solutions])
        self.threads.add(threading.get_ident())
        self.entered.set()
        assert self.gate.wait(WAIT)
        if any(solution.text == "bad" for solution in solutions):
            raise RewardModelError("a bad solution", model=self.name)
        return [OutcomeScore(value=float(solution.text)) for solution in solutions]


def waiting_behind(model: Gated, batcher: Batcher[OutcomeScore]) -> Future[list[OutcomeScore]]:
    """A first request that keeps the worker busy, so that what follows gathers."""
    first = batcher.submit(solutions(0.5))
    assert model.entered.wait(WAIT)
    return first


def test_what_waits_is_scored_together_in_order() -> None:
    model = Gated()
    with Batcher(model) as batcher:
        first = waiting_behind(model, batcher)
        futures = [batcher.submit(solutions(problem / 10, problem / 100)) for problem in range(10)]
        model.gate.set()
        assert values(first.result(WAIT)) == [0.5]
        for problem, future in enumerate(futures):
            assert values(future.result(WAIT)) == [problem / 10, problem / 100]
    assert [len(batch) for batch in model.batches] == [1, 20]
    assert len(model.threads) == 1 and threading.get_ident() not in model.threads


def test_ten_problems_cost_a_few_batches() -> None:
    """Ten problems of 8 chains that ask at about the same time: the first goes alone at the most, the rest together."""
    model = Gated()

    async def run(batcher: Batcher[OutcomeScore]) -> list[list[OutcomeScore]]:
        asked = [asyncio.ensure_future(batcher.ascore(solutions(*[at / 10] * 8))) for at in range(10)]
        while not model.entered.is_set():
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # every problem has asked by now
        model.gate.set()
        return await asyncio.gather(*asked)

    with Batcher(model) as batcher:
        found = asyncio.run(run(batcher))
    assert [values(scores) for scores in found] == [[at / 10] * 8 for at in range(10)]
    assert len(model.batches) <= 3


def test_many_threads_at_once() -> None:
    model = Gated(is_open=True)
    with Batcher(model) as batcher, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda at: batcher.submit(solutions(at / 1000)).result(WAIT), range(500)))
    assert [values(scores) for scores in found] == [[at / 1000] for at in range(500)]
    assert sum(map(len, model.batches)) == 500
    assert len(model.threads) == 1


def test_an_error_reaches_its_own_caller_only() -> None:
    model = Gated()
    bad = [Solution(question="q", text="bad")]
    with Batcher(model) as batcher:
        first = waiting_behind(model, batcher)
        futures = [batcher.submit(solutions(0.1)), batcher.submit(bad), batcher.submit(solutions(0.2, 0.3))]
        model.gate.set()
        assert values(first.result(WAIT)) == [0.5]
        assert values(futures[0].result(WAIT)) == [0.1]
        assert values(futures[2].result(WAIT)) == [0.2, 0.3]
        with pytest.raises(RewardModelError, match="a bad solution"):
            futures[1].result(WAIT)
        assert values(batcher.submit(solutions(0.9)).result(WAIT)) == [0.9], "the worker goes on"


def test_even_what_ends_a_thread_reaches_the_caller() -> None:
    class Quits:
        name = "quits"

        def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
            raise SystemExit(3)

    with Batcher(Quits()) as batcher, pytest.raises(SystemExit):
        batcher.submit(solutions(0.1)).result(WAIT)


def test_a_wrong_number_of_scores_is_an_error() -> None:
    class Short:
        name = "short"

        def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
            return [OutcomeScore(value=0.5)]

    with Batcher(Short()) as batcher:
        assert values(batcher.submit(solutions(0.1)).result(WAIT)) == [0.5]
        with pytest.raises(StepCountError, match="1 scores for 2 solutions"):
            batcher.submit(solutions(0.1, 0.2)).result(WAIT)


def test_a_cancelled_caller_takes_only_its_own_solutions_out() -> None:
    model = Gated()

    async def run(batcher: Batcher[OutcomeScore]) -> list[list[OutcomeScore]]:
        first = asyncio.ensure_future(batcher.ascore(solutions(0.5)))
        await asyncio.to_thread(model.entered.wait, WAIT)
        asked = [asyncio.ensure_future(batcher.ascore(solutions(at / 10))) for at in range(4)]
        await asyncio.sleep(0)
        asked[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked[1]
        first.cancel()  # being scored: the result is dropped
        with pytest.raises(asyncio.CancelledError):
            await first
        model.gate.set()
        return await asyncio.gather(asked[0], asked[2], asked[3])

    with Batcher(model) as batcher:
        found = asyncio.run(run(batcher))
    assert [values(scores) for scores in found] == [[0.0], [0.2], [0.3]]
    assert model.batches == [["0.5"], ["0.0", "0.2", "0.3"]]


def test_requests_are_gathered_up_to_a_bound_and_never_divided() -> None:
    model = Gated()
    with Batcher(model, most=3) as batcher:
        waiting_behind(model, batcher)
        futures = [batcher.submit(solutions(*[0.1] * size)) for size in (2, 1, 2, 5, 1)]
        model.gate.set()
        assert [len(future.result(WAIT)) for future in futures] == [2, 1, 2, 5, 1]
    assert [len(batch) for batch in model.batches] == [1, 3, 2, 5, 1]


def test_nothing_asked_nothing_done() -> None:
    model = Gated()
    with Batcher(model) as batcher:
        assert batcher.submit([]).result(WAIT) == []
        assert asyncio.run(batcher.ascore([])) == []
    assert model.batches == []


def test_closing_scores_what_waits_and_refuses_the_rest() -> None:
    model = Gated()
    batcher = Batcher(model)
    waiting_behind(model, batcher)
    waiting = batcher.submit(solutions(0.1))
    closer = threading.Thread(target=batcher.close)
    closer.start()
    model.gate.set()
    closer.join(WAIT)
    assert values(waiting.result(0)) == [0.1]
    with pytest.raises(RewardModelError, match="after the end of the run"):
        batcher.submit(solutions(0.2))
    batcher.close()
