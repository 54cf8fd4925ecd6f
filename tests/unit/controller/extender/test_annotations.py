from __future__ import annotations

from controller.extender.annotations import describe
from controller.extender.asked import Asked
from controller.extender.held import Tenant
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.build import address, card


def tenant(mode: Mode, total: int, *cards: int) -> Tenant:
    return Tenant(
        "uid", "default/p", Asked(mode, (("c0", total),), total), tuple(map(address, cards))
    )


def test_a_shared_card_is_described_as_the_vendor_does() -> None:
    found = describe(tenant(Mode.SHARED, 2, 3), [card(1), card(3)], 1_700_000_000_000_000_001)
    assert found == {
        "gcu.enflame.com/assigned-cards": "0000:03:00.0",
        "enflame.com/gcu-assigned-minor": "13",
        "enflame.com/gcu-assigned-index": "3",
        "enflame.com/gcu-request-size": "2",
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-time": "1700000000000000001",
    }


def test_whole_cards_have_our_own_annotation_alone() -> None:
    found = describe(tenant(Mode.WHOLE, 2, 1, 3), [card(1), card(3)], 1)
    assert found == {"gcu.enflame.com/assigned-cards": "0000:01:00.0,0000:03:00.0"}
