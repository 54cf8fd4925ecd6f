"""What the kubelet of a random history remembers of claims, and may say to the runtime."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from dra_driver.model.claims.claim_device import ClaimDevice
from tests.unit.node.drs_world import DrsWorld

Answer = tuple[ClaimDevice, ...]


@dataclass
class KubeletMemory:
    """By UID the last answer, and all CDI names of answers since the claim was unprepared."""

    world: DrsWorld
    answers: dict[str, Answer] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)

    def take(self, uid: str, answer: Answer) -> None:
        """What it was told once, it is told again; and the runtime can resolve what it is told."""
        assert self.answers.setdefault(uid, answer) == answer
        told = {name.partition("=")[2] for device in answer for name in device.cdi_ids}
        self.names.setdefault(uid, set()).update(told)
        file = json.loads(self.world.files()[f"gcu.enflame.com-claim-{uid}.json"])
        assert {device["name"] for device in file["devices"]} >= self.names[uid]

    def renew(self, uid: str) -> None:
        """The claim has another allocation: another answer is due."""
        self.answers.pop(uid, None)

    def asks_back(self, uid: str) -> None:
        """The claim is to be unprepared, and may be from now on."""
        self.names.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The claim was unprepared."""
        self.answers.pop(uid, None)
        self.names.pop(uid, None)
