"""The extender's HTTPS server: JSON in, JSON out, a thread for each connection."""

from __future__ import annotations

import logging
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from controller.extender.certificates import Certificates
from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

Answer = Callable[[bytes], bytes]
"""From a call's body to the answer's. It raises nothing: an error is an answer of its own."""

MOST_STRANGERS: Final = 256
"""Connections that have shown no certificate yet, at a time: anybody can open some. A scheduler
that binds a burst of pods has fewer."""

_SILENCE: Final = 90.0  # seconds; Go's client keeps an idle connection that long
_HANDSHAKE: Final = 10.0
_NOTICE: Final = 0.1  # seconds until the serving thread notices that it shall stop
_LONGEST: Final = 16 * 2**20  # bytes of a call: names of 5,000 nodes and a pod make 0.5 MiB


class ExtenderServer:
    """Answers POST at the paths of `answers` to clients whose certificate is of the
    right authority. Port 0 takes a free one; `port` tells which after `start`."""

    def __init__(
        self, port: int, certificates: Certificates, answers: Mapping[str, Answer]
    ) -> None:
        self.port = port
        self._certificates = certificates
        self._answers = answers
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Raises InvalidValue where the certificate cannot be read or the port is taken."""
        self._certificates.context()
        try:
            self._server = _Server(self.port, self._certificates, self._answers)
        except OSError as error:
            raise InvalidValue(
                f"port {self.port} of the scheduler extender cannot be opened: {error.strerror}",
                remedy="choose another port; 0 picks a free one",
            ) from error
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=[_NOTICE], name="extender", daemon=True
        )
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Take no connections any more; does nothing before `start`."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_STRANGERS
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(
        self, port: int, certificates: Certificates, answers: Mapping[str, Answer]
    ) -> None:
        self.certificates = certificates
        self.answers = answers
        self._strangers = _Strangers(MOST_STRANGERS)
        super().__init__(("", port), _Handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not HTTPServer's, which asks the DNS for this host's name before anything is served.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def finish_request(self, request: object, client_address: object) -> None:
        """In the connection's own thread, so that a slow handshake keeps nobody waiting."""
        assert isinstance(request, socket.socket)
        request.settimeout(_HANDSHAKE)
        context = self.certificates.context()
        with context.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        ) as secured:
            with self._strangers.among(secured):
                secured.do_handshake()
            _Handler(secured, client_address, self)

    def handle_error(self, request: object, client_address: object) -> None:
        del request
        error = sys.exception()
        if isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError)):
            logger.info("%s was not served: %s", client_address, error)
        else:
            logger.error("a call of %s failed", client_address, exc_info=error)


class _Strangers:
    """Connections of which nobody knows yet whose they are. Where there are more than `limit`, the
    one that has been among them for longest is ended: whoever has a certificate shows it at once,
    so those that would keep kube-scheduler out only keep each other out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known: dict[ssl.SSLSocket, None] = {}

    @contextmanager
    def among(self, connection: ssl.SSLSocket) -> Iterator[None]:
        """The connection is one of them, and open."""
        with self._lock:
            self._known[connection] = None
            if len(self._known) > self._limit:
                self._end(next(iter(self._known)))
        try:
            yield
        finally:
            with self._lock:
                self._known.pop(connection, None)

    def _end(self, connection: ssl.SSLSocket) -> None:
        del self._known[connection]
        with suppress(OSError):  # the client may have ended it
            # Not SSLSocket's, which takes from its own thread what that works with.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENCE
    protocol_version = "HTTP/1.1"  # kube-scheduler keeps its connections
    server_version = "gcu"
    sys_version = ""

    def do_POST(self) -> None:
        answer = self.server.answers.get(self.path)
        length = self.headers.get("Content-Length", "")
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"served are {', '.join(self.server.answers)}")
        elif not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the call has no Content-Length")
        elif int(length) > _LONGEST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_LONGEST} bytes are read")
        else:
            self._send(HTTPStatus.OK, "application/json", answer(self.rfile.read(int(length))))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # a body that nobody reads would be taken for the next call
        self._send(status, "text/plain; charset=utf-8", why.encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
        logger.debug(format, *args)
