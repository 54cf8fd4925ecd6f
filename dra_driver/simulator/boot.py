"""What a reboot does to the machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from dra_driver.model.errors import InvalidValue
from dra_driver.simulator.state import CardState, MachineState


def rebooted(machine: MachineState, order: Sequence[str] = ()) -> MachineState:
    """The machine after a reboot: pending ECC states are current, DRS instances forgotten unless
    the machine keeps them, the driver loaded.

    `order`, addresses of all cards, numbers their indexes and minors anew from 0. Lost cards
    stay lost. Raise InvalidValue when `order` is not all the cards.
    """
    cards = tuple(_rebooted(card, keep=machine.instances_survive_reboot) for card in machine.cards)
    if order:
        wanted = [machine.card(bdf).bdf for bdf in order]
        if sorted(wanted) != sorted(card.bdf for card in cards):
            raise InvalidValue(
                f"the order {', '.join(order)} is not that of all cards",
                remedy="name each card once",
            )
        cards = tuple(
            card._replace(efsmi_index=wanted.index(card.bdf), minor=wanted.index(card.bdf))
            for card in cards
        )
    return machine._replace(cards=cards, driver_loaded=True, boots=machine.boots + 1)


def with_ecc(card: CardState, ecc: str) -> CardState:
    """The card with that ECC state; another one has other profiles, so instances are gone."""
    return card if ecc == card.ecc_current else _without_drs(card)._replace(ecc_current=ecc)


def _rebooted(card: CardState, *, keep: bool) -> CardState:
    card = with_ecc(card, card.ecc_pending)
    return card if keep else _without_drs(card)._replace(next_instance_id=1)


def _without_drs(card: CardState) -> CardState:
    mode = "Disable" if card.virtualization == "DRS" else card.virtualization
    return card._replace(instances=(), virtualization=mode)
