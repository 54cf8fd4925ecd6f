"""Liveness, readiness and metrics over HTTP, for the kubelet's probes and for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dra_driver.telemetry.http_server import ConnectionHandler, HttpServer
from dra_driver.util.background import Wait
from dra_driver.util.hooks import Clock
from dra_driver.version import version_info

Answer = tuple[HTTPStatus, bytes, str]
"""Status, body and content type."""


Check = Callable[[], str | None]
"""None if all is well, otherwise the reason in words."""


AnswerPath = Callable[[str], Answer]
"""Answers a request for a path."""


_TEXT: Final = "text/plain; charset=utf-8"
MOST_CONNECTIONS: Final = 64
"""Each has a thread: some MiB in all."""

# At most so many of them wait for the start; the kubelet sends one probe at a time.
_MOST_STARTING: Final = 4
_MOST_READING: Final = 4  # at most so many of them read metrics, which takes milliseconds
_METRICS_EVERY: Final = 0.1  # seconds between two renderings of the metrics
_PATIENCE: Final = 30.0  # seconds; the chart's start-up probe waits longer
_CHECK_EVERY: Final = 0.1


@dataclass(eq=False)
class ProbeServer:
    """Serves ``/healthz``, ``/readyz``, ``/startz``, ``/metrics``, ``/version``.

    A probe answers 200 ``ok``, or 503 with the reason, so that ``kubectl describe pod`` shows it.
    ``/startz`` answers as ``/healthz``, but only when the program is ready or half a minute has
    passed: the kubelet reports every failed probe as a warning, so the readiness probe must begin
    after an ordinary start. Metrics are rendered at most ten times a second, and too many requests
    at once get 503, so that they delay neither probes nor the program's work. Port 0 is any free
    port; `port` has its number after `start`.
    """

    port: int
    _: KW_ONLY
    ready: Check
    live: Check
    registry: CollectorRegistry
    clock: Clock = time.monotonic
    wait: InitVar[Wait | None] = None

    def __post_init__(self, wait: Wait | None) -> None:
        self._checks = {"/healthz": self.live, "/readyz": self.ready, "/startz": self._started}
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._starting = threading.Semaphore(_MOST_STARTING)
        self._reading = threading.Semaphore(_MOST_READING)
        self._rendering = threading.Lock()
        self._rendered_at, self._rendered = float("-inf"), b""
        self._server: HttpServer | None = None

    def start(self) -> None:
        """Bind, and serve in its own thread; raises InvalidValue if the port is in use."""
        # On all interfaces, because the kubelet probes the pod's address.
        self._server = HttpServer(
            self.port,
            partial(_ProbeHandler, self._answer),
            name="probes",
            purpose="for probes and metrics",
            limit=MOST_CONNECTIONS,
        )
        self.port = self._server.server_address[1]
        self._server.start()

    def stop(self) -> None:
        """Stop serving; does nothing before `start`."""
        self._stop.set()
        if self._server is not None:
            self._server.stop()

    def _answer(self, path: str) -> Answer:
        path = path.partition("?")[0]
        if path == "/metrics":
            return self._metrics()
        if path == "/version":
            return HTTPStatus.OK, version_info(), "application/json"
        if path not in self._checks:
            text = "healthz, readyz, startz, metrics and version are served here"
            return HTTPStatus.NOT_FOUND, text.encode(), _TEXT
        problem = self._checks[path]()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return status, (problem or "ok").encode(errors="replace"), _TEXT

    def _metrics(self) -> Answer:
        asked = self.clock()
        if not self._reading.acquire(blocking=False):
            return HTTPStatus.SERVICE_UNAVAILABLE, b"too many clients read the metrics", _TEXT
        try:
            with self._rendering:
                if self._rendered_at <= asked:  # a rendering that began later is new enough
                    self._wait(max(0.0, self._rendered_at + _METRICS_EVERY - self.clock()))
                    self._rendered_at = self.clock()
                    self._rendered = generate_latest(self.registry)
                return HTTPStatus.OK, self._rendered, CONTENT_TYPE_LATEST
        finally:
            self._reading.release()

    def _started(self) -> str | None:
        if self._starting.acquire(blocking=False):
            try:
                self._await_start()
            finally:
                self._starting.release()
        return self.live()

    def _await_start(self) -> None:
        end = self.clock() + _PATIENCE
        while self.ready() is not None and self.clock() < end:
            if self._wait(_CHECK_EVERY):
                break


class _ProbeHandler(ConnectionHandler):
    def __init__(self, answer: AnswerPath, *connection: Any) -> None:
        self._answer = answer
        super().__init__(*connection)

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        with self.server.connections.answering(self.connection):
            status, body, kind = self._answer(self.path)
        self.send(status, kind, body)
