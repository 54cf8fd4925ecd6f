"""``gcu-dra-agent``: reads the settings, and runs the agent until SIGTERM."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector

from dra_driver.agent.agent import Agent
from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import load
from dra_driver.kube.client import connect
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.telemetry import logs
from dra_driver.telemetry.metric_spec import register_build_info
from dra_driver.telemetry.probes import ProbeServer
from dra_driver.telemetry.program import run_program, wait_until_stopped
from dra_driver.util.collection import no_collection
from dra_driver.version import VERSION

logger = logging.getLogger(__name__)

_DESCRIPTION = "Publishes the node's Enflame GCUs and prepares them for pods."


def main() -> None:
    run_program(run)


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    stop: threading.Event,
    *,
    effects: Effects = NO_FAULTS,
) -> None:
    """Serve until `stop` is set. Raises GcuError if the agent can never work with the settings. It
    waits for folders, hardware and the API server."""
    settings = load(AgentSettings, argv, environ, prog="gcu-dra-agent", description=_DESCRIPTION)
    logs.configure(settings.log_level, settings.log_format, settings.rotated_log)
    logger.info("gcu-dra-agent %s", VERSION)
    api = connect(settings.kubeconfig, effects=effects, user_agent=f"gcu-dra-agent/{VERSION}")
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    register_build_info(registry)
    agent = Agent(settings, api, effects=effects, registry=registry, on_restart=stop.set)
    probes = ProbeServer(settings.probe_port, ready=agent.ready, live=agent.live, registry=registry)
    probes.start()
    logger.info("serving node %s, probes on port %d", settings.node_name, probes.port)
    # Modules and classes are never freed. Each full collection that visits them would delay every
    # call by tens of milliseconds.
    gc.freeze()
    no_collection.end_start()
    agent.start()
    wait_until_stopped(stop)
    logger.info("stopping")
    agent.stop()
    probes.stop()
    api.close()


if __name__ == "__main__":
    main()
