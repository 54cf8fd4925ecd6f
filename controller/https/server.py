"""An HTTPS server for JSON: POST with a body in, a body out, a thread for each connection."""

from __future__ import annotations

import logging
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final

from controller.https.certificates import Certificates
from dra_driver.model.errors import Refused
from dra_driver.telemetry.http_server import ConnectionHandler, HttpServer
from dra_driver.version import version_info

logger = logging.getLogger(__name__)

Answer = Callable[[bytes], bytes]
"""Gives the body of the answer to a call's body. Raises nothing: an error is an answer, too."""

MOST_STRANGERS: Final = 256
"""Connections at a time whose client has shown no certificate: anyone can open some. kube-scheduler
and API servers have fewer, also in a burst of pods."""

_IDLE: Final = 90.0  # seconds; Go's client keeps an idle connection that long
_HANDSHAKE: Final = 10.0
_LOG_EVERY: Final = 1.0  # seconds between two lines of the log about strangers
_LONGEST: Final = 16 * 2**20  # bytes of a call: names of 5,000 nodes and a pod make 0.5 MiB


class HttpsServer:
    """Answers POST at the paths of `answers` to the clients that `certificates` admit. Port 0
    takes a free one; `port` is the one in use after `start`."""

    def __init__(
        self,
        port: int,
        certificates: Certificates,
        answers: Mapping[str, Answer],
        *,
        name: str,
        purpose: str,
        host: str = "",
    ) -> None:
        """`name` is the thread's, and `purpose` says in an error what the port is for. `host` is
        an IP address, all without it."""
        self.port = port
        self._certificates = certificates
        self._listen = partial(
            _HttpsServer,
            certificates=certificates,
            answers=answers,
            name=name,
            purpose=purpose,
            host=host,
        )
        self._server: _HttpsServer | None = None

    def start(self) -> None:
        """Raises InvalidValue where the certificate cannot be read or the port is taken."""
        self._certificates.context()
        self._server = self._listen(self.port)
        self.port = self._server.server_address[1]
        self._server.start()

    def is_alive(self) -> bool:
        return self._server is not None and self._server.is_alive()

    def stop(self) -> None:
        """Accept no more connections. Does nothing before `start`."""
        if self._server is not None:
            self._server.stop()


class _HttpsServer(HttpServer):
    def __init__(
        self, port: int, certificates: Certificates, answers: Mapping[str, Answer], **names: str
    ) -> None:
        """`names` are those of `HttpServer`. Opens the port."""
        self.certificates = certificates
        self.answers = answers
        self._logged_at = float("-inf")
        super().__init__(port, _HttpsHandler, limit=MOST_STRANGERS, **names)

    def get_request(self) -> tuple[ssl.SSLSocket, object]:
        plain, address = super().get_request()
        try:
            context = self.certificates.context()
            secured = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        except OSError:
            plain.close()
            raise
        return secured, address

    def finish_request(self, request: object, client_address: object) -> None:
        """In the connection's own thread, so that a slow handshake delays no other connection."""
        assert isinstance(request, ssl.SSLSocket)
        request.settimeout(_HANDSHAKE)
        request.do_handshake()
        self.certificates.admit(request)
        if self.certificates.requires_client:
            self.connections.release(request)  # the client is known
        _HttpsHandler(request, client_address, self)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if isinstance(error, (ssl.SSLError, Refused)):
            # Anyone can cause as many of these as they like.
            now = time.monotonic()
            level = logging.INFO if now >= self._logged_at + _LOG_EVERY else logging.DEBUG
            if level == logging.INFO:
                self._logged_at = now
            logger.log(level, "%s was not served: %s", client_address, error)
        else:
            super().handle_error(request, client_address)


class _HttpsHandler(ConnectionHandler):
    server: _HttpsServer
    idle = _IDLE
    protocol_version = "HTTP/1.1"  # kube-scheduler and API servers keep their connections

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        if self.path == "/version":
            self.send(HTTPStatus.OK, "application/json", version_info())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "version is all that is served to GET")

    def do_POST(self) -> None:  # noqa: N802 (http.server's name)
        # An API server adds the webhook's timeout as a query.
        answer = self.server.answers.get(self.path.partition("?")[0])
        length = self.headers.get("Content-Length", "")
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"served are {', '.join(self.server.answers)}")
        elif not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the call has no Content-Length")
        elif len(length) > len(str(_LONGEST)) or int(length) > _LONGEST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_LONGEST} bytes are read")
        else:
            question = self.read_body(int(length))
            with self.server.connections.answering(self.connection):
                body = answer(question)
            self.send(HTTPStatus.OK, "application/json", body)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # an unread body would be read as the next call
        self.send(status, "text/plain; charset=utf-8", why.encode())
