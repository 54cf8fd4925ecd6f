"""The API server by HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from dra_driver.kube.decode import decode
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import Gone, KubeError
from dra_driver.model.claims.claim import Object
from tests.fake_api.api import FakeApi
from tests.fake_api.errors import Unplayed
from tests.fake_api.feed import Feed
from tests.fake_api.requests import Answer, Request, Requests

_NO_ANSWER: Final = 0


class FakeServer(ThreadingHTTPServer):
    """Serves `api` on a port of this machine until `close`; `kubeconfig` is written for clients."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # a connection that is dropped is tried again after a second

    def __init__(self, api: FakeApi, kubeconfig: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api
        self.kubeconfig = kubeconfig
        self.requests = Requests(api)
        self.unplayed: list[str] = []
        self._feeds: set[Feed] = set()
        self._connections: set[Any] = set()
        kubeconfig.write_text(json.dumps(_kubeconfig(self.server_port)))
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="fake API server"
        )
        self._thread.start()

    def end_watches(self) -> None:
        """As an API server that restarts."""
        for each in [*self._feeds]:
            each.close()

    def close(self) -> None:
        """Raises AssertionError where a request came that is not played."""
        self.shutdown()
        self._thread.join()
        self.end_watches()
        for each in [*self._connections]:
            with suppress(OSError):
                each.shutdown(2)
        self.server_close()
        assert not self.unplayed, f"the fake API server does not play {self.unplayed}"

    @contextmanager
    def following(self, feed: Feed) -> Iterator[Feed]:
        """A watch is under way."""
        self._feeds.add(feed)
        try:
            yield feed
        finally:
            self._feeds.discard(feed)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections end at any moment, as programs do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: FakeServer

    def answer(self) -> None:
        """One request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        request = Request(
            self.command,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            self.headers.get("User-Agent", ""),
            self.headers.get("Accept", ""),
            self.headers.get("Content-Type", ""),
            body,
        )
        try:
            found = self.server.requests.answer(request)
            if isinstance(found, Feed):
                self._stream(found)
            else:
                self._send(found)
        except Unplayed as error:
            self.server.unplayed.append(f"{self.command} {self.path}: {error}")
            self._send(_status(501, "NotImplemented", str(error)))
        except KubeError as error:
            self._refuse(error)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Nobody reads it."""

    def _refuse(self, error: KubeError) -> None:
        if error.status == _NO_ANSWER:
            self.close_connection = True
            return
        after = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:g}"}
        self._send(_status(error.status, error.reason, error.what), after)

    def _send(self, answer: Answer, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
        self.wfile.flush()

    def _stream(self, feed: Feed) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        with self.server.following(feed):
            try:
                for event in feed:
                    self._send_event(event.change, event.object)
            except Gone as error:
                told = _status(error.status, error.reason, error.what)
                self._send_event("ERROR", decode(told.body))
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send_event(self, kind: str, obj: Object) -> None:
        line = encode({"type": kind, "object": obj}) + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()


def _status(code: int, reason: str, message: str) -> Answer:
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return Answer(code, encode(body))


def _kubeconfig(port: int) -> Object:
    named = {"name": "fake", "context": {"cluster": "fake", "user": "fake"}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fake", "user": {}}],
        "contexts": [named],
        "current-context": "fake",
    }
