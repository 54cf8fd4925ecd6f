"""The webhook as one thing: wired from its ports, started, stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.allocator.packing.policy import Policy
from controller.cache.published_kinds import PublishedKinds
from controller.https.certificates import SERVER, CertificateFiles, Certificates
from controller.https.expiry import RENEW, Expiry
from controller.https.server import HttpsServer
from controller.legacy_resources.decision_cache import DecisionCache, reflector
from controller.own_pod import OwnPod
from controller.runnable import ended_thread
from controller.settings import ControllerSettings
from controller.webhook.capacity_writer import CapacityWriter
from controller.webhook.counted_limits import CardKinds
from controller.webhook.gate import NominationGate, set_gate
from controller.webhook.limits import LimitRules
from controller.webhook.service import WebhookService, with_dra, without_dra
from dra_driver.config.loader import listed_names
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DEVICE_CLASSES, DRIVER
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Background

logger = logging.getLogger(__name__)

_CHECK_EVERY: Final = 60.0  # seconds between two checks of the certificate's end
_END: Final = 5.0  # seconds that stopping takes at most
_CERTIFICATES: Final = {SERVER: ("the certificate of the admission webhook", RENEW)}


class Webhook(Background):
    """Serves API servers, and reports when its certificate expires, in a thread of its own.

    Constructing has no effects. Raises InvalidValue where a file of the certificate is not named.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        api: Api,
        registry: CollectorRegistry,
        *,
        identity: str,
        card_kinds: CardKinds | None = None,
        has_leader: Callable[[], bool] | None = None,
        published: PublishedKinds | None = None,
    ) -> None:
        """`identity` is this pod's name. Where there is no DRA, `card_kinds` has what limits by
        memory and compute are translated by, and nothing else is served. Where nodes are named,
        `has_leader` says whether somebody does so. Where kube-scheduler allocates, `published` has
        the cards by which the amounts of claims are written."""
        super().__init__("webhook-certificate")
        self._drain = settings.webhook_drain
        name, decided = settings.legacy_resources_config, DecisionCache()
        self._decision_watch = (
            reflector(api, settings.lease_namespace, name, decided) if name else None
        )
        classes = [*DEVICE_CLASSES, *listed_names(settings.webhook_device_classes)]
        mutations = (
            without_dra(card_kinds)
            if card_kinds is not None
            else with_dra(
                classes,
                LimitRules(
                    frozenset(listed_names(settings.webhook_scheduler_names)),
                    settings.webhook_scheduler_name,
                    settings.webhook_drop_node_selector,
                ),
                translates=lambda: not name or bool(decided.translates),
                gate=set_gate
                if has_leader is None
                else NominationGate(api, classes, settings.served_schedulers, has_leader),
                capacity=None
                if published is None
                else CapacityWriter(published, Policy(settings.pack_nodes, settings.pack_cards)),
            )
        )
        service = WebhookService(mutations, registry)
        certificates = Certificates(_files(settings))
        self._server = HttpsServer(
            settings.webhook_port,
            certificates,
            service.answers,
            name="webhook",
            purpose="of the admission webhook",
        )
        self._recorder = EventRecorder(api, controller=f"{DRIVER}/controller", instance=identity)
        self._expiry = Expiry(
            certificates.ends,
            _CERTIFICATES,
            specs.WEBHOOK_CERTIFICATE_END.register(registry),
            OwnPod(api, self._recorder, namespace=settings.lease_namespace, name=identity),
            now=time.time,
        )

    @property
    def port(self) -> int:
        """The HTTPS port, after `start`."""
        return self._server.port

    def start(self) -> None:
        """Start all threads. Raises InvalidValue where certificate or port are not to be had."""
        self._server.start()
        self._recorder.start()
        if self._decision_watch is not None:
            self._decision_watch.start()
        super().start()
        logger.info("serving the admission webhook on port %d", self.port)

    def stop(self, timeout: float = _END) -> None:
        """Serve until API servers know that this pod ends; then stop within so many seconds."""
        self._wait(self._drain)
        deadline = Deadline(timeout)
        self._server.stop()
        super().stop(deadline.left())
        if self._decision_watch is not None:
            self._decision_watch.stop(deadline.left())
        self._recorder.stop(deadline.left())

    def run(self) -> None:
        while True:
            self._expiry.check()
            if self._wait(_CHECK_EVERY):
                return

    def ready(self) -> str | None:
        """None where API servers are answered."""
        if not self._server.is_alive():
            return "the admission webhook does not listen yet"
        watch = self._decision_watch
        if watch is not None and not watch.synced.is_set():
            return "the admission webhook has not read yet whether limits become claims"
        return None

    def live(self) -> str | None:
        """Which thread ended, which only a fault of ours can cause."""
        watch = self._decision_watch
        return ended_thread(
            {
                "the server of the webhook": self._server.is_alive(),
                "the webhook's watch of the decision about limits": watch is None
                or watch.is_alive(),
                "the check of the webhook's certificate": self.is_alive(),
            }
        )


def _files(settings: ControllerSettings) -> CertificateFiles:
    certificate, key = settings.webhook_certificate, settings.webhook_key
    if certificate is None or key is None:
        raise InvalidValue(
            "the admission webhook has no certificate or no key",
            remedy="set webhook-certificate and webhook-key, or neither",
        )
    return CertificateFiles(certificate, key)
