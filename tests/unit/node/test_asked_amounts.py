"""What was granted less than the claim's GcuConfig asks for, or in another isolation, is refused
before anything happens to the card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.mode import Mode
from dra_driver.model.profile import Profile, ProfileTable
from tests.unit.node.drs_world import DrsWorld, errors, share
from tests.unit.node.world import CARDS, claim, gcu_config, result

# A card has 42976 MiB: six slices of 7162 MiB, or instances of 6, 20 and 40 GiB.
TABLE = ProfileTable.of(
    [
        Profile("1g.6gb", 0, 6, 6860, 4),
        Profile("3g.20gb", 1, 2, 20580, 12),
        Profile("6g.40gb", 2, 1, 41160, 24),
    ]
)


def asking(granted: dict[str, Any], *of_class: dict[str, Any], **fields: object) -> dict[str, Any]:
    """A claim with a GcuConfig of these fields, to which an allocator granted that."""
    own = [gcu_config("FromClaim", **fields)] if fields else []
    found = claim("one", granted, config=(*of_class, *own))
    exactly = {"deviceClassName": "part-gcu.enflame.com"}
    found["spec"]["devices"]["requests"] = [{"name": "gcu", "exactly": exactly}]
    return found


OF_CLASS = gcu_config("FromClass", isolation="fixed-share")
SLICES = {amount: share(0, Mode.SHARED, amount, "a") for amount in (1, 2, 3)}
SIZES = {amount: share(0, Mode.DRS, amount, "a") for amount in (1, 3, 6)}
WHOLE = result(0)


def world(folder: Path) -> DrsWorld:
    found = DrsWorld(folder)
    ProfileTables(folder / "state").learn(found.cards.card(CARDS[0]), TABLE)
    return found


ENOUGH = {
    "slices": asking(SLICES[2], memory="13Gi", cores=33),
    "more slices": asking(SLICES[3], memory="14Gi"),
    "an instance": asking(SIZES[3], memory="20Gi", cores=50),
    "a larger instance": asking(SIZES[6], memory="7Gi"),
    "slices, best-effort": asking(SLICES[1], memory="6Gi", isolation="best-effort"),
    "an instance, fixed-share": asking(SIZES[1], cores=16, isolation="fixed-share"),
    "isolation alone": asking(SIZES[1], isolation="fixed-share"),
    "a whole card": asking(WHOLE, memory="40Gi", cores=99),
    "more slices than asked for by number": asking(SLICES[3], slices=2),
    "isolation of the class": asking(SIZES[1], OF_CLASS, cores=10),
}


@pytest.mark.parametrize("granted", ENOUGH.values(), ids=ENOUGH)
def test_enough_is_prepared(tmp_path: Path, granted: dict[str, Any]) -> None:
    node = world(tmp_path)
    assert errors(node.start(), node.api.add(granted)) == [""]


LESS = {
    "memory of slices": (
        asking(SLICES[1], memory="14Gi"),
        (
            "its GcuConfig asks for memory 14336Mi, and slices 1 was granted, which has memory "
            "7162Mi; let gcu-dra-controller allocate it, or ask for slices or size by "
        ),
    ),
    "cores of slices": (
        asking(SLICES[1], cores=17),
        "asks for cores 17, and slices 1 was granted, which has cores 16;",
    ),
    "an instance": (
        asking(SIZES[1], memory="20Gi", cores=40),
        (
            "asks for memory 20480Mi and cores 40, and size 1 was granted, which has memory "
            "6144Mi and cores 16;"
        ),
    ),
    "one of two": (
        asking(SIZES[3], memory="20Gi", cores=51),
        "asks for memory 20480Mi and cores 51, and size 3 was granted, which has cores 50;",
    ),
    "memory of a whole card": (
        asking(WHOLE, memory="60Gi"),
        "and a whole card was granted, which has memory 42976Mi",
    ),
    "an instance for best-effort": (
        asking(SIZES[6], memory="6Gi", isolation="best-effort"),
        (
            "asks for isolation best-effort, and a drs device was granted; request the class "
            "shared-gcu.enflame.com"
        ),
    ),
    "slices for fixed-share": (
        asking(SLICES[3], slices=3, isolation="fixed-share"),
        (
            "asks for isolation fixed-share, and a shared device was granted; request the class "
            "drs-gcu.enflame.com"
        ),
    ),
    "a whole card for fixed-share": (
        asking(WHOLE, isolation="fixed-share"),
        "asks for isolation fixed-share, and a whole device was granted",
    ),
    "isolation of the class": (
        asking(SLICES[1], OF_CLASS),
        "asks for isolation fixed-share, and a shared device was granted",
    ),
}


@pytest.mark.parametrize(("granted", "reason"), LESS.values(), ids=LESS)
def test_less_is_refused_before_anything_happens(
    tmp_path: Path, granted: dict[str, Any], reason: str
) -> None:
    node = world(tmp_path)
    agent = node.start()
    node.tool.calls.clear()
    [error] = errors(agent, node.api.add(granted))
    assert error.startswith("claim team/one, request 'gcu', device ")
    assert reason in error
    assert not agent.held()
    assert not node.files()
    assert not node.tool.calls


def test_an_instance_whose_profile_is_not_known_yet(tmp_path: Path) -> None:
    node = DrsWorld(tmp_path)
    [error] = errors(node.start(), node.api.add(asking(SIZES[3], memory="20Gi")))
    assert error.endswith(
        "its GcuConfig asks for memory 20480Mi, and what size 3 of this card is, is not known; the "
        "agent reads the profiles of its cards, and the kubelet retries"
    )
