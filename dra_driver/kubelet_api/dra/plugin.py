"""The DRA plugin that the kubelet sees: the DRA service, and its registration."""

from __future__ import annotations

import logging

import grpc

from dra_driver.kubelet_api.broadcaster import STREAMS, Broadcaster
from dra_driver.kubelet_api.dra import health_service, registration, service
from dra_driver.kubelet_api.dra.health_service import HealthSource
from dra_driver.kubelet_api.dra.service import ClaimHandler, ObserveCalls
from dra_driver.kubelet_api.generated import dra_v1_pb2, pluginregistration_v1_pb2
from dra_driver.kubelet_api.rpc import connected, reason
from dra_driver.kubelet_api.server import SET_ROOT, UnixServer
from dra_driver.kubelet_api.siblings import REGISTRATIONS, SERVICES, Siblings
from dra_driver.kubelet_api.sockets import SocketError, Sockets
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Background

logger = logging.getLogger(__name__)


class SelfCheck(Background):
    """Calls the agent through its own sockets, as the kubelet does, every `interval` seconds in its
    own thread, so that the liveness probe only reads `problem`.

    An answer may take `patience` seconds: the agent must not be killed because slow hardware
    occupies all threads. If the socket is missing, the call fails at once.
    """

    def __init__(
        self, sockets: Sockets, *, interval: float = 10.0, patience: float = 120.0
    ) -> None:
        super().__init__("self-check")
        self._sockets = sockets
        self._interval = interval
        self._patience = patience
        self.problem: str | None = None

    def check(self) -> None:
        """Make both calls, and put their error into `problem`, or None."""
        path = self._sockets.registration
        try:
            with connected(path, registration.SERVICE) as agent:
                request = pluginregistration_v1_pb2.InfoRequest()
                endpoint = agent.GetInfo(request, timeout=self._patience).endpoint
            if endpoint != str(self._sockets.service):
                self.problem = (
                    f"another program answers on {path}, and sends the kubelet to {endpoint}"
                )
                return
            path = self._sockets.service
            with connected(path, service.SERVICE) as agent:
                nothing = dra_v1_pb2.NodePrepareResourcesRequest()
                agent.NodePrepareResources(nothing, timeout=self._patience)
            self.problem = None
        except grpc.RpcError as error:
            self.problem = f"the agent does not answer on {path}: {reason(error)}"

    def run(self) -> None:
        while not self._wait(self._interval):
            self.check()


class KubeletPlugin(Background):
    """Serves `handler` and `health` to the kubelet; `observe` surrounds each call for claims.

    `threads` calls are handled at a time, even while all streams are open. If the kubelet does not
    register the plugin within `registration_timeout` seconds, that is a `problem`. Other agents are
    searched every `check_every` seconds. Raises nothing until `start`.
    """

    def __init__(
        self,
        handler: ClaimHandler,
        health: HealthSource,
        sockets: Sockets,
        observe: ObserveCalls,
        *,
        threads: int = 64,
        registration_timeout: float = 30.0,
        check_every: float = 1.0,
        effects: Effects = NO_FAULTS,
    ) -> None:
        super().__init__("socket-watch")
        self._check_every = check_every
        self._sockets = sockets
        self.broadcaster = Broadcaster(health, resend=health_service.RESEND)
        self._siblings = Siblings(
            {sockets.service: SERVICES, sockets.registration: REGISTRATIONS}, effects
        )
        self.self_check = SelfCheck(sockets)
        self.registration = registration.Registration(sockets, registration_timeout)
        health_servicer = health_service.HealthServicer(self.broadcaster)
        self._service = UnixServer(
            sockets.service,
            {
                service.SERVICE: service.DraServicer(handler, observe, effects),
                **dict.fromkeys(health_service.SERVICES, health_servicer),
            },
            threads=threads + STREAMS,
            effects=effects,
        )
        self._registrar = UnixServer(
            sockets.registration,
            {registration.SERVICE: self.registration},
            threads=2,
            effects=effects,
        )

    def start(self) -> None:
        """Serve, then register. Raises SocketError if a socket cannot be made; it may be tried
        again.

        The service starts first, because the kubelet may call it as soon as it is registered. Its
        folder is made here; the kubelet's `plugins_registry` must exist.
        """
        folder = self._sockets.service.parent
        try:
            # Without its parents: below a wrong root directory they would hide the mistake.
            folder.mkdir(mode=0o750, exist_ok=True)
        except OSError as error:
            raise SocketError(
                f"the folder {folder} cannot be made: {error.strerror}", remedy=SET_ROOT
            ) from error
        self._service.start()
        self._siblings.run_once()  # to notice the end of an agent that is here now
        self._registrar.start()
        self.registration.wait_from_now()
        self.self_check.start()
        super().start()

    def stop(self, grace: float) -> None:
        """Withdraw the registration, then let running calls end, in all within `grace` seconds.

        The kubelet notices that the registration socket is gone, and sends no new call here.
        Streams end before the socket is removed: another agent that finds no socket relies on it.
        """
        deadline = Deadline(grace)
        self._stopped.set()
        self.self_check.stop(timeout=0.0)  # its running call ends with the socket
        self._registrar.stop(grace)
        self.broadcaster.stop()
        self._service.stop(deadline.left())

    def ended(self) -> str | None:
        return super().ended() or self.self_check.ended()

    def run(self) -> None:
        ended = False
        while not self._wait(self._check_every):
            self.registration.problem()  # which it logs if it comes late
            ended_before, ended = ended, self._siblings.run_once()
            # With the other agent's stream the kubelet forgets the health from all agents (1.36.3,
            # `HandleWatchResourcesStream`), perhaps a little later than the agent has ended.
            if ended_before or ended:
                logger.info("another agent has ended: sending the devices' health again")
                self.broadcaster.wake()
