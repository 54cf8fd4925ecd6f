"""What a call of efsmi did to another card than it was meant for, as its indexes moved. Pure.

Nothing on that card tells whose it is, but that the call succeeded, and the card had the index; so
what is not known to be ours already, and is the only such of its size, is.
"""

from __future__ import annotations

from dataclasses import replace

from dra_driver.hardware.drs_errors import Misplaced
from dra_driver.model.device import device_name
from dra_driver.model.mode import Mode
from dra_driver.model.owner import Owner, Remnant
from dra_driver.node.ledger import Ledger
from dra_driver.node.records import CardKind, Hold, Kind, Record, card_record, record


def misplaced(ledger: Ledger, owner: Owner, hold: Hold, error: Misplaced) -> tuple[Record, ...]:
    """The records by which the next look takes back what was done to `error.stranger` instead of
    the card of `hold`."""
    card = error.stranger
    if not error.made:
        return () if card in ledger.switched else (card_record(CardKind.DRS_ON, card),)
    there = replace(
        hold,
        device=device_name(Mode.DRS, card),
        sees=(card,),
        instance=None,
        before=ledger.instances(card),
        formerly=(),
    )
    return (record(Kind.UNPREPARING, Remnant.of(owner, ledger.holdings), (there,)),)
