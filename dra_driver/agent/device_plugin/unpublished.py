"""The devices of a node that the device plugin serves, and that are published nowhere."""

from __future__ import annotations

from dra_driver.agent.context import AgentContext
from dra_driver.agent.lifecycle.mode_handover import plugin_cards
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.device_layout import Devices, with_layouts_in_use


class UnpublishedDevices:
    """The devices with their taints, as DRA would publish them: for the metrics.

    No taint has the effect NoExecute, because nothing would delete the pods. A card in use that
    was not found since the agent's start is lost; other cards that were not found are unknown.
    """

    def __init__(self, context: AgentContext) -> None:
        self._ledger = context.journal.snapshot
        self._cards = context.cards
        self._desired = DesiredDevices(
            context,
            published=tuple,
            select=lambda cards: plugin_cards(cards, self._ledger()),
            evict=(),
            evicting=False,
        )

    def __call__(self) -> Devices:
        """Empty while the cards have not been read; raises JournalError."""
        wanted = self._desired()
        if wanted is None:
            return ()
        claims = self._ledger().claims.values()
        held = {card for claim in claims for card in claim.cards}
        gone = {
            device.device_name
            for claim in claims
            for device in claim.devices
            if device.card not in wanted
        }
        published = [{"name": name} for name in gone]
        return with_layouts_in_use(wanted, published, frozenset(held), unread=self._cards.unread)
