"""Liveness, readiness and metrics over HTTP, for the kubelet's probes and for Prometheus."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Says None when all is well, else the reason in words."""


class ProbeServer:
    """Serves ``/healthz``, ``/readyz`` and ``/metrics``.

    A probe answers 200 ``ok``, or 503 with the reason, so that ``kubectl describe pod`` shows it.
    Port 0 takes a free one; `port` tells which after `start`.
    """

    def __init__(
        self, port: int, *, ready: Check, live: Check, registry: CollectorRegistry
    ) -> None:
        self.port = port
        self._checks = {"/healthz": live, "/readyz": ready}
        self._registry = registry
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Bind and serve in a thread of its own; raises OSError when the port is taken."""
        checks, registry = self._checks, self._registry

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
                elif self.path in checks:
                    problem = checks[self.path]()
                    self._answer(503 if problem else 200, (problem or "ok").encode())
                else:
                    self._answer(404, b"healthz, readyz and metrics are served here")

            def _answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
                logger.debug(format, *args)

        # All interfaces: the kubelet's probes come to the pod's address.
        self._server = ThreadingHTTPServer(("", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="probes", daemon=True).start()

    def stop(self) -> None:
        """Stop serving; does nothing before `start`."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
