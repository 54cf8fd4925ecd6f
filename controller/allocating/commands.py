"""Commands that write allocations of claims."""

from __future__ import annotations

from dataclasses import dataclass

from controller.write.commands import Command
from dra_driver.model.claims.claim import Object


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WriteAllocation(Command):
    """Write the allocations of all `claims` of `pod`, then remove our gate if the pod has it and
    `lifts_gate`. With `read_pod` the pod is read first, and nothing is written if the pod has
    changed. `binds_volumes`: see `Allocated`."""

    pod: Object
    read_pod: bool
    lifts_gate: bool = True
    binds_volumes: bool = False


@dataclass(frozen=True, slots=True)
class Handover:
    """The clock takes devices from the unit with the UID `giver`, for the pod `pod` of the unit
    `heir`; for nobody if both are empty."""

    giver: str
    heir: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReleaseAllocation(Command):
    """Clear the allocations of `claims`. `why` is for the log. `note` is of the event about the
    pod `key` and the claims, empty if people need none. `handover`: the clock releases them."""

    why: str
    note: str = ""
    handover: Handover | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FenceClaim(Command):
    """Make sure that no earlier write of ours to the one claim can still arrive."""
