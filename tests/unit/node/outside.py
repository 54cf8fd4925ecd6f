"""What is outside of an agent, judged: the simulator's cards, the CDI directory, the claims."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_driver.model.claims.claim import ClaimRef, Result, results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.spec import read_record
from dra_driver.simulator.commands.drs import place, taken
from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.world import CARDS, SLICES

NODE_CARDS = CARDS[:2]
SIZES = 6
_TOPS = re.compile(r"TOPS_VISIBLE_DEVICES=DRS-([0-9a-f-]+)")
_PREFIX = "gcu.enflame.com-claim-"


@dataclass
class Outside:
    """`claims` are those that a pod may use, by UID; `foreign` the instances of somebody else, by
    uuid, with their cards; `former` what claims were that were allocated anew while prepared."""

    world: DrsWorld
    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    foreign: dict[str, PciAddress] = field(default_factory=dict)
    former: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def check(self, *, disturbed: bool, held: Mapping[str, str]) -> None:
        """Nothing is given twice, and nobody else's instance is touched; when not `disturbed`, what
        is there is exactly what prepared claims have, and the journal's states `held` say so."""
        files = self.world.files()
        # A device stands for its former names, too.
        told = {uid: _TOPS.findall(files[f"{_PREFIX}{uid}.json"]) for uid in self.prepared()}
        shown = {uid: list(dict.fromkeys(uuids)) for uid, uuids in told.items()}
        prepared = set(shown)
        assert len(files) == len(prepared), "an unfinished CDI file"
        assert prepared <= self.claims.keys(), "a CDI file without claim"
        # What must never be tried; a create may find no place, and a lost card no index.
        tried = [name for name, words in self.world.tool.refusals if "not found" not in words]
        assert not set(tried) - {"create-instance"}, self.world.tool.refusals
        for address in NODE_CARDS:
            self._check_card(address, shown, disturbed=disturbed)
        uuids = [uuid for each in shown.values() for uuid in each]
        assert len(set(uuids)) == len(uuids), "one instance for two devices"
        if not disturbed:
            # The names of its former devices may be all that a claim has.
            held = {u: s for u, s in held.items() if u in prepared or u not in self.former}
            assert set(held.values()) <= {"prepared"}, held
            assert held.keys() == prepared, (held, prepared)

    def _check_card(
        self, address: PciAddress, shown: dict[str, list[str]], *, disturbed: bool
    ) -> None:
        card = self.world.tool.card(str(address))
        there = {one.uuid: one.profile for one in card.instances}
        for uuid, where in self.foreign.items():
            assert where != address or uuid in there, "a foreign instance is gone"
        given = [r for uid in shown for r in self.results(uid) if _holds(r, address)]
        modes = {_mode(result) for result in given}
        assert len(modes) <= 1, f"card {address} is in two modes"
        assert Mode.WHOLE not in modes or len(given) == 1, f"card {address} is given twice"
        assert sum(map(_amount, given)) <= SIZES == SLICES, f"too much of card {address} is given"
        assert len({r.share_id for r in given}) == len(given), "a share is given twice"
        ours = set(there) - self.foreign.keys()
        if modes & {Mode.WHOLE, Mode.SHARED} and not set(there) & self.foreign.keys():
            assert card.virtualization == "Disable", f"card {address} is given in DRS mode"
        if disturbed:
            return
        told = {
            uuid
            for uid, uuids in shown.items()
            for uuid in uuids
            if card_of(self.results(uid)[0]) == address
        }
        assert ours == told, f"card {address} has {ours}, files tell of {told}"
        sizes = sorted(int(there[uuid][0]) for uuid in ours)
        assert sizes == sorted(_amount(r) for r in given if modes == {Mode.DRS})
        assert (card.virtualization == "DRS") == bool(there), card.virtualization

    def fits(self, uid: str) -> bool | None:
        """Whether the node can give it, everything being at rest; None where either is right."""
        wanted = self.wanted(uid)
        return True if wanted[0].admin_access else self._has_room(wanted)

    def _has_room(self, wanted: Sequence[Result]) -> bool | None:
        address, mode = card_of(wanted[0]), _mode(wanted[0])
        card = self.world.tool.card(str(address))
        others = {other: _mode(r) for other, r in self.given(address)}
        if set(others.values()) - {mode}:
            return False
        told = bool(self.world.cards.problems.get(address))
        foreign = address in self.foreign.values()
        if told or foreign:
            # Of what is unseen so far only who makes instances learns; of what has gone, a look.
            return False if foreign and (told or mode is Mode.DRS) else None
        if mode is Mode.WHOLE:
            return not others
        if mode is Mode.SHARED:
            given = sum(_amount(r) for _, r in self.given(address))
            return given + _amount(wanted[0]) <= SLICES
        occupied = taken(card)
        for result in wanted:
            slots = place(_amount(result), occupied, SIZES, self.world.tool.machine.placement)
            if slots is None:
                return False
            occupied |= set(slots)
        return True

    def given(self, address: PciAddress, *modes: Mode) -> list[tuple[str, Result]]:
        """What prepared claims hold of a card, in these modes or in any."""
        return [
            (uid, result)
            for uid in self.prepared()
            for result in self.results(uid)
            if _holds(result, address) and (not modes or _mode(result) in modes)
        ]

    def prepared(self) -> set[str]:
        """The claims with a CDI file, by UID."""
        cdi = self.world.root / "cdi"
        names = [path.name for path in cdi.iterdir()] if cdi.exists() else []
        ours = (name for name in names if name.endswith(".json"))
        return {name.removeprefix(_PREFIX).removesuffix(".json") for name in ours}

    def results(self, uid: str) -> tuple[Result, ...]:
        """What was allocated to the claim, when it was prepared."""
        for former in self.former.get(uid, ()):
            if self._tells(uid, results(former)) and not self._tells(uid, self.wanted(uid)):
                return results(former)
        return self.wanted(uid)

    def wanted(self, uid: str) -> tuple[Result, ...]:
        """What is allocated to the claim now."""
        return results(self.claims[uid])

    def is_answered(self, uid: str) -> bool:
        """Whether it is prepared as it is allocated now."""
        return uid in self.prepared() and self.results(uid) == self.wanted(uid)

    def exists(self, uid: str) -> bool:
        """Whether the claim is on the API server still."""
        ref = ClaimRef.of(self.claims[uid])
        found = self.world.api.claims.get((ref.namespace, ref.name))
        return found is not None and ClaimRef.of(found) == ref

    def _tells(self, uid: str, allocated: Sequence[Result]) -> bool:
        file = self.world.root / "cdi" / f"{_PREFIX}{uid}.json"
        if not file.exists():
            return False
        _, holds = read_record(file.read_bytes(), uid)
        shown = {(hold.device_name, hold.share_id) for hold in holds}
        return shown == {(each.device, each.share_id) for each in allocated}


def _holds(result: Result, card: PciAddress) -> bool:
    return card_of(result) == card and not result.admin_access


def card_of(result: Result) -> PciAddress:
    """The card that the result is of."""
    return parse_device_name(result.device)[1]


def _mode(result: Result) -> Mode:
    return parse_device_name(result.device)[0]


def _amount(result: Result) -> int:
    return sum(map(int, result.consumed.values()))
