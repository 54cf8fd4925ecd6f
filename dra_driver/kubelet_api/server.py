"""One gRPC server on one unix socket."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.errors import SocketError
from dra_driver.kubelet_api.sockets import make_room
from dra_driver.model.effects import Effects, Point

logger = logging.getLogger(__name__)

# A claim has at most 32 results and a pod few claims: the largest message is some 100 KiB.
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
    ("grpc.so_reuseport", 0),
)


class UnixServer:
    """Serves what `register` adds, on `path`, with up to `threads` calls at a time.

    The authority that kubelets below 1.26 sent on a unix socket could be rejected by gRPC's C
    core. Those versions are not supported, newer ones send ``localhost``: no option is needed.
    """

    def __init__(
        self,
        path: Path,
        register: Callable[[grpc.Server], None],
        *,
        threads: int,
        effects: Effects,
    ) -> None:
        self.path = path
        self._register = register
        self._threads = threads
        self._effects = effects
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Bind and serve; raises SocketError, naming the path, when that is impossible."""
        if not self.path.parent.is_dir():
            raise SocketError(
                f"the folder {self.path.parent} does not exist",
                remedy="set the chart's kubeletRootDir to the kubelet's --root-dir",
            )
        make_room(self.path, self._effects)
        server = grpc.server(
            ThreadPoolExecutor(self._threads, thread_name_prefix=self.path.stem),
            options=_OPTIONS,
        )
        self._register(server)
        try:
            with self._effects(Point.SOCKET_BIND):
                server.add_insecure_port(f"unix:{self.path}")
            self.path.chmod(0o600)
        except (RuntimeError, OSError) as error:
            raise SocketError(f"{self.path} cannot be bound: {error}") from error
        server.start()
        self._server = server
        logger.info("serving on %s", self.path)

    def stop(self, grace: float) -> None:
        """Take no new call, wait up to `grace` seconds for those running, remove the socket."""
        if self._server is None:
            return
        self._server.stop(grace).wait()
        self._server = None
        try:
            with self._effects(Point.SOCKET_REMOVE):
                self.path.unlink(missing_ok=True)
        except OSError as error:
            # The next agent removes what a dead one left; what follows the stop is to come.
            logger.warning("%s stays: %s", self.path, error.strerror)
