"""``gcu-dra-controller``: settings, ports, and what runs until SIGTERM."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from prometheus_client import CollectorRegistry, ProcessCollector

from controller.app import Controller
from controller.cache.claims import MANAGER
from controller.cache.published_kinds import PublishedKinds
from controller.extender.extender import Extender
from controller.runnable import Runnable, RunnableGroup
from controller.settings import ControllerSettings
from controller.webhook.counted_limits import CardKinds
from controller.webhook.webhook import Webhook
from dra_driver.config.loader import load
from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.preflight import check_server, missing_dra
from dra_driver.kube.server_wait import ServerWait
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
    """Serve until `stop` is set. Waits for an API server that is away, and is not ready meanwhile.
    Raises GcuError where the settings or the server are not such that the controller can work."""
    settings = load(
        ControllerSettings, argv, environ, prog="gcu-dra-controller", description=_DESCRIPTION
    )
    logs.configure(settings.log_level, settings.log_format, settings.rotated_log)
    logger.info("gcu-dra-controller %s", VERSION)
    api = connect(
        settings.kubeconfig,
        effects=Effects(),
        user_agent=f"{MANAGER}/{VERSION}",
        at_once=settings.writes_in_flight + _OTHER_REQUESTS,
    )
    with closing(api):
        _serve(settings, api, stop)


def _serve(settings: ControllerSettings, api: Api, stop: threading.Event) -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    register_build_info(registry)
    server_wait = ServerWait(stop.wait)
    group = RunnableGroup(lambda: server_wait.problem or "the controller is starting")
    probes = ProbeServer(settings.http_port, ready=group.ready, live=group.live, registry=registry)
    probes.start()
    logger.info("probes on port %d", probes.port)
    try:
        with_claims = _ask(server_wait, settings, api, stop)
        if with_claims is not None:
            runnables = runnables_of(
                settings, api, registry, with_claims=with_claims, on_restored=stop.set
            )
            group.start(runnables)
        stop.wait()
        logger.info("stopping")
        group.stop()
    finally:
        probes.stop()


def _ask(
    server_wait: ServerWait, settings: ControllerSettings, api: Api, stop: threading.Event
) -> bool | None:
    """`serves_claims`, once the API server answers; None where `stop` was set before."""
    try:
        return server_wait.until_answered(lambda: serves_claims(settings, api))
    except KubeError:
        if stop.is_set():
            return None
        raise


def runnables_of(
    settings: ControllerSettings,
    api: Api,
    registry: CollectorRegistry,
    *,
    with_claims: bool,
    on_restored: Callable[[], None],
) -> list[Runnable]:
    """What this process runs, in the order in which it is started: with `with_claims` what
    allocates ResourceClaims, otherwise the scheduler extender; and the admission webhook, if a
    certificate for it is named. Sends nothing. Raises InvalidValue where the settings lack a
    file."""
    identity = settings.pod_name or socket.gethostname()
    card_kinds: CardKinds | None = None
    has_leader: Callable[[], bool] | None = None
    published: PublishedKinds | None = None
    front: Runnable
    if with_claims:
        controller = Controller(settings, api, registry, identity=identity, on_restored=on_restored)
        front, has_leader = controller, controller.has_leader if settings.names_nodes else None
        published = controller.published
    else:
        extender = Extender(settings, api, registry, identity=identity, on_restored=on_restored)
        front, card_kinds = extender, extender.card_kinds
    if settings.webhook_certificate is None and settings.webhook_key is None:
        return [front]
    webhook = Webhook(
        settings,
        api,
        registry,
        identity=identity,
        card_kinds=card_kinds,
        has_leader=has_leader,
        published=published,
    )
    return [webhook, front]


def serves_claims(settings: ControllerSettings, api: Api) -> bool:
    """Whether ResourceClaims are allocated in this cluster; otherwise kube-scheduler is extended.
    Raises Refused where the server has no DRA and the settings choose it, and KubeError."""
    version = api.server_version()
    if settings.mode == "device-plugin":
        logger.info("serving %s as a scheduler extender, as mode says", version)
        return False
    if settings.mode == "auto" and (missing := missing_dra(api, version)):
        logger.info("serving %s as a scheduler extender: %s", version, missing)
        return False
    check_server(version)
    if settings.allocator == ALLOCATOR_SCHEDULER:
        logger.info("serving %s, where kube-scheduler allocates ResourceClaims", version)
    else:
        logger.info("serving %s by allocating ResourceClaims", version)
    return True


if __name__ == "__main__":
    main()
