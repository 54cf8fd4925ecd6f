"""The agent's front for clusters with DRA: slices, the DRA service, claims' statuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.claim_status import ClaimStatuses
from dra_driver.agent.dra.device_health import DeviceHealths
from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.mode_handover import claimed_cards, dra_cards
from dra_driver.agent.metrics import Metrics
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.device_layout import Devices, slice_count
from dra_driver.agent.slices.failing_taints import FailingTaints
from dra_driver.agent.slices.publish_lock import PublishLock
from dra_driver.agent.slices.publisher import Publisher
from dra_driver.kubelet_api.dra.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.errors import GcuError
from dra_driver.model.names import pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.telemetry.program import Deadline
from dra_driver.util.debouncer import Debouncer

# Seconds: pods come in bursts, and who waits for a call goes before who is told of it.
_AFTER_CALLS: Final = 0.25
_LONGEST_AFTER_CALLS: Final = 10.0
_STALE_AFTER: Final = 3  # looks at the cards that are due and did not come


class DraFrontend:
    """Constructing it has no effect. Where it is not `offering`, as new pods are served by the
    device plugin, it serves the claims that are held until they end.

    `serve` and `publish` may be called again and do nothing then. `changed` is called when claims
    were prepared or unprepared.
    """

    def __init__(
        self,
        settings: AgentSettings,
        shared: AgentContext,
        *,
        metrics: Metrics,
        offering: Callable[[], bool],
        event_reporter: EventReporter,
        changed: Callable[[], None],
    ) -> None:
        journal = shared.journal
        offered = DesiredDevices(
            shared.cards,
            shared.card_configs,
            shared.tables,
            published=lambda: self._publisher.devices,
            served=lambda cards: dra_cards(cards, journal.snapshot(), offering=offering()),
            evict=settings.evicting,
        )
        self._publisher = Publisher(
            shared.api,
            settings.node_name,
            devices=FailingTaints(
                offered,
                shared.failures,
                ledger=journal.snapshot,
            ),
            held=lambda: claimed_cards(journal.snapshot()),
            evict=settings.evicting,
            publish_lock=PublishLock(settings.state_directory / "locks" / "publisher.lock"),
            counted=metrics.publication,
        )
        self._statuses = ClaimStatuses(
            shared.api,
            ledger=journal.snapshot,
            cards=shared.by_address,
            waiting=shared.failures.waiting,
            refused=event_reporter.status_refused,
        )
        self._metrics = metrics
        self._after_calls = Debouncer(changed, delay=_AFTER_CALLS, longest=_LONGEST_AFTER_CALLS)
        self._plugin = KubeletPlugin(
            shared.preparer,
            DeviceHealths(
                shared.cards,
                pool=pool_name(settings.node_name),
                published=lambda: self._publisher.devices,
                ledger=journal.snapshot,
                stale=_STALE_AFTER * settings.inventory_interval,
            ),
            Sockets.of(settings.kubelet_root, settings.pod_uid),
            self,
            silence=settings.registration_timeout,
            effects=shared.effects,
        )
        self._serves = False
        self._publishes = False

    def serve(self) -> None:
        """Answer the kubelet; raises SocketError."""
        if not self._serves:
            self._plugin.start()
            self._serves = True

    def publish(self) -> None:
        """Publish slices, and write claims' statuses."""
        if not self._publishes:
            self._publishes = True
            self._publisher.start()
            self._statuses.start()

    def withdraw(self, grace: float) -> None:
        """Take no call any more, and let running ones end within `grace` seconds."""
        self._plugin.stop(grace)

    def stop(self, within: float) -> None:
        """End the rest within so many seconds; the slices stay."""
        deadline = Deadline(within)
        self._after_calls.stop()
        self._statuses.stop(deadline.left())
        self._publisher.stop(deadline.left())

    def on_begin(self, operation: str) -> None:
        """The kubelet asks for claims: `dra_driver.kubelet_api.dra.claim_service.CallObserver`."""
        self._metrics.on_begin(operation)

    def on_end(self, operation: str, seconds: float, errors: Sequence[GcuError]) -> None:
        """As above."""
        self._metrics.on_end(operation, seconds, errors)
        self._after_calls.trigger()

    def wake(self) -> None:
        """A card has changed, or what is held of one: both are published, and told of claims."""
        self._publisher.wake()
        self._statuses.wake()

    def notify_health(self) -> None:
        """The health of a card has changed."""
        self._plugin.notify_health()

    @property
    def devices(self) -> Devices:
        """As they stand on the API server; none until it has told."""
        return self._publisher.devices

    def slice_count(self, card: PciAddress) -> int | None:
        """Into how many slices the card is cut, as published; None where it is not."""
        return slice_count(self._publisher.devices, card)

    @property
    def problem(self) -> str | None:
        """Why claims are not served right now, or None; also while nobody asked to."""
        served = self._plugin.problem() if self._serves else None
        return served or (self._publisher.problem if self._publishes else None)

    def checks(self) -> Mapping[str, Callable[[], bool]]:
        """Whether each thread that was started lives."""
        served = {"the watch over the sockets": self._plugin.is_alive} if self._serves else {}
        published = {
            "the publisher": self._publisher.is_alive,
            "the writer of claims' statuses": self._statuses.is_alive,
        }
        return served | (published if self._publishes else {})

    def fault(self) -> str | None:
        """Which socket is deaf."""
        return self._plugin.fault()
