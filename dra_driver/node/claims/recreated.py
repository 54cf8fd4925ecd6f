"""DRS instances that were made anew under a claim that had been prepared.

Its CDI file names the new one, and nobody can alter the environment of a container that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from dra_driver.model.instance import Instance
from dra_driver.model.owner import Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import PreparedClaim, State


@dataclass(frozen=True, slots=True)
class RecreatedInstance:
    """`after` took the place of `before`, which is None where the record does not name it any
    more: the agent was killed, or failed, between looking and making."""

    owner: Owner
    card: PciAddress
    before: Instance | None
    after: Instance

    @property
    def text(self) -> str:
        """What happened and what to do, for people."""
        gone = f" {self.before}" if self.before is not None else ""
        return (
            f"{self.owner.title}: its DRS instance{gone} on card {self.card} was gone, and "
            f"{self.after} was made in its place; a container that started before has the old one "
            "in TOPS_VISIBLE_DEVICES and cannot use the new one: restart its pod"
        )


def recreated_instances(
    before: PreparedClaim, after: PreparedClaim | None
) -> tuple[RecreatedInstance, ...]:
    """The instances that are others `after`, where both are of one prepared claim."""
    if after is None or not before.state is after.state is State.PREPARE_COMPLETED:
        return ()
    return tuple(
        RecreatedInstance(after.owner, new.card, old.instance, new.instance)
        for old, new in zip(before.devices, after.devices, strict=False)
        if new.instance is not None and new.instance != old.instance
    )
