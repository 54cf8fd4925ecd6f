"""The health of devices, from that of cards, from what is published and from what claims hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.device_health import DeviceHealths
from dra_driver.kubelet_api.dra.health_service import Health
from dra_driver.model.card import Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import JournalError
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice
from tests.unit.agent.cards.watched import FIRST, SECOND, Watched

CARDS = (str(FIRST), str(SECOND))
POOL = "gcu.enflame.com/node"
ONE, TWO = "whole-0000-0d-00-0", "whole-0000-0e-00-0"
UNIX_TIME = 1_700_000_000.0


class World(Watched):
    """The health of the devices of those cards."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, cooldown=0)
        self.now = 100.0
        self.devices: list[dict[str, str]] = [{"name": ONE}, {"name": TWO}]
        self.ledger = Ledger()
        self.journal_error: JournalError | None = None
        context = SimpleNamespace(
            cards=self.cards, published=self, journal=SimpleNamespace(snapshot=self._read)
        )
        self.healths = DeviceHealths(
            cast("AgentContext", context),
            pool=POOL,
            stale=180.0,
            now=lambda: UNIX_TIME + self.now,
        )

    def states(self) -> Mapping[str, Health]:
        found = self.healths()
        assert {each.pool for each in found} <= {POOL}
        assert len(found) == len({each.device for each in found})
        return {each.device: each.health for each in found}

    def message(self, device: str) -> str:
        [found] = [each.message for each in self.healths() if each.device == device]
        return found

    def _read(self) -> Ledger:
        if self.journal_error is not None:
            raise self.journal_error
        return self.ledger


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "machine")
    world.cards.refresh()
    return world


def test_all_is_well(world: World) -> None:
    assert world.states() == {ONE: Health.HEALTHY, TWO: Health.HEALTHY}
    assert world.message(ONE) == ""


def test_a_cards_problems_are_those_of_all_its_devices_while_they_last(world: World) -> None:
    world.devices.append({"name": ONE.replace("whole", "shared")})
    world.machine.set_card(CARDS[0], health=False, rma=True, eccPending="Disable")
    world.cards.refresh()
    ill = dict.fromkeys((ONE, "shared-0000-0d-00-0"), Health.UNHEALTHY)
    assert world.states() == ill | {TWO: Health.HEALTHY}
    assert world.message(ONE) == (
        f"card {CARDS[0]}: efsmi says Health : False; efsmi flags the card for return; "
        "an ECC change waits for a reset"
    )
    world.machine.set_card(CARDS[0], health=True, rma=False, eccPending="Enable", lost=True)
    world.cards.refresh()
    assert world.message(ONE).endswith("; gone from the PCI bus")
    world.machine.set_card(CARDS[0], lost=False)
    world.cards.refresh()
    assert {*world.states().values()} == {Health.HEALTHY}


def test_a_card_that_somebody_else_divides_is_healthy(world: World) -> None:
    address = PciAddress.parse(CARDS[0])
    world.cards.foreign = {address: Problem(TAINT_FOREIGN, "", "somebody's instance 1")}
    assert world.states()[ONE] is Health.HEALTHY


def test_what_is_held_is_told_without_an_api_server(world: World) -> None:
    world.devices = []
    ref = ClaimRef("team", "one", "uid-one")
    holds = (PreparedDevice("gcu", POOL, "shared-0000-0e-00-0", "share-1"),)
    world.ledger = Ledger({ref.uid: PreparedClaim(ref, ClaimStep.PREPARE_COMPLETED, holds, ())})
    assert world.states() == {"shared-0000-0e-00-0": Health.HEALTHY}


def test_a_held_card_that_was_lost_before_the_agent_began(world: World) -> None:
    world.devices.append({"name": "whole-0000-0f-00-0"})
    assert world.states()["whole-0000-0f-00-0"] is Health.UNHEALTHY
    assert "has not been found" in world.message("whole-0000-0f-00-0")


def test_a_held_card_that_hangs_since_before_the_agent_began_was_found(tmp_path: Path) -> None:
    world = World(tmp_path / "machine")
    world.hang_second()
    world.cards.refresh()
    assert world.states() == {ONE: Health.HEALTHY, TWO: Health.UNHEALTHY}
    assert world.message(TWO) == f"card {CARDS[1]}: it did not end within 20 s"


def test_a_journal_that_cannot_be_read_leaves_what_is_published(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.journal_error = JournalError("the disk is gone")
    assert world.states() == {ONE: Health.HEALTHY, TWO: Health.HEALTHY}
    assert "the disk is gone" in caplog.text


def test_another_versions_devices_are_not_judged(world: World) -> None:
    world.devices.append({"name": "drs-1g-0000-0d-00-0-0"})
    assert set(world.states()) == {ONE, TWO}


def test_nothing_is_known_before_the_first_look(tmp_path: Path) -> None:
    world = World(tmp_path / "machine")
    assert world.states() == {ONE: Health.UNKNOWN, TWO: Health.UNKNOWN}
    assert world.message(ONE) == f"card {CARDS[0]}: the hardware has not been read yet"
    assert {each.updated for each in world.healths()} == {0}


def test_machine_that_cannot_be_read_leaves_the_sick_sick_and_the_rest_unknown(
    world: World,
) -> None:
    world.machine.lose_card(CARDS[1])
    world.cards.refresh()
    world.machine.set_fault("efsmi-exit")
    world.cards.refresh()
    assert world.states() == {ONE: Health.UNKNOWN, TWO: Health.UNHEALTHY}
    world.machine.clear_faults()
    world.cards.refresh()
    assert world.states() == {ONE: Health.HEALTHY, TWO: Health.UNHEALTHY}


def test_an_old_look_is_not_vouched_for(world: World) -> None:
    world.now += 180
    assert world.states()[ONE] is Health.HEALTHY
    world.now += 1
    assert world.states()[ONE] is Health.UNKNOWN
    # The same words each time: the kubelet writes pods' statuses when they change.
    assert world.message(ONE) == (f"card {CARDS[0]}: the cards were last read more than 180 s ago")
    world.cards.refresh()
    assert world.states()[ONE] is Health.HEALTHY


def test_the_time_is_that_of_the_look(world: World) -> None:
    world.now += 42
    assert {each.updated for each in world.healths()} == {1_700_000_100}
