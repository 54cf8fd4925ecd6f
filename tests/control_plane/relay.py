"""A connection to the API server that a test can cut, and mend."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import yaml

_CHUNK: Final = 1 << 16


class Relay:
    """Passes on bytes to the server of a kubeconfig. While it is `cut`, connections end at once."""

    def __init__(self, kubeconfig: Path, copy: Path) -> None:
        """Writes `copy`, a kubeconfig that leads through the relay."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        scheme, _, address = cluster["server"].partition("://")
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        cluster["server"] = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        cluster["tls-server-name"] = host
        copy.write_text(yaml.safe_dump(config))
        self._open: set[socket.socket] = set()
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.cut()
        self._listener.close()

    def cut(self) -> None:
        """End all connections, and each new one."""
        self._is_cut = True
        for each in [*self._open]:
            _end(each)

    def mend(self) -> None:
        """Pass on again what comes."""
        self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open |= {client, server}
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # one of both has ended
            while chunk := source.recv(_CHUNK):
                sink.sendall(chunk)
        for each in (source, sink):
            self._open.discard(each)
            _end(each)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
