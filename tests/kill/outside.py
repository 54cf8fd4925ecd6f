"""The invariants at rest, judged from outside: the simulator's cards and record, the CDI
directory, the API server's slices."""

from __future__ import annotations

import os
import re

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from tests.cluster.waiting import wait_until
from tests.kill.grants import CARDS, FOREIGN, Grant
from tests.kill.node import Node

_SLICES = _SIZES = 6  # of a card
_TOPS = re.compile(r"TOPS_VISIBLE_DEVICES=DRS-([0-9a-f-]+)")
_PUBLISH_SECONDS = 30.0


def shown(node: Node, ref: ClaimRef) -> bool:
    """Whether the claim has a CDI file."""
    return node.file_of(ref).exists()


def is_whole(node: Node, ref: ClaimRef) -> bool:
    """Whether the claim has a CDI file, and the instance that it tells of if that is so."""
    if not shown(node, ref):
        return False
    return node.held[ref].mode is not Mode.DRS or instance_of(node, ref) is not None


def instance_of(node: Node, ref: ClaimRef) -> int | None:
    """The id of the instance of which the claim's CDI file tells, if there is such."""
    told = _TOPS.findall(node.file_of(ref).read_text())
    return next((one.id for one in node.machine.instances() if [one.uuid] == told), None)


def check(node: Node) -> None:
    """What is there is exactly what the held claims have, and nothing is given twice. Raises
    AssertionError."""
    node.settle()
    files = node.files()
    names = {ref: node.file_of(ref).name for ref in node.held}
    assert set(files) == set(names.values()), f"held are {names}"
    uuids = [uuid for text in files.values() for uuid in _TOPS.findall(text)]
    assert len(set(uuids)) == len(uuids), "one instance for two claims"
    for card in CARDS:
        given = {ref: grant for ref, grant in node.held.items() if grant.card == card}
        _check_card(node, card, given, {ref: _TOPS.findall(files[names[ref]]) for ref in given})
    _check_foreign(node)


def _check_card(
    node: Node, card: PciAddress, given: dict[ClaimRef, Grant], told: dict[ClaimRef, list[str]]
) -> None:
    grants = list(given.values())
    modes = {grant.mode for grant in grants}
    assert len(modes) <= 1, f"card {card} is in two modes: {grants}"
    assert Mode.WHOLE not in modes or len(grants) == 1, f"card {card} is given twice"
    assert sum(grant.amount for grant in grants) <= _SLICES == _SIZES, f"card {card} is too small"
    there = {
        one.uuid: int(one.profile.partition("g")[0]) for one in node.machine.instances(str(card))
    }
    wanted = {uuid: grant.amount for ref, grant in given.items() for uuid in told[ref]}
    assert all(len(told[ref]) == (grant.mode is Mode.DRS) for ref, grant in given.items()), told
    assert there == wanted, f"card {card} has instances {there}, its claims {wanted}"
    mode = node.machine.card(str(card)).virtualization
    assert mode == ("DRS" if Mode.DRS in modes else "Disable"), f"card {card} is left in {mode}"


def _check_foreign(node: Node) -> None:
    """Somebody else's instance is there, and no agent tried to alter it or its card; nor did it
    try anything that the machine had to refuse."""
    assert node.machine.instances(str(FOREIGN)), "the foreign instance is gone"
    ours = [e for e in node.machine.take_record() if e.mutates and e.pid != os.getpid()]
    touched = [entry for entry in ours if entry.card == str(FOREIGN)]
    assert not touched, f"the foreign instance's card was touched: {touched}"
    refused = [entry for entry in ours if entry.exit_code not in {0, None}]
    assert not refused, f"the machine refused: {refused}"


def await_published(node: Node) -> None:
    """Return when what must be published is."""
    wait_until(
        node.publishes, _PUBLISH_SECONDS, "all devices published", seen=node.log, interval=0.05
    )
