"""Numbers of the service in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gfm import __version__
from gfm.extras import extra
from gfm.serve.gate import Gate
from gfm.serve.live import Live

with extra("serve"):
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters, histograms and gauges of one application, in a registry of their own.

    Args:
        live: What is served.
        gates: By name.
    """

    def __init__(self, live: Live, gates: Mapping[str, Gate]):
        self._live, self._registry = live, CollectorRegistry()
        self._requests = Counter("gfm_requests", "Requests.", ["path", "status"], registry=self._registry)
        self._seconds = Histogram(
            "gfm_request_seconds", "Seconds of a request.", ["path"], buckets=_SECONDS, registry=self._registry
        )
        self._stages = Histogram(
            "gfm_stage_seconds",
            "Seconds of a stage.",
            ["stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        working = Gauge("gfm_working", "Requests that are worked on.", ["gate"], registry=self._registry)
        waiting = Gauge("gfm_waiting", "Requests that wait for their turn.", ["gate"], registry=self._registry)
        for name, gate in gates.items():
            working.labels(name).set_function(partial(getattr, gate, "working"))
            waiting.labels(name).set_function(partial(getattr, gate, "waiting"))
        reloads = Gauge("gfm_reloads", "Times that a new generation took the old one's place.", registry=self._registry)
        reloads.set_function(lambda: live.reloads)
        self._served = Gauge("gfm_index", "1 for what is served.", ["generation", "version"], registry=self._registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            path: A route, never what a client typed: each makes a series.
            status: Of the response.
            seconds: From the request's headers to the last byte of the response.
        """
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def stages(self, seconds: Mapping[str, float]) -> None:
        """Count what the stages of a retrieval took."""
        for stage, value in seconds.items():
            self._stages.labels(stage).observe(value)

    def text(self) -> bytes:
        """All of it, as `CONTENT_TYPE`."""
        self._served.clear()
        self._served.labels(self._live.generation, __version__).set(1)
        return generate_latest(self._registry)
