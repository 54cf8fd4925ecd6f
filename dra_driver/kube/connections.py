"""HTTP to the API server over connections that are kept.

The standard library's client alone: a claim is read from the API server in every prepare, and what
layers above this one take for a request is twice what it takes itself (docs/dev/speed.md).
"""

from __future__ import annotations

import base64
import http.client
import select
import socket
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from dra_driver.kube.access import Access
from dra_driver.model.errors import InvalidValue

# What a request can raise; ValueError comes of a socket that another thread has closed.
FAILURES: Final = (OSError, http.client.HTTPException, ValueError)

_CONNECT_SECONDS: Final = 5.0
# A watch whose peer vanished without a word is noticed: after a minute, then every 15 s.
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered, body and all."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Connections:
    """Requests to one server; safe for several threads. Nothing is ever sent twice: our callers
    decide, since a repeated PUT may hide its own success."""

    def __init__(self, access: Access, *, at_once: int = 8) -> None:
        """No more than `at_once` requests are under way: each has a connection, which takes 60 KiB,
        and longer to make than a request takes."""
        self.access = access
        self._url = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy)
        if access.proxy and (self._proxy.scheme != "http" or not self._proxy.hostname):
            raise InvalidValue(
                f"the proxy {access.proxy} cannot be used", remedy="write it as http://HOST:PORT"
            )
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._turns = threading.BoundedSemaphore(at_once)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Answer:
        """Raises one of FAILURES where the server cannot be reached, or is silent for `seconds`."""
        if not self._turns.acquire(timeout=seconds):
            raise TimeoutError("other requests have waited for an answer all the time")
        try:
            connection, response = self._send(method, path, headers, body, seconds)
            try:
                content = response.read()
            except FAILURES:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                self._idle.append(connection)
        finally:
            self._turns.release()
        return Answer(response.status, response.headers, content)

    def stream(self, path: str, headers: Mapping[str, str], seconds: float) -> Stream:
        """GET whose answer comes piece by piece, with at most `seconds` between two."""
        return Stream(*self._send("GET", path, headers, None, seconds))

    def close(self) -> None:
        """Drop the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._take() or self._connect()
        try:
            connection.sock.settimeout(seconds)
            connection.request(method, f"{self._url.path}{path}", body, dict(headers))
            return connection, connection.getresponse()
        except FAILURES:
            connection.close()
            raise

    def _take(self) -> http.client.HTTPConnection | None:
        """One that was kept and that the server has not closed since."""
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                connection = self._idle.pop()
                if connection.sock is not None and not _is_readable(connection.sock):
                    return connection
                connection.close()
        return None

    def _connect(self) -> http.client.HTTPConnection:
        secure = self._url.scheme == "https"
        host, port = self._url.hostname or "", self._url.port or (443 if secure else 80)
        connection = http.client.HTTPConnection(
            self._proxy.hostname or host,
            (self._proxy.port or 80) if self.access.proxy else port,
            timeout=_CONNECT_SECONDS,
        )
        if self.access.proxy:
            connection.set_tunnel(host, port, _proxy_headers(self._proxy))
        try:
            connection.connect()
            for option in _KEEP_ALIVE:
                connection.sock.setsockopt(*option)
            if secure:
                name = self.access.server_name or host
                connection.sock = self.access.tls.wrap_socket(connection.sock, server_hostname=name)
        except FAILURES:
            connection.close()
            raise
        return connection


class Stream:
    """An answer that has no end yet."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def read1(self) -> bytes:
        """The next piece; empty at the end. Raises one of FAILURES."""
        return self._response.read1()

    def read(self) -> bytes:
        """All that is left. Raises one of FAILURES."""
        return self._response.read()

    def shutdown(self) -> None:
        """End `read1` in another thread, which then raises one of FAILURES, or gives nothing."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Called by the thread that reads."""
        self._response.close()
        self._connection.close()


def _is_readable(connection: socket.socket) -> bool:
    """Whether something came on a connection on which nothing was asked: its end, usually."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
