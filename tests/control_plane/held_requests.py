"""kube-scheduler behind a proxy that can hold one of its requests: it is sent, and has not reached
the API server. And the proxy can delay what a watch reports."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.cluster import configs
from tests.cluster.cluster import Cluster
from tests.cluster.pki import Authority, KeyPair
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import components

_OF_THE_CONNECTION: Final = {"connection", "keep-alive", "transfer-encoding", "host"}
_BLOCK: Final = 65536
NOT_LATE: Final[Mapping[str, float]] = MappingProxyType({})


class Held:
    """The next request like this one waits from its arrival until it is let go."""

    def __init__(self, method: str, path: str, having: bytes) -> None:
        self._method = method
        self._path = path
        self._having = having
        self._has_arrived = threading.Event()
        self._may_pass = threading.Event()

    def wait_for_arrival(self) -> None:
        """Return when it waits."""
        assert self._has_arrived.wait(PATIENCE), f"no {self._method} {self._path}"

    def let_go(self) -> None:
        """It goes on to the API server."""
        self._may_pass.set()

    def heed(self, method: str, path: str, body: bytes) -> None:
        """Return at once unless the request is the one."""
        is_it = (method, path) == (self._method, self._path) and self._having in body
        if is_it and not self._has_arrived.is_set():
            self._has_arrived.set()
            self._may_pass.wait(PATIENCE)


class Proxy(ThreadingHTTPServer):
    """Passes requests on as those of `client`, whose certificate it shows to the API server."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, cluster: Cluster, serving: KeyPair, client: KeyPair) -> None:
        super().__init__((str(cluster.machine_address), 0), _Handler)
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(serving.certificate, serving.key)
        self._trust = ssl.create_default_context(cafile=str(client.certificate.parent / "ca.crt"))
        self._trust.load_cert_chain(client.certificate, client.key)
        self._server = urlsplit(cluster.control_plane.server)
        self._open: set[HTTPSConnection] = set()
        self._held: list[Held] = []
        self._answers: list[tuple[str, str, int]] = []
        self._late: dict[str, float] = {}

    def delay_watch(self, path: str, seconds: float) -> None:
        """Watches of that path that begin from now on report everything so much later."""
        self._late[path] = seconds

    def delay_of(self, address: str) -> float:
        """In seconds, of the answer to a GET of that path and query."""
        parts = urlsplit(address)
        return self._late.get(parts.path, 0.0) if "watch" in parse_qs(parts.query) else 0.0

    def hold(self, method: str, path: str, having: bytes = b"") -> Held:
        """Hold the next request with this in its body."""
        held = Held(method, path, having)
        self._held.append(held)
        return held

    def wait_for_answer(self, method: str, path: str) -> int:
        """The status of the first answer to such a request, once there is one."""
        wait_until(lambda: self._statuses(method, path), PATIENCE, f"an answer to {method} {path}")
        return self._statuses(method, path)[0]

    def finish_request(self, request: Any, client_address: Any) -> None:
        with self._serving.wrap_socket(request, server_side=True) as connection:
            super().finish_request(connection, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections end at any moment, as kube-scheduler does."""

    def heed(self, method: str, path: str, body: bytes) -> None:
        """Wait as long as such a request is held."""
        for each in self._held:
            each.heed(method, path, body)

    def note(self, method: str, path: str, status: int) -> None:
        """A request was answered."""
        self._answers.append((method, path, status))

    def connect(self) -> HTTPSConnection:
        """A connection to the API server, until `close`."""
        host, port = self._server.hostname, self._server.port
        connection = HTTPSConnection(str(host), port, context=self._trust)
        connection.connect()
        self._open.add(connection)
        return connection

    def forget(self, connection: HTTPSConnection) -> None:
        """It is of no use any more."""
        self._open.discard(connection)

    def end_all(self) -> None:
        """End the watches: their threads would wait for the next event."""
        for each in [*self._open]:
            with suppress(OSError, AttributeError):
                each.sock.shutdown(socket.SHUT_RDWR)

    def _statuses(self, method: str, path: str) -> list[int]:
        return [status for *what, status in self._answers if what == [method, path]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def forward(self) -> None:
        """One request, and its answer as it comes."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        self.server.heed(self.command, path, body)
        connection = self.server.connect()
        with closing(connection), suppress(OSError, HTTPException):
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_THE_CONNECTION}
            connection.request(self.command, self.path, body or None, headers)
            with connection.getresponse() as answer:
                self.server.note(self.command, path, answer.status)
                self._answer(answer)
        self.server.forget(connection)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = forward  # noqa: N815 - http.server's names

    def _answer(self, answer: HTTPResponse) -> None:
        self.send_response_only(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in _OF_THE_CONNECTION:
                self.send_header(key, value)
        is_chunked = answer.getheader("Content-Length") is None
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for block in _later(answer, self.server.delay_of(self.path)):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block) if is_chunked else block)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Nobody reads it."""


def _later(answer: HTTPResponse, seconds: float) -> Iterator[bytes]:
    """The blocks of the answer, each so much later than it came."""
    blocks = SimpleQueue[tuple[float, bytes]]()

    def read() -> None:
        block = b"unread"
        while block:
            try:
                block = answer.read1(_BLOCK)
            # The proxy ends, or kube-scheduler has ended: a closed answer has no file to read.
            except (OSError, HTTPException, ValueError, AttributeError):
                block = b""
            blocks.put((time.monotonic() + seconds, block))

    threading.Thread(target=read, name="late", daemon=True).start()
    while True:
        due, block = blocks.get()
        time.sleep(max(0.0, due - time.monotonic()))
        if not block:
            return
        yield block


@contextmanager
def held_scheduler(
    cluster: Cluster, folder: Path, *flags: str, late: Mapping[str, float] = NOT_LATE
) -> Iterator[Proxy]:
    """Until the end kube-scheduler runs with these flags and talks to the API server by way of the
    proxy. `late` has paths whose watches report so many seconds later. Files are written to
    `folder`."""
    authority = Authority(folder)
    pki = cluster.directory / "pki"
    client = KeyPair(pki / f"{components.SCHEDULER}.crt", pki / f"{components.SCHEDULER}.key")
    proxy = Proxy(cluster, authority.server("proxy", (cluster.machine_address,)), client)
    for path, seconds in late.items():
        proxy.delay_watch(path, seconds)
    address = f"https://{cluster.machine_address}:{proxy.server_port}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(configs.kubeconfig(address, authority.certificate, client)))
    thread = threading.Thread(target=proxy.serve_forever, name="proxy")
    thread.start()
    try:
        with components.changed(cluster, f"--kubeconfig={kubeconfig}", *flags):
            yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.end_all()
        proxy.server_close()
