"""DRS instances that were recreated under a prepared claim.

The CDI file of the claim names the new instance. The environment of a running container still names
the old one, and nobody can change that.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dra_driver.model.claims.owner import Owner
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import ClaimState, PreparedClaim


class RecreatedInstance(msgspec.Struct, frozen=True):
    """`after` replaces `before`. `before` is None where the record does not name it: the agent was
    killed, or failed, between the check and the create."""

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


OnRecreated = Callable[[RecreatedInstance], None]
"""Called for each instance that was lost under a claim whose containers may run. Neither raises nor
waits."""


def recreated_instances(
    before: PreparedClaim, after: PreparedClaim | None
) -> tuple[RecreatedInstance, ...]:
    """The instances that differ between two states of one prepared claim."""
    if after is None or not before.state is after.state is ClaimState.PREPARE_COMPLETED:
        return ()
    return tuple(
        RecreatedInstance(after.owner, new.card, old.instance, new.instance)
        for old, new in zip(before.devices, after.devices, strict=False)
        if new.instance is not None and new.instance != old.instance
    )
