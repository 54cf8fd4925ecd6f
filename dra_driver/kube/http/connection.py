"""One connection that speaks HTTP/1.1: requests go out as text, answers are read by `httptools`."""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Mapping
from typing import Final

from httptools import HttpParserError, HttpResponseParser

# The errors of sending and reading; ValueError for a header that cannot be sent, and for a socket
# that another thread has closed.
FAILURES: Final = (OSError, HttpParserError, ValueError)

_PIECE: Final = 1 << 16  # bytes
_UNSENDABLE: Final = re.compile(r"[\x00-\x1f\x7f]")  # they would end a line of the request
# An answer with neither ends with the connection, as a refusal of a proxy in between may.
_MEASURES: Final = frozenset({"content-length", "transfer-encoding"})


def render(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """A request; `target` is quoted. Raises ValueError for a header that would end its line."""
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if _UNSENDABLE.search(value):
            raise ValueError(f"the value of the header {name} cannot be sent")
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode("ascii") + (body or b"")


class HttpConnection:
    """A socket on which one request at a time is under way.

    `status` and `headers` (names in lower case) are those of the last answer. `send`, `read1` and
    `read` raise one of FAILURES; then the connection must be closed.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.status = 0
        self.headers: dict[str, str] = {}
        self._parser = HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = False
        self._is_complete = True
        self._keeps = False

    @property
    def is_reusable(self) -> bool:
        """Whether the answer is complete and the connection can carry another."""
        return self._is_complete and self._keeps

    def send(self, request: bytes, seconds: float) -> None:
        """Send the request and read the head of its answer; the server may be silent for
        `seconds`, now and in what is read afterwards."""
        self.headers = {}
        self._has_head = self._is_complete = False
        if self.sock.gettimeout() != seconds:
            self.sock.settimeout(seconds)
        self.sock.sendall(request)
        while not self._has_head:
            self._take_in()

    def read1(self) -> bytes:
        """The next piece of the answer's body; empty at its end."""
        while not self._pieces and not self._is_complete:
            self._take_in()
        return self._taken()

    def read(self) -> bytes:
        """All that is left of the body."""
        while not self._is_complete:
            self._take_in()
        return self._taken()

    def has_ended(self) -> bool:
        """Whether the server has sent something without a request, usually the end."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))

    def shutdown(self) -> None:
        """End `read1` in another thread, which then fails, or finds the end."""
        # That of an SSLSocket would first take away what the other thread reads with.
        socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()

    def on_message_begin(self) -> None:
        """Called by the parser, as all below."""
        if self._is_complete:
            raise ConnectionError("the server sent more than its answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200  # else the answer is yet to follow
        # The parser does not know it any more when the answer is complete.
        self._keeps = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head
        if not self._has_head:
            self.headers = {}

    def _take_in(self) -> None:
        data = self.sock.recv(_PIECE)
        if data:
            self._parser.feed_data(data)
        elif self._has_head and not self.headers.keys() & _MEASURES:
            self._is_complete = True
        else:
            raise ConnectionError("the server closed the connection before its answer's end")

    def _taken(self) -> bytes:
        content = b"".join(self._pieces)
        self._pieces.clear()
        return content
