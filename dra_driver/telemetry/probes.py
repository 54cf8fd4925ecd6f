"""Liveness, readiness and metrics over HTTP, for the kubelet's probes and for Prometheus."""

from __future__ import annotations

import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Says None when all is well, else the reason in words."""

_TEXT: Final = "text/plain; charset=utf-8"
_SILENCE: Final = 10.0  # seconds that a client may take for its request
_NOTICE: Final = 0.1  # seconds until the serving thread notices that it shall stop
_PATIENCE: Final = 30.0  # seconds; the chart's start-up probe waits longer
_LOOK_EVERY: Final = 0.1


class ProbeServer:
    """Serves ``/healthz``, ``/readyz``, ``/startz`` and ``/metrics``, to GET and HEAD.

    A probe answers 200 ``ok``, or 503 with the reason, so that ``kubectl describe pod`` shows it.
    ``/startz`` says what ``/healthz`` says, but not before the program is ready or half a minute
    has passed: the kubelet makes a warning of every probe that fails, so readiness is asked for
    only when an ordinary start is over. Port 0 takes a free one; `port` tells which after `start`.
    """

    def __init__(
        self,
        port: int,
        *,
        ready: Check,
        live: Check,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the server was stopped."""
        self.port = port
        self._checks = {"/healthz": live, "/readyz": ready, "/startz": self._started}
        self._ready = ready
        self._live = live
        self._registry = registry
        self._clock = clock
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._server: _Server | None = None

    def start(self) -> None:
        """Bind and serve in a thread of its own; raises InvalidValue when the port is taken."""
        try:
            # All interfaces: the kubelet's probes come to the pod's address.
            self._server = _Server(self.port, self._answer)
        except OSError as error:
            raise InvalidValue(
                f"port {self.port} for probes and metrics cannot be opened: {error.strerror}",
                remedy="choose another port; 0 picks a free one",
            ) from error
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, args=[_NOTICE], name="probes", daemon=True
        ).start()

    def stop(self) -> None:
        """Stop serving; does nothing before `start`."""
        self._stop.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _answer(self, path: str) -> Answer:
        path = path.partition("?")[0]
        if path == "/metrics":
            return HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_LATEST
        if path not in self._checks:
            text = "healthz, readyz, startz and metrics are served here"
            return HTTPStatus.NOT_FOUND, text.encode(), _TEXT
        problem = self._checks[path]()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return status, (problem or "ok").encode(errors="replace"), _TEXT

    def _started(self) -> str | None:
        end = self._clock() + _PATIENCE
        while self._ready() is not None and self._clock() < end:
            if self._wait(_LOOK_EVERY):
                break
        return self._live()


Answer = tuple[HTTPStatus, bytes, str]
"""Status, body and content type."""


class _Server(ThreadingHTTPServer):
    """Each request has a thread, so that a slow client keeps nobody else waiting."""

    daemon_threads = True
    # The pod's address is of either family, or of both.
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, port: int, answer: Callable[[str], Answer]) -> None:
        self.answer = answer
        super().__init__(("", port), _Handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not HTTPServer's, which asks the DNS for this host's name before anything is served.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        del request
        error = sys.exception()
        if isinstance(error, ConnectionError):
            logger.debug("%s went away: %s", client_address, error)
        else:
            logger.error("a request of %s failed", client_address, exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENCE
    server_version = "gcu"
    sys_version = ""

    def do_GET(self) -> None:
        self._send(body_too=True)

    def do_HEAD(self) -> None:
        self._send(body_too=False)

    def _send(self, *, body_too: bool) -> None:
        status, body, kind = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body_too:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
        logger.debug(format, *args)
