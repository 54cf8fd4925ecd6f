"""Into how many slices a card is cut for those who get some of them now. Pure."""

from __future__ import annotations

from dra_driver.device_plugin.inventory import granted_total
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger


def slice_total(ledger: Ledger, card: PciAddress, *, published: int | None, rule: int) -> int:
    """As many as the device plugin has granted some of, while it has. Otherwise as many as are
    `published`, by which the allocator counts, and as those who hold some were promised: after a
    start the latter is known first. What is neither published nor held is cut by the `rule`."""
    promised = ledger.promised_slices(card)
    known = [total for total in (published, promised) if total is not None]
    return granted_total(ledger, card, Mode.SHARED) or max(known, default=rule)
