"""Serves the page on 127.0.0.1 to the browser that was given its address."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from dra_driver.telemetry.http_server import LONGEST_REQUEST, ConnectionHandler, HttpServer
from kubectl_gcu.view import page
from kubectl_gcu.view.access import Access
from kubectl_gcu.view.publisher import PagePublisher
from kubectl_gcu.view.snapshot import PageSnapshot, changes

HOST: Final = "127.0.0.1"
_MOST_CONNECTIONS: Final = 32  # some windows of a browser
_SILENCE: Final = 10.0  # seconds; then a comment is sent, which finds out that a browser went away
_TEXT: Final = "text/plain; charset=utf-8"
_HTML: Final = "text/html; charset=utf-8"
_USED: Final = (
    "This address is good for one visit, and for the browser that made it. "
    "Run kubectl gcu view again.\n"
)
# A request that this page makes is sent with the cookie, also where a link elsewhere led to it.
_ENTRANCE: Final = '<!doctype html><meta http-equiv="refresh" content="0;url=/">'
_HEADERS: Final = {
    "Content-Security-Policy": page.POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Explain = Callable[[str, str], dict[str, Any]]
"""What `kubectl gcu explain` says about the pod of a namespace with that name, as JSON has it."""


class PageServer(HttpServer):
    """Serves from `start` on; `address` is what a browser opens."""

    def __init__(self, port: int, publisher: PagePublisher, explain: Explain) -> None:
        """Port 0 is any free port. Raises InvalidValue if the port cannot be opened."""
        super().__init__(
            port, _Handler, name="page", purpose="of the page", limit=_MOST_CONNECTIONS, host=HOST
        )
        self.publisher = publisher
        self.explain = explain
        self.access = Access(self.server_port)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/?token={self.access.token}"


class _Handler(ConnectionHandler):
    server: PageServer
    _cookie = ""

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        with self.server.connections.answering(self.connection):
            self._answer()

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if self._cookie:
            self.send_header("Set-Cookie", self._cookie)
        super().end_headers()

    def _answer(self) -> None:
        access, headers = self.server.access, dict(self.headers)
        target = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(target.query).items()}
        if not access.is_own_page(headers):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "It is not served under that name.\n")
        elif target.path == "/" and "token" in query:
            self._admit(query["token"], has_session=access.has_session(headers))
        elif not (access.is_same_site(headers) and access.has_session(headers)):
            self._refuse(HTTPStatus.FORBIDDEN, _USED)
        elif target.path == "/events":
            self._send_events()
        elif target.path == "/explain":
            self._send_explanation(query.get("namespace", ""), query.get("name", ""))
        else:
            self._send_file(target.path.removeprefix("/") or page.INDEX)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.send(status, _TEXT, text.encode())

    def _admit(self, token: str, *, has_session: bool) -> None:
        self._cookie = self.server.access.redeem(token)
        if self._cookie or has_session:
            self.send(HTTPStatus.OK, _HTML, _ENTRANCE.encode())
        else:
            self._refuse(HTTPStatus.FORBIDDEN, _USED)

    def _send_file(self, name: str) -> None:
        if name not in page.FILES:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such page.\n")
        else:
            self.send(HTTPStatus.OK, page.media_type(name), page.read(name).encode())

    def _send_explanation(self, namespace: str, name: str) -> None:
        text = json.dumps(self.server.explain(namespace, name))
        self.send(HTTPStatus.OK, "application/json", text.encode())

    def _send_events(self) -> None:
        """Server-Sent Events until the browser or the program ends: everything, then changes."""
        self.connection.settimeout(LONGEST_REQUEST)
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        publisher, known = self.server.publisher, None
        while True:
            newest = publisher.next(known, _SILENCE)
            if publisher.is_stopped:
                return
            if newest is None:
                self.wfile.write(b":\n\n")
            else:
                self.wfile.write(message(known, newest))
                known = newest


def message(known: PageSnapshot | None, newest: PageSnapshot) -> bytes:
    """The event that tells a browser which has `known` of `newest`; empty if they do not differ."""
    name, data = (
        ("snapshot", newest.data()) if known is None else ("changes", changes(known, newest))
    )
    if not data:
        return b""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
