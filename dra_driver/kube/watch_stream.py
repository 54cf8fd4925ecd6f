"""One watch as the server sends it: a line of JSON for each event, until the connection ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dra_driver.kube.api import Change, WatchEvent
from dra_driver.kube.decode import WHOLE, Decoder, decode_event
from dra_driver.kube.errors import from_response, no_answer
from dra_driver.kube.http.connection import FAILURES, HttpConnection


class WatchStream:
    """The lines of one watch, decoded as they come."""

    def __init__(self, stream: HttpConnection, name: str, decoder: Decoder = WHOLE) -> None:
        self._stream = stream
        self._name = name
        self._decoder = decoder
        self._closed = False
        self._is_read = False

    def __iter__(self) -> Iterator[WatchEvent]:
        self._is_read = True
        try:
            for line in self._lines():
                yield self._event(line)
        except FAILURES as error:
            # After close() the socket is shut under the reader: whatever that raises is the end.
            if not self._closed:
                raise no_answer(self._name, error) from error
        finally:
            self._closed = True
            self._stream.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._is_read:  # and it never will be, as the stream is closed
            self._stream.close()
            return
        try:
            self._stream.shutdown()
        except (RuntimeError, ValueError, OSError):
            # The response ended by itself in the meantime: nothing is left to interrupt.
            return

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while not self._closed:
            chunk = self._stream.read1()
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)

    def _event(self, line: bytes) -> WatchEvent:
        kind, found = decode_event(line, self._decoder)
        if kind == "ERROR":
            status = int(found.get("code") or 500)
            raise from_response(self._name, status, json.dumps(found).encode())
        return WatchEvent(Change(kind), found)
