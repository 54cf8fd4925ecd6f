"""What the threads that write are asked to do, and what the server answered. Values only: nothing
that travels between threads can be called."""

from __future__ import annotations

from dataclasses import dataclass

from controller.cache.keys import Key
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True, eq=False)
class WriteAllocation:
    """Write the allocations of all these claims of the pod, then lift our gate if the pod has it.
    With `read_pod` the pod is read first, and nothing is written if it has changed."""

    key: Key
    claims: tuple[Object, ...]
    pod: Object
    read_pod: bool


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseAllocation:
    """Clear the allocations of these claims."""

    key: Key
    claims: tuple[Object, ...]
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class SettleUncertain:
    """Make sure that no earlier write to the one claim can still arrive."""

    key: Key
    claims: tuple[Object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LiftGate:
    """Remove our scheduling gate from the pod."""

    key: Key
    pod: Object


@dataclass(frozen=True, slots=True, eq=False)
class ReadVolumes:
    """Read the node selectors of the pod's volumes."""

    key: Key
    pod: Object


@dataclass(frozen=True, slots=True, eq=False)
class CreateTemplate:
    """Create the claim template, for which these pods wait."""

    key: Key
    template: Object
    pods: tuple[Object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DeleteTemplate:
    """Delete this version of the claim template."""

    key: Key
    template: Object


@dataclass(frozen=True, slots=True, eq=False)
class ReadClaim:
    """Read the claim of this name, whatever its UID."""

    key: Key


@dataclass(frozen=True, slots=True, eq=False)
class WriteTerm:
    """Write the leader's term into the claim unless it is allocated."""

    claim: Object
    term: str


ClaimCommand = WriteAllocation | ReleaseAllocation | SettleUncertain
Command = ClaimCommand | LiftGate | ReadVolumes | CreateTemplate | DeleteTemplate
TakeoverCommand = ReadClaim | WriteTerm  # the deciding thread waits for these


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered.

    `claims` are as it has them, each that was reached, and so is `pod`, if it was read or written.
    `found` is the template, or the node selectors of volumes. `error` is what ended the command
    early; if it is no `GcuError` it is a fault of ours. Whether the allocations of the `uncertain`
    claims were written, or still will be, is unknown: the server did not answer. If `pod_changed`,
    nothing was written: the decision was for another version of the pod, and `pod` is the present
    one, None if the pod is gone.
    """

    claims: tuple[Object, ...] = ()
    pod: Object | None = None
    found: tuple[Object, ...] = ()
    error: Exception | None = None
    uncertain: tuple[Object, ...] = ()
    pod_changed: bool = False


@dataclass(frozen=True, slots=True)
class WriteDone:
    """A command ended."""

    command: Command
    answer: Answer
