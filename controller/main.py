"""``gcu-dra-controller``: settings, ports, the controller, until SIGTERM."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector

from controller.app import Controller
from controller.cache.claims import MANAGER
from controller.extender.extender import Extender
from controller.settings import ControllerSettings
from controller.webhook.counted_limits import CardKinds
from controller.webhook.webhook import Webhook
from dra_driver.config.loader import load
from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.preflight import check_server, missing_dra
from dra_driver.model.effects import Effects
from dra_driver.model.names import ALLOCATOR_SCHEDULER
from dra_driver.telemetry import logs
from dra_driver.telemetry.metric_spec import register_build_info
from dra_driver.telemetry.probes import ProbeServer
from dra_driver.telemetry.program import run_program
from dra_driver.version import VERSION

logger = logging.getLogger(__name__)

_DESCRIPTION = (
    "Allocates ResourceClaims for Enflame GCU devices; where there is no DRA, answers "
    "kube-scheduler which nodes have cards for a pod."
)
_OTHER_REQUESTS = 8  # lists, reads and the lease, beside the writes


def main() -> None:
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Serve until `stop` is set. Raises GcuError where the settings or the server are not such
    that the controller can work."""
    settings = load(
        ControllerSettings, argv, environ, prog="gcu-dra-controller", description=_DESCRIPTION
    )
    logs.configure(settings.log_level, settings.log_format)
    logger.info("gcu-dra-controller %s", VERSION)
    api = connect(
        settings.kubeconfig,
        effects=Effects(),
        user_agent=f"{MANAGER}/{VERSION}",
        at_once=settings.writes_in_flight + _OTHER_REQUESTS,
    )
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    register_build_info(registry)
    identity = settings.pod_name or socket.gethostname()
    controller = front_of(settings, api)(
        settings, api, registry, identity=identity, on_restored=stop.set
    )
    card_kinds = controller.card_kinds if isinstance(controller, Extender) else None
    webhook = webhook_of(settings, api, registry, identity=identity, card_kinds=card_kinds)
    probes = ProbeServer(
        settings.http_port,
        ready=controller.ready,
        live=lambda: controller.live() or (None if webhook is None else webhook.live()),
        registry=registry,
    )
    probes.start()
    logger.info("probes on port %d", probes.port)
    if webhook is not None:
        webhook.start()
        logger.info("serving the admission webhook on port %d", webhook.port)
    controller.start()
    stop.wait()
    logger.info("stopping")
    controller.stop()
    if webhook is not None:
        webhook.stop()
    probes.stop()
    api.close()


def front_of(settings: ControllerSettings, api: Api) -> type[Controller | Extender]:
    """What serves this cluster. Raises Refused where it cannot be what was chosen."""
    version = api.server_version()
    if settings.mode == "device-plugin":
        logger.info("serving %s as a scheduler extender, as mode says", version)
        return Extender
    if settings.mode == "auto" and (missing := missing_dra(api, version)):
        logger.info("serving %s as a scheduler extender: %s", version, missing)
        return Extender
    check_server(version)
    if settings.allocator == ALLOCATOR_SCHEDULER:
        logger.info("serving %s, where kube-scheduler allocates ResourceClaims", version)
    else:
        logger.info("serving %s by allocating ResourceClaims", version)
    return Controller


def webhook_of(
    settings: ControllerSettings,
    api: Api,
    registry: CollectorRegistry,
    *,
    identity: str,
    card_kinds: CardKinds | None = None,
) -> Webhook | None:
    """The admission webhook; None where no certificate for it is named. `card_kinds` is the
    extender's, where there is no DRA."""
    if settings.webhook_certificate is None and settings.webhook_key is None:
        return None
    return Webhook(settings, api, registry, identity=identity, card_kinds=card_kinds)


if __name__ == "__main__":
    main()
