"""A way to the API server that can be shut, for one agent alone."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from dra_driver.model.claims.claim import Object
from tests.descriptors import readable

_HOST = "127.0.0.1"
_CHUNK = 1 << 16


class Door:
    """Carries bytes between a port of this machine and the server at `url`; shut at first.
    While it is shut, the port refuses; `knocks` counts who came since it was last shut to be
    counted. What is sent through waits `delay` seconds."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._server = (parts.hostname, parts.port or 443)
        with socket.create_server((_HOST, 0)) as listener:
            self.port: int = listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.knocks = 0
        self.delay = 0.0

    def open(self) -> None:
        """Let connections through."""
        self._listener = socket.create_server((_HOST, self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """Refuse new connections and cut those that there are."""
        if self._listener is not None:
            _end(self._listener)
            self._listener = None
        while self._open:
            _end(self._open.pop())

    def shut_and_count(self) -> None:
        """As `shut`, but those who come are counted before they are sent away."""
        self.shut()
        self.knocks = 0
        self._listener = socket.create_server((_HOST, self.port))
        threading.Thread(target=self._turn_away, args=(self._listener,), daemon=True).start()

    def kubeconfig(self, of: Path, path: Path) -> Path:
        """Write to `path` the kubeconfig `of`, leading through here."""
        content: Object = json.loads(of.read_text())
        for each in content["clusters"]:
            each["cluster"]["server"] = f"https://{_HOST}:{self.port}"
            # Its certificate is not for this address.
            each["cluster"].pop("certificate-authority-data", None)
            each["cluster"]["insecure-skip-tls-verify"] = True
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
                server = socket.create_connection(self._server)
            except OSError:  # shut
                return
            self._open += [caller, server]
            threading.Thread(target=self._carry, args=(caller, server), daemon=True).start()

    def _turn_away(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:  # shut
                return
            self.knocks += 1
            _end(caller)

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        """Until one side ends, or both are cut."""
        towards: dict[socket.socket, Callable[[bytes], None]] = {
            one: other.sendall,
            other: one.sendall,
        }
        try:
            with suppress(OSError, ValueError):  # cut
                while True:
                    for source in readable(*towards):
                        data = source.recv(_CHUNK)
                        if not data:
                            return
                        time.sleep(self.delay)
                        towards[source](data)
        finally:
            _end(one)
            _end(other)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
