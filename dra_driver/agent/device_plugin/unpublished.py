"""The devices of a node that publishes none, as it serves its pods by the device plugin."""

from __future__ import annotations

from dra_driver.agent.context import AgentContext
from dra_driver.agent.lifecycle.mode_handover import plugin_cards
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.device_layout import Devices, with_held_forms
from dra_driver.agent.slices.failing_taints import FailingTaints


class UnpublishedDevices:
    """What could be given out and what ails it, just as DRA would publish it: for the metrics.

    No taint makes pods leave, as nobody would delete them. A card that is held and was not found
    since the agent's start is lost; of those that nobody holds nothing is known.
    """

    def __init__(self, shared: AgentContext) -> None:
        self._ledger = shared.journal.snapshot
        self._open = FailingTaints(
            DesiredDevices(
                shared.cards,
                shared.card_configs,
                shared.tables,
                published=tuple,
                served=lambda cards: plugin_cards(cards, self._ledger()),
                evict=(),
            ),
            shared.failures,
            ledger=self._ledger,
            evicting=False,
        )

    def __call__(self) -> Devices:
        """Nothing while the cards have not been read; raises JournalError."""
        wanted = self._open()
        if wanted is None:
            return ()
        holdings = self._ledger().claims.values()
        held = {card for holding in holdings for card in holding.cards}
        gone = {
            hold.device
            for holding in holdings
            for hold in holding.devices
            if hold.card not in wanted
        }
        return with_held_forms(wanted, [{"name": name} for name in gone], frozenset(held))
