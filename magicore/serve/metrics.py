"""What ``/metrics`` shows, for Prometheus. Labels take few values: methods, roles, statuses; never a client's text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from magicore.llms.calls import Call

_SECONDS = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1800)


class Metrics:
    """The metrics of one gateway, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "magicore_requests",
            "Answered HTTP requests; 499: the client left.",
            ["path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "magicore_answer_seconds",
            "Seconds to an answer, waiting included.",
            ["method"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._calls = Counter(
            "magicore_model_calls", "Ended calls to language models.", ["role", "outcome"], registry=self._registry
        )
        self._tokens = Counter(
            "magicore_tokens", "Tokens of replies that came.", ["role", "part"], registry=self._registry
        )
        self._lost = Counter(
            "magicore_lost_replies", "Replies that may be charged for and never came.", registry=self._registry
        )
        self._begun = Counter("magicore_model_calls_begun", "Calls sent to language models.", registry=self._registry)

    def watch(self, working: Callable[[], float], waiting: Callable[[], float]) -> None:
        """Show how many requests are in work and waiting, as these say."""
        for name, text, read in (
            ("magicore_requests_working", "Requests in work.", working),
            ("magicore_requests_waiting", "Requests that wait for their turn.", waiting),
        ):
            Gauge(name, text, registry=self._registry).set_function(read)

    def requested(self, path: str, status: int) -> None:
        """An HTTP request was answered."""
        self._requests.labels(path, str(status)).inc()

    def answered(self, method: str, seconds: float) -> None:
        """A chat completion was found."""
        self._seconds.labels(method).observe(seconds)

    def calling(self) -> None:
        """A call goes out."""
        self._begun.inc()

    def called(self, call: Call) -> None:
        """A call has ended."""
        role = call.key.role
        self._calls.labels(role, "ok" if call.error is None else type(call.error).__name__).inc()
        self._lost.inc(call.lost)
        parts = (
            ("prompt", call.usage.prompt),
            ("completion", call.usage.completion),
            ("reasoning", call.usage.reasoning),
            ("cached", call.usage.cached),
        )
        for part, tokens in parts:
            self._tokens.labels(role, part).inc(tokens)

    def text(self) -> bytes:
        """The text exposition."""
        return generate_latest(self._registry)
