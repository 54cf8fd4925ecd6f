"""The agent's front end for DRA: slices, the kubelet plugin, the claims' status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.claim_status import ClaimStatuses
from dra_driver.agent.dra.deleted_claims import DeletedClaimDetector, PatientHandler
from dra_driver.agent.dra.device_health import DeviceHealths
from dra_driver.agent.lifecycle.mode_handover import claimed_cards, dra_cards
from dra_driver.agent.lifecycle.serving_mode import ServingMode
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.allocator_handover import AllocatorHandover
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.publisher import PublishLock, SlicePublisher
from dra_driver.kubelet_api.dra.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.errors import GcuError
from dra_driver.model.names import pool_name
from dra_driver.util.background import Background
from dra_driver.util.debouncer import Debouncer

# Seconds: pods start in bursts, and the kubelet's calls go before the writes that follow them.
_AFTER_CALLS: Final = 0.25
_LONGEST_AFTER_CALLS: Final = 10.0
_STALE_AFTER: Final = 3  # inventories that were due and did not succeed


class DraFrontend:
    """Constructing it has no effect. If DRA is not the serving mode, it serves the claims that are
    prepared until they end. `serve` and `publish` do nothing when they are called again."""

    def __init__(self, settings: AgentSettings, context: AgentContext) -> None:
        ledger, published = context.journal.snapshot, context.published
        handover = AllocatorHandover(
            context.api,
            (settings.lease_namespace, settings.lease_name),
            settings.allocator,
            published=lambda: published.devices,
        )
        self.deleted_claims = DeletedClaimDetector(context)
        desired = DesiredDevices(
            context,
            select=lambda cards: dra_cards(
                cards,
                ledger(),
                active=context.serving.is_mode(ServingMode.DRA),
                retained=handover.cards_to_retain(),
            ),
            in_use=lambda: claimed_cards(ledger()) | handover.cards_to_retain(),
            evict=settings.evicting,
            allocator=handover.allocator,
            held=self.deleted_claims.cards,
        )
        self._publisher = SlicePublisher(
            context.api,
            settings.node_name,
            devices=desired,
            form=settings.slice_form,
            publish_lock=PublishLock(settings.state_directory / "locks" / "publisher.lock"),
            published=published,
            on_publication=context.metrics.publication,
        )
        self._statuses = ClaimStatuses(context)
        self._metrics = context.metrics
        self._after_calls = Debouncer(
            context.on_change, delay=_AFTER_CALLS, longest=_LONGEST_AFTER_CALLS
        )
        self._plugin = KubeletPlugin(
            PatientHandler(context.preparer, ledger, self.deleted_claims.deleted_among),
            DeviceHealths(
                context,
                pool=pool_name(settings.node_name),
                stale=_STALE_AFTER * settings.inventory_interval,
            ),
            Sockets.of(settings.kubelet_root, settings.pod_uid),
            self._observe,
            registration_timeout=settings.registration_timeout,
            effects=context.effects,
        )
        self.server: Background = self._plugin
        self.writers: Sequence[Background] = (self.deleted_claims, self._statuses, self._publisher)

    def serve(self) -> None:
        """Answer the kubelet; raises SocketError."""
        if not self._plugin.is_started:
            self._plugin.start()

    def publish(self) -> None:
        """Publish slices, and write the claims' status."""
        for part in reversed(self.writers):
            part.start()

    @contextmanager
    def _observe(self, operation: str) -> Iterator[list[GcuError]]:
        with self._metrics.claims(operation) as errors:
            yield errors
        self._after_calls.trigger()

    def wake(self) -> None:
        """A card or its use has changed: update the slices and the claims' status."""
        self._publisher.wake()
        self._statuses.wake()

    def notify_health(self) -> None:
        """A card has changed: send the devices' health to the kubelet."""
        self._plugin.broadcaster.wake()

    @property
    def problem(self) -> str | None:
        """Why claims are not served right now; None if they are, or need not be."""
        served = self._plugin.registration.problem() if self._plugin.is_started else None
        return served or (self._publisher.problem if self._publisher.is_started else None)

    def fault(self) -> str | None:
        """Why the agent cannot be reached through its sockets, or None."""
        return self._plugin.self_check.problem
