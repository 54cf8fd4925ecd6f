"""Into how many slices a card is cut, and the configuration by which its claims were counted."""

from __future__ import annotations

from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.slices.device_layout import slice_count
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.sources import LedgerSource
from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.inventory import granted_total
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger


class SliceTotals:
    """By the ledger, the published slices and the card rules, as they are now."""

    def __init__(
        self, ledger: LedgerSource, published: SliceCache, card_configs: CardConfigSource
    ) -> None:
        self._ledger = ledger
        self._published = published
        self._card_configs = card_configs

    def __call__(self, card: PciAddress) -> int:
        """The card's number of slices; raises JournalError."""
        return slice_total(
            self._ledger(),
            card,
            published=slice_count(self._published.devices, card),
            rule=self._card_configs.of(card).slice_count,
        )


def slice_total(ledger: Ledger, card: PciAddress, *, published: int | None, rule: int) -> int:
    """While the device plugin has given slices of the card to containers, the number by which it
    counted them. Otherwise the `published` number, by which the allocator counts, or the number
    that was promised to claims, if that is larger: after a start only the latter is known. A card
    that is neither published nor in use is cut by the `rule`. Pure."""
    promised = ledger.promised_slices(card)
    known = [total for total in (published, promised) if total is not None]
    return granted_total(ledger, card, Mode.SHARED) or max(known, default=rule)


def config_in_use(ledger: Ledger, card: PciAddress, rule: CardConfig) -> CardConfig:
    """The configuration by which the claims of the card were counted, as far as the ledger has it;
    the `rule` if no claim uses the card. Pure."""
    modes = {
        device.mode
        for held, device in ledger.holders_of(card)
        if not isinstance(held.owner, ContainerAllocation)
    }
    promised = ledger.promised_slices(card) if Mode.SHARED in modes else None
    return CardConfig(promised or rule.slice_count, rule.modes | modes)
