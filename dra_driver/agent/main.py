"""``gcu-dra-agent``: settings → ports → the agent → run until told to stop."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from prometheus_client import CollectorRegistry

from dra_driver.agent.agent import Agent
from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import load
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError, Refused
from dra_driver.telemetry import logs
from dra_driver.telemetry.probes import ProbeServer

logger = logging.getLogger(__name__)

_OLDEST_MINOR = 36  # device taints, which keep kube-scheduler away, are on from 1.36
_DESCRIPTION = "Publishes the node's Enflame GCUs and prepares them for pods."


def main() -> None:
    """The console script; exits 1 with the reason where it cannot work."""
    logs.configure("info")
    try:
        run(sys.argv[1:], os.environ)
    except GcuError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is for people, a trace is not
        sys.exit(1)


def run(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises GcuError where the settings or the server are not
    such that the agent can work."""
    settings = load(AgentSettings, argv, environ, prog="gcu-dra-agent", description=_DESCRIPTION)
    logs.configure(settings.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    effects = Effects()
    agent_version = version("gcu-dra-driver")
    api = connect(settings.kubeconfig, effects=effects, user_agent=f"gcu-dra-agent/{agent_version}")
    check_server(api.server_version())
    registry = CollectorRegistry()
    agent = Agent(settings, api, effects=effects)
    probes = ProbeServer(
        settings.probe_port, ready=agent.ready, live=lambda: None, registry=registry
    )
    probes.start()
    agent.start()
    logger.info("serving node %s, probes on port %d", settings.node_name, probes.port)
    stop.wait()
    logger.info("stopping")
    agent.stop()
    probes.stop()
    api.close()


def check_server(found: ServerVersion) -> None:
    """Raise Refused for a server that would drop the taints of our devices."""
    if (found.major, found.minor) < (1, _OLDEST_MINOR):
        raise Refused(
            f"the API server is {found}, and device taints are on from 1.{_OLDEST_MINOR} only",
            remedy=f"upgrade the cluster to Kubernetes 1.{_OLDEST_MINOR} or newer",
        )


if __name__ == "__main__":
    main()
