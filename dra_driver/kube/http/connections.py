"""HTTP to the API server over connections that are kept.

Of our own, on `httptools`, a parser: a claim is read from the API server in every prepare, and what
the standard library's client or layers above it take for that is several times what it takes itself
(docs/adr/0014-http-to-the-api-server.md).
"""

from __future__ import annotations

import base64
import logging
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from dra_driver.kube.http.cluster_config import ClusterConfig
from dra_driver.kube.http.connection import FAILURES, HttpConnection, render
from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
# How long a GET waits on a kept connection before a new one is tried: the server at its other end
# may have vanished without closing it, as with its machine.
_KEPT_SECONDS: Final = 10.0
_KEPT_SHARE: Final = 1 / 3  # of the request's own time limit, where that is less
# A request is not kept back; and a watch whose peer vanished without a word is noticed: after a
# minute, then every 15 s.
_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered, body and all; `headers` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Requests to one server; safe for several threads.

    A GET whose kept connection turns out to be dead is sent once more, on a new connection. Nothing
    else is sent twice: callers decide, since a repeated PUT may hide its own success.
    """

    def __init__(self, access: ClusterConfig, *, at_once: int = 8) -> None:
        """No more than `at_once` requests are under way: each has a connection, which takes 60 KiB,
        and longer to make than a request takes."""
        self.access = access
        self._url = urlsplit(access.server)
        self._proxy = urlsplit(access.proxy)
        if access.proxy and (self._proxy.scheme != "http" or not self._proxy.hostname):
            raise InvalidValue(
                f"the proxy {access.proxy} cannot be used", remedy="write it as http://HOST:PORT"
            )
        # Without the latter a proxy in between may compress.
        host = self._url.netloc.rpartition("@")[2]
        self._common = {"Host": host, "Accept-Encoding": "identity"}
        self._idle: deque[HttpConnection] = deque()
        self._turns = threading.BoundedSemaphore(at_once)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Answer:
        """Raises one of FAILURES where the server cannot be reached, or is silent for `seconds`."""
        if not self._turns.acquire(timeout=seconds):
            raise TimeoutError("other requests have waited for an answer all the time")
        try:
            wire = self._send(method, path, headers, body, seconds)
            with self._closing(wire):
                content = wire.read()
            answer = Answer(wire.status, wire.headers, content)
            if wire.is_reusable:
                self._idle.append(wire)
            else:
                wire.close()
        finally:
            self._turns.release()
        return answer

    def stream(self, path: str, headers: Mapping[str, str], seconds: float) -> HttpConnection:
        """GET whose answer comes piece by piece, with at most `seconds` between two; the caller
        closes it."""
        return self._send("GET", path, headers, None, seconds)

    def close(self) -> None:
        """Drop the idle connections."""
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                self._idle.pop().close()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> HttpConnection:
        """A connection with the head of the answer."""
        request = render(method, f"{self._url.path}{path}", {**self._common, **headers}, body)
        kept = self._take()
        if kept is None:
            return self._ask(self._connect(), request, seconds)
        if method != "GET":
            return self._ask(kept, request, seconds)
        patience = min(_KEPT_SECONDS, seconds * _KEPT_SHARE)
        try:
            wire = self._ask(kept, request, patience)
        except FAILURES as error:
            logger.info("a kept connection to the API server failed, a new one is made: %s", error)
            left = seconds - patience if isinstance(error, TimeoutError) else seconds
            return self._ask(self._connect(), request, left)
        wire.sock.settimeout(seconds)
        return wire

    def _ask(self, wire: HttpConnection, request: bytes, seconds: float) -> HttpConnection:
        with self._closing(wire):
            wire.send(request, seconds)
        return wire

    @contextmanager
    def _closing(self, wire: HttpConnection) -> Iterator[None]:
        """Close it where it fails. Where it is silent, the server may have vanished without a word,
        as with its machine: then so have those to which the idle ones lead, one after the other."""
        try:
            yield
        except FAILURES as error:
            wire.close()
            if isinstance(error, TimeoutError):
                self.close()
            raise

    def _take(self) -> HttpConnection | None:
        """One that was kept and that the server has not closed since."""
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                wire = self._idle.pop()
                if not wire.has_ended():
                    return wire
                wire.close()
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
    """Have the proxy pass on what comes next; raises one of FAILURES where it does not."""
    wire = HttpConnection(sock)
    headers = {"Host": target, **_proxy_headers(proxy)}
    wire.send(render("CONNECT", target, headers, None), _CONNECT_SECONDS)
    if wire.status != 200:
        raise ConnectionError(f"the proxy {proxy.hostname} answered {wire.status}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
