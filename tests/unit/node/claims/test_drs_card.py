"""What of a card's instances is proved to be of an interrupted create."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.simulator.state import InstanceState as There
from tests.unit.node.drs_world import tool
from tests.unit.node.world import CARDS, hold

ONE, TWO, THREE = (
    Instance(1, "1g.6gb", "a"),
    Instance(2, "1g.6gb", "b"),
    Instance(3, "3g.20gb", "c"),
)
HELD = Instance(4, "1g.6gb", "d")
HOLDER = ClaimRef("team", "holder", "uid-holder")


@pytest.mark.parametrize(
    ("before", "listed", "destroyed"),
    [
        pytest.param((), (ONE,), {1}, id="the only one"),
        pytest.param((ONE,), (ONE, TWO), {2}, id="the new one"),
        pytest.param((ONE,), (ONE,), set(), id="nothing new"),
        pytest.param((), (ONE, TWO), set(), id="two, of which one is somebody's"),
        pytest.param((), (THREE,), set(), id="another size"),
        pytest.param((), (ONE, THREE), {1}, id="one of the size"),
        pytest.param((), (HELD,), set(), id="another claim's"),
        pytest.param((), (HELD, ONE), {1}, id="beside another claim's"),
        pytest.param(None, (ONE,), set(), id="no create had begun"),
    ],
)
def test_only_what_is_proved_to_be_ours_is_destroyed(
    tmp_path: Path,
    before: tuple[Instance, ...] | None,
    listed: tuple[Instance, ...],
    destroyed: set[int],
) -> None:
    efsmi = tool()
    there = tuple(There(one.id, one.profile, str(one.uuid), (at,)) for at, one in enumerate(listed))
    efsmi.set_card(str(CARDS[0]), instances=there, virtualization="DRS")
    share = hold(0, mode=Mode.DRS, share_id="s", consumed={"size": "1"})
    ledger = Ledger().apply(
        record(ClaimStep.PREPARE_COMPLETED, HOLDER, (replace(share, instance=HELD),))
    )
    drs = Drs(efsmi, tmp_path, breaker=HungCardBreaker(0))
    steps = DrsCard(drs, ProfileTables(tmp_path), lambda: ledger)
    steps.destroy(replace(share, instances_before=before))
    left = {one.id for one in efsmi.instances(str(CARDS[0]))}
    assert {one.id for one in listed} - left == destroyed
