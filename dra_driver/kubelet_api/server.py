"""One gRPC server on one unix socket."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.kubelet_api.sockets import SocketError, remove_stale
from dra_driver.model.effects import Effects, Point

logger = logging.getLogger(__name__)

SET_ROOT: Final = "set the chart's kubeletRootDir to the kubelet's --root-dir"

# A claim has at most 32 results and a pod few claims: the largest message is some 100 KiB.
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
    ("grpc.so_reuseport", 0),
)


@dataclass(slots=True, eq=False)
class UnixServer:
    """Serves `services`, each by its servicer, on `path`, with up to `threads` calls at a time."""

    path: Path
    services: Mapping[RpcService, object]
    _: KW_ONLY
    threads: int
    effects: Effects
    _server: grpc.Server | None = field(init=False, default=None)

    @property
    def is_serving(self) -> bool:
        """Whether it was started, and its socket is still there."""
        return self._server is not None and self.path.exists()

    def start(self) -> None:
        """Bind and serve, unless it does; raises SocketError with the path if that is
        impossible."""
        if self.is_serving:
            return
        self.stop(grace=0)
        if not self.path.parent.is_dir():
            raise SocketError(
                f"the folder {self.path.parent} does not exist",
                remedy=SET_ROOT,
            )
        remove_stale(self.path, self.effects)
        server = grpc.server(
            ThreadPoolExecutor(self.threads, thread_name_prefix=self.path.stem),
            options=_OPTIONS,
        )
        for service, servicer in self.services.items():
            service.add_to(server, servicer)
        try:
            with self.effects(Point.SOCKET_BIND):
                server.add_insecure_port(f"unix:{self.path}")
            self.path.chmod(0o600)
        except (RuntimeError, OSError) as error:
            raise SocketError(f"{self.path} cannot be bound: {error}") from error
        server.start()
        self._server = server
        logger.info("serving on %s", self.path)

    def stop(self, grace: float) -> None:
        """Take no new call, wait up to `grace` seconds for running calls, remove the socket."""
        if self._server is None:
            return
        self._server.stop(grace).wait()
        self._server = None
        try:
            with self.effects(Point.SOCKET_REMOVE):
                self.path.unlink(missing_ok=True)
        except OSError as error:
            # The next agent removes it; the rest of the stop must still be done.
            logger.warning("%s stays: %s", self.path, error.strerror)
