"""HTTP to the API server over persistent connections (docs/adr/0014-http-to-the-api-server.md)."""

from __future__ import annotations

import base64
import logging
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from dra_driver.kube.http.cluster_config import ClusterConfig
from dra_driver.kube.http.connection import FAILURES, HttpConnection, render
from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
# How long a GET waits on an idle connection before a new one is tried: the server may have vanished
# without closing the connection, with its machine for example.
_IDLE_SECONDS: Final = 10.0
_IDLE_SHARE: Final = 1 / 3  # of the request's own time limit, where that is less
# Requests are sent without delay. If the server of a watch vanishes silently, the kernel notices it
# after 45 s, as client-go does.
_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class HttpResponse(msgspec.Struct, frozen=True):
    """A complete answer; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Requests to one server; safe for several threads.

    If an idle connection turns out to be dead, a GET is sent again on a new connection. Nothing
    else is repeated: callers decide, because a repeated PUT may hide its own success.
    """

    def __init__(self, access: ClusterConfig, *, at_once: int = 8) -> None:
        """At most `at_once` requests run at a time. Each has a connection, which takes 60 KiB, and
        takes longer to make than a request."""
        self.access = access
        self._url = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy)
        if access.proxy and (self._proxy.scheme != "http" or not self._proxy.hostname):
            raise InvalidValue(
                f"the proxy {access.proxy} cannot be used", remedy="write it as http://HOST:PORT"
            )
        # Without the second one a proxy in between may compress.
        host = self._url.netloc.rpartition("@")[2]
        self._common = {"Host": host, "Accept-Encoding": "identity"}
        self._idle: deque[HttpConnection] = deque()
        self._running = threading.BoundedSemaphore(at_once)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> HttpResponse:
        """Raises one of FAILURES if the server cannot be reached, or is silent for `seconds`."""
        if not self._running.acquire(timeout=seconds):
            raise TimeoutError("all connections were busy with other requests")
        try:
            connection = self.send(method, path, headers, body, seconds)
            with self._closing(connection):
                content = connection.read()
            answer = HttpResponse(connection.status, connection.headers, content)
            if connection.is_reusable:
                self._idle.append(connection)
            else:
                connection.close()
        finally:
            self._running.release()
        return answer

    def close(self) -> None:
        """Drop the idle connections."""
        while self._idle:
            with suppress(IndexError):  # another thread took it
                self._idle.pop().close()

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> HttpConnection:
        """A connection with the head of the answer, whose body comes piece by piece, with at most
        `seconds` between two; the caller closes it."""
        request = render(method, f"{self._url.path}{path}", {**self._common, **headers}, body)
        idle = self._idle_connection()
        if idle is None:
            return self._send_on(self._connect(), request, seconds)
        if method != "GET":
            return self._send_on(idle, request, seconds)
        patience = min(_IDLE_SECONDS, seconds * _IDLE_SHARE)
        try:
            connection = self._send_on(idle, request, patience)
        except FAILURES as error:
            logger.info("an idle connection to the API server failed, a new one is made: %s", error)
            left = seconds - patience if isinstance(error, TimeoutError) else seconds
            return self._send_on(self._connect(), request, left)
        if not connection.is_reusable:  # the rest is still to come
            connection.sock.settimeout(seconds)
        return connection

    def _send_on(
        self, connection: HttpConnection, request: bytes, seconds: float
    ) -> HttpConnection:
        with self._closing(connection):
            connection.send(request, seconds)
        return connection

    @contextmanager
    def _closing(self, connection: HttpConnection) -> Iterator[None]:
        """Close the connection if it fails. After a timeout the server may have vanished silently,
        so the idle connections are closed as well."""
        try:
            yield
        except FAILURES as error:
            connection.close()
            if isinstance(error, TimeoutError):
                self.close()
            raise

    def _idle_connection(self) -> HttpConnection | None:
        """An idle connection that the server has not closed; None if there is none."""
        while self._idle:
            with suppress(IndexError):  # another thread took it
                connection = self._idle.pop()
                if not connection.has_ended():
                    return connection
                connection.close()
        return None

    def _connect(self) -> HttpConnection:
        secure = self._url.scheme == "https"
        host, port = self._url.hostname or "", self._url.port or (443 if secure else 80)
        proxy = self._proxy if self.access.proxy else None
        where = (host, port) if proxy is None else (proxy.hostname, proxy.port or 80)
        sock = socket.create_connection(where, timeout=_CONNECT_SECONDS)
        try:
            for option in _OPTIONS:
                sock.setsockopt(*option)
            if proxy is not None:
                _tunnel(sock, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy)
            if secure:
                name = self.access.server_name or host
                sock = self.access.trusted().wrap_socket(sock, server_hostname=name)
        except FAILURES:
            sock.close()
            raise
        return HttpConnection(sock)


def _tunnel(sock: socket.socket, target: str, proxy: SplitResult) -> None:
    """Open a tunnel through the proxy; raises one of FAILURES if it refuses."""
    connection = HttpConnection(sock)
    headers = {"Host": target, **_proxy_headers(proxy)}
    connection.send(render("CONNECT", target, headers, None), _CONNECT_SECONDS)
    if connection.status != 200:
        raise ConnectionError(f"the proxy {proxy.hostname} answered {connection.status}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
