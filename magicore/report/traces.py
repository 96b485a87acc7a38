"""A run as OpenTelemetry spans: the run, its problems, their calls (extra ``otel``).

Names and attributes follow OpenTelemetry's conventions for generative AI (``gen_ai.*``) where they have one. Spans hold
no prompt, no completion and no key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from magicore import __version__
from magicore.errors import MissingExtraError
from magicore.llms.calls import Call
from magicore.runtime.observer import RunObserver
from magicore.types import Result

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

_NANO = 1_000_000_000


class Traces(RunObserver):
    """Writes spans to a provider, by default the process's own.

    Where there is none, one is set up that sends them where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says
    (http://localhost:4318 unless set).

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError as error:
            raise _missing() from error
        self._trace = trace
        self._made: Any = None
        if provider is None:
            provider = trace.get_tracer_provider()
            if isinstance(provider, trace.ProxyTracerProvider):
                provider = self._made = _own_provider()
        self._tracer: Tracer = provider.get_tracer("magicore", __version__)
        self._run: Span | None = None
        self._problems: dict[str, Span] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for span in (*self._problems.values(), self._run):
            if span is not None and span.is_recording():
                span.end()
        if self._made is not None:
            self._made.shutdown()

    def started(self, problems: int | None) -> None:
        self._run = self._tracer.start_span("magicore.run")
        if problems is not None:
            self._run.set_attribute("magicore.problems", problems)

    def called(self, call: Call) -> None:
        began = int(call.began * _NANO)
        parent = self._problem(call.key.problem, began) if call.key.role != "judge" else self._run
        span = self._tracer.start_span(
            f"chat {call.model}",
            context=None if parent is None else self._trace.set_span_in_context(parent),
            kind=self._trace.SpanKind.CLIENT,
            start_time=began,
            attributes=_attributes(call),
        )
        if call.error is not None:
            span.set_attribute("error.type", type(call.error).__name__)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, str(call.error)))
        span.end(began + int(call.seconds * _NANO))

    def answered(self, result: Result) -> None:
        span = self._problems.pop(result.id, None) or self._problem_span(result.id, time.time_ns())
        span.set_attribute("magicore.stop", result.stop)
        if result.correct is not None:
            span.set_attribute("magicore.correct", result.correct)
        if result.error is not None:
            span.set_attribute("error.type", result.error.type)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, result.error.message))
        span.end()
        self._problems.pop(result.id, None)

    def finished(self, summary: Mapping[str, Any]) -> None:
        if self._run is not None:
            for name in ("n", "correct", "failed"):
                if summary.get(name) is not None:
                    self._run.set_attribute(f"magicore.{name}", summary[name])
            self._run.end()

    def _problem(self, problem: str, began: int) -> Span:
        """The span of a problem, begun with its first call."""
        if problem not in self._problems:
            self._problems[problem] = self._problem_span(problem, began)
        return self._problems[problem]

    def _problem_span(self, problem: str, began: int) -> Span:
        context = None if self._run is None else self._trace.set_span_in_context(self._run)
        return self._tracer.start_span(
            "magicore.problem", context=context, start_time=began, attributes={"magicore.problem.id": problem}
        )


def _attributes(call: Call) -> dict[str, str | int | float]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": call.model,
        "gen_ai.request.choice.count": call.asked,
        "gen_ai.usage.input_tokens": call.usage.prompt,
        "gen_ai.usage.output_tokens": call.usage.completion,
        "magicore.role": call.key.role,
        "magicore.round": call.key.round,
        "magicore.attempt": call.attempt,
        "magicore.given": call.given,
        "magicore.lost": call.lost,
        "magicore.queued_s": call.queued_s,
    }


def _own_provider() -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise _missing() from error
    provider = TracerProvider(resource=Resource.create({"service.name": "magicore"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _missing() -> MissingExtraError:
    return MissingExtraError("traces need OpenTelemetry: pip install 'magicore[otel]'")
