"""What observers are told: figures, the JSON log, spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore.errors import BadReply, RateLimited, StoreError
from magicore.llms.calls import Call
from magicore.llms.profile import EndpointProfile
from magicore.report.figures import Figures
from magicore.report.observing import observed
from magicore.report.run_log import RunLog
from magicore.runtime.observer import Observers, RunObserver
from magicore.types import CallKey, Usage

KEY = CallKey(problem="p", role="solver")


def call(**more: Any) -> Call:
    return Call(**({"model": "m", "key": KEY, "asked": 4, "given": 4} | more))


def test_figures() -> None:
    now = 0.0
    figures = Figures(clock=lambda: now)
    figures.calling(4)
    figures.calling(4)
    assert figures.in_flight == 8
    now = 10.0
    figures.called(call(usage=Usage(prompt=50, completion=1000, calls=1)))
    assert figures.in_flight == 4 and figures.rate == pytest.approx(100.0) and figures.tokens == 1050
    now = 20.0
    figures.called(call(given=0, error=RateLimited("slow down"), lost=0))
    figures.calling(4)
    figures.called(call(given=0, error=BadReply("no JSON"), lost=1))
    assert figures.rate == pytest.approx(1000 / 15)
    assert str(figures) == "67 tokens/s, 0 in flight, 1 slowed down, 1 unreadable" and figures.lost == 1
    now = 40.0
    assert figures.rate == 0.0


def test_the_log_appends_one_object_an_event(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for _ in range(2):
        with RunLog(path, clock=lambda: 12.5) as log:
            log.started(3)
            log.called(call(usage=Usage(prompt=5, completion=7, cached=2), seconds=0.25, retry_in=None))
            log.called(call(given=0, error=RateLimited("slow"), retry_in=1.5, attempt=2))
            log.finished({"n": 3})
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["event"] for row in rows] == ["started", "call", "call", "finished"] * 2
    assert rows[1] | {"prompt": 5, "cached": 2, "completion": 7, "seconds": 0.25, "error": None, "at": 12.5} == rows[1]
    assert rows[2]["error"] == {"type": "RateLimited", "message": "slow"} and rows[2]["retry_in"] == 1.5
    with pytest.raises(StoreError, match="cannot be opened"):
        RunLog(tmp_path / "absent" / "log.jsonl")


def test_several_observers_hear_the_same() -> None:
    heard: list[tuple[int, str]] = []

    class Ear(RunObserver):
        def __init__(self, number: int) -> None:
            self.number = number

        def called(self, call: Call) -> None:
            heard.append((self.number, call.model))

        def finished(self, summary: Any) -> None:
            heard.append((self.number, "finished"))

    both = Observers([Ear(1), Ear(2)])
    both.started(1)
    both.calling("m", 1)
    both.called(call())
    both.finished({})
    assert heard == [(1, "m"), (2, "m"), (1, "finished"), (2, "finished")]
    with observed(Ear(3)) as alone:
        assert isinstance(alone, Ear)


def test_a_run_is_spans_of_problems_and_calls() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from magicore.report.traces import Traces
    from magicore.testing.hostile import Faults, HostileEndpoint, running

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    faults = Faults(rate=0.5, kinds={"server-error": 1.0}, seed=1)
    problems = [{"id": f"p{i}", "question": f"What is {i} plus 1?", "answer": str(i + 1)} for i in range(8)]
    with running(HostileEndpoint(faults=faults)) as endpoint, Traces(provider) as traces:
        run = magicore.solve_batch(problems, model=endpoint.name, method="self-consistency", k=2, progress=traces)
    spans = kept.get_finished_spans()
    [whole] = [span for span in spans if span.name == "magicore.run"]
    by_id = {span.context.span_id: span for span in spans if span.context is not None}
    solved = [span for span in spans if span.name == "magicore.problem"]
    calls = [span for span in spans if span.name.startswith("chat ")]
    assert {span.attributes["magicore.problem.id"] for span in solved if span.attributes} == {f"p{i}" for i in range(8)}
    assert all(span.parent is not None and by_id[span.parent.span_id] is whole for span in solved)
    assert all(span.parent is not None and by_id[span.parent.span_id] in solved for span in calls)
    completions = sum(int(span.attributes["gen_ai.usage.output_tokens"]) for span in calls if span.attributes)  # type: ignore[call-overload]
    assert completions == sum(entry.usage.completion for result in run.results for entry in result.usage)
    failed = [span for span in calls if span.attributes and "error.type" in span.attributes]
    assert len(failed) == endpoint.ledger.totals()["refused"] > 0
    assert len(calls) == endpoint.ledger.totals()["requests"]


class TestProfile:
    def test_a_limit_on_n_is_believed_on_the_second_short_reply(self) -> None:
        profile = EndpointProfile()
        profile.learn_count(16, 1)
        assert profile.max_n is None and profile.n is None
        profile.learn_count(15, 1)
        assert profile.max_n == 1 and profile.n is False

    def test_one_short_reply_among_full_ones_is_an_accident(self) -> None:
        profile = EndpointProfile()
        for asked, given in [(16, 8), (8, 8), (16, 16), (16, 8), (16, 8), (16, 3)]:
            profile.learn_count(asked, given)
        assert profile.max_n is None and profile.n is True

    def test_an_endpoint_that_gives_eight_at_the_most(self) -> None:
        profile = EndpointProfile()
        for given in (8, 8):
            profile.learn_count(16, given)
        assert profile.max_n == 8

    def test_equal_samples_are_believed_when_they_come_twice_and_never_after_differing_ones(self) -> None:
        long = "the same long answer, word for word"
        profile = EndpointProfile()
        profile.learn_samples(["4", "4"])
        profile.learn_samples([long, long])
        assert profile.distinct is None
        profile.learn_samples([long, long])
        assert profile.distinct is False
        profile = EndpointProfile()
        profile.learn_samples([long, "another"])
        for _ in range(3):
            profile.learn_samples([long, long])
        assert profile.distinct is True

    def test_what_is_remembered(self) -> None:
        profile = EndpointProfile(limit="max_tokens", max_n=1, n=False, logprobs=False, answered=True, most_given=3)
        profile.refused = {"logprobs": "no", "seed": "no"}
        known = json.loads(json.dumps(profile.known()))
        again = EndpointProfile()
        again.recall(known)
        assert (again.limit, again.max_n, again.n, again.refused) == ("max_tokens", 1, False, {"seed": "no"})
        assert again.logprobs is None and again.answered is False and again.most_given == 0
