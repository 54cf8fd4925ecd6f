"""``gcu-dra-controller``: settings, ports, the controller, until SIGTERM."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry

from controller.authorship import MANAGER
from controller.controller import Controller
from controller.settings import ControllerSettings
from dra_driver.config.loader import load
from dra_driver.kube.client import connect
from dra_driver.kube.preflight import check_server
from dra_driver.model.effects import Effects
from dra_driver.telemetry import logs
from dra_driver.telemetry.probes import ProbeServer
from dra_driver.telemetry.program import run_program
from dra_driver.version import VERSION

logger = logging.getLogger(__name__)

_DESCRIPTION = "Allocates ResourceClaims for Enflame GCU devices."


def main() -> None:
    """The console script."""
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Serve until `stop` is set. Raises GcuError where the settings or the server are not such
    that the controller can work."""
    settings = load(
        ControllerSettings, argv, environ, prog="gcu-dra-controller", description=_DESCRIPTION
    )
    logs.configure(settings.log_level)
    api = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{MANAGER}/{VERSION}")
    check_server(api.server_version())
    registry = CollectorRegistry()
    identity = settings.pod_name or socket.gethostname()
    controller = Controller(settings, api, registry, identity=identity)
    probes = ProbeServer(
        settings.http_port, ready=controller.ready, live=controller.live, registry=registry
    )
    probes.start()
    logger.info("probes on port %d", probes.port)
    controller.start()
    stop.wait()
    logger.info("stopping")
    controller.stop()
    probes.stop()
    api.close()


if __name__ == "__main__":
    main()
