"""An HTTP server that a client on the network cannot exhaust.

A client can open many connections and send nothing, or send single bytes. So there are bounds for
the number of connections, for the size of a request's head, and for its duration.
"""

from __future__ import annotations

import io
import logging
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

LONGEST_REQUEST: Final = 5.0
"""Seconds from a request's first byte to its last one, and for sending the answer."""
LONGEST_HEAD: Final = 16 * 2**10
"""Bytes of a request's first line and headers."""

_NOTICE: Final = 0.1  # seconds until the serving thread notices that it shall stop
_UNTIL_FREE: Final = 1.0  # seconds that a new connection waits while all others are answered


class ConnectionLimit:
    """At most `limit` connections at a time, each of which has a thread.

    Another connection replaces the one that has waited longest for its client, if possible one
    whose client has sent nothing. A probe sends its request at once, so clients that only occupy
    connections replace each other. Safe for several threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._waited_for: dict[socket.socket, None] = {}

    def admit(self, connection: socket.socket) -> bool:
        """Count the connection; False if there is no place."""
        with self._changed:
            if len(self._open) >= self._limit:
                self._end_one()
            if not self._changed.wait_for(lambda: len(self._open) < self._limit, _UNTIL_FREE):
                return False
            self._open.add(connection)
            self._waited_for[connection] = None
            return True

    def release(self, connection: socket.socket) -> None:
        """Do not count the connection any more: it has ended, or its client is known."""
        with self._changed:
            self._open.discard(connection)
            self._waited_for.pop(connection, None)
            self._changed.notify()

    @contextmanager
    def answering(self, connection: socket.socket) -> Iterator[None]:
        """The request is complete: inside, no other connection replaces this one."""
        with self._changed:
            self._waited_for.pop(connection, None)
        try:
            yield
        finally:
            with self._changed:
                if connection in self._open:
                    self._waited_for[connection] = None

    def _end_one(self) -> None:
        poll = select.poll()
        for each in self._waited_for:
            poll.register(each, select.POLLIN)
        has_sent = {number for number, _ in poll.poll(0)}
        silent = (each for each in self._waited_for if each.fileno() not in has_sent)
        ended = next(silent, None) or next(iter(self._waited_for), None)
        if ended is not None:
            del self._waited_for[ended]
            with suppress(OSError):  # the client may have ended it
                # Not that of SSLSocket, which is not safe in another thread.
                socket.socket.shutdown(ended, socket.SHUT_RDWR)


class HttpServer(ThreadingHTTPServer):
    """Binds when it is constructed, and serves from `start` on in its own thread."""

    daemon_threads = True
    request_queue_size = 1024  # a probe that does not fit would wait for the next SYN

    def __init__(
        self,
        port: int,
        handler: Callable[..., ConnectionHandler],
        *,
        name: str,
        purpose: str,
        limit: int,
        host: str = "",
    ) -> None:
        """`name` is the thread's, `purpose` is the port's in an error, `limit` is the number of
        connections. `host` is an IP address, by default all. Port 0 is any free port. Raises
        InvalidValue if the port cannot be opened."""
        self.connections = ConnectionLimit(limit)
        # The pod may have addresses of either family, or of both.
        is_v6 = ":" in host if host else socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if is_v6 else socket.AF_INET
        self._thread = threading.Thread(
            target=self.serve_forever, args=[_NOTICE], name=name, daemon=True
        )
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise InvalidValue(
                f"port {port} {purpose} cannot be opened: {error.strerror}",
                remedy="choose another port; 0 picks a free one",
            ) from error

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Accept no more connections."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not HTTPServer's, which asks the DNS for this host's name before anything is served.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def verify_request(self, request: object, client_address: object) -> bool:
        del client_address
        assert isinstance(request, socket.socket)
        return self.connections.admit(request)

    def shutdown_request(self, request: object) -> None:
        """Called at the end of every connection, also of one that was not admitted."""
        assert isinstance(request, socket.socket)
        self.connections.release(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        del request
        error = sys.exception()
        if isinstance(error, (ConnectionError, TimeoutError)):
            logger.debug("%s went away: %s", client_address, error)
        else:
            logger.error("a request of %s failed", client_address, exc_info=error)


class ConnectionHandler(BaseHTTPRequestHandler):
    """One connection. `idle` is for how many seconds it may be open without a request."""

    server: HttpServer
    idle = LONGEST_REQUEST
    server_version = "gcu"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._client = _BoundedReader(self.connection)
        self.rfile = self._input = io.BufferedReader(self._client)

    def handle_one_request(self) -> None:
        try:
            self._client.allow(self.idle, LONGEST_HEAD)
            if not self._input.peek(1):
                self.close_connection = True
                return
            self._client.allow(LONGEST_REQUEST)
            super().handle_one_request()
        except TimeoutError as error:
            logger.debug("%s: %s", self.client_address, error)
            self.close_connection = True
        except HTTPException as error:  # in the first line, not in a header
            self.command, self.requestline, self.request_version = "", "", "HTTP/1.0"
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, explain=str(error))

    def read_body(self, length: int) -> bytes:
        """So many bytes of the request's body. Raises ConnectionError if the client sends less."""
        self._client.allow_more(length)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError(f"the connection ended after {len(body)} bytes of {length}")
        return body

    def send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        """Send the answer."""
        self.connection.settimeout(LONGEST_REQUEST)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
        logger.debug(format, *args)


class _BoundedReader(io.RawIOBase):
    """The bytes from the client, within a total time and a total size."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end = 0.0
        self._bytes = 0

    def allow(self, seconds: float, size: int | None = None) -> None:
        """Allow so many seconds from now on, and so many bytes."""
        self._end = time.monotonic() + seconds
        self._bytes = self._bytes if size is None else size

    def allow_more(self, size: int) -> None:
        self._bytes += size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        if self._bytes <= 0:
            raise HTTPException(f"the head of a request has at most {LONGEST_HEAD} bytes")
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer[: self._bytes])
        self._bytes -= count
        return count
