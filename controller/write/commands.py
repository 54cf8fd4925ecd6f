"""What the threads that write are asked to do, and what the server answered. Values only: nothing
that travels between threads can be called."""

from __future__ import annotations

from dataclasses import dataclass

from controller.cache.keys import Key
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True, eq=False)
class _ForPod:
    key: Key
    pod: Object

    @property
    def uids(self) -> tuple[str, ...]:
        return (uid_of(self.pod),)


@dataclass(frozen=True, slots=True, eq=False)
class _ForClaims:
    key: Key
    claims: tuple[Object, ...]

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(map(uid_of, self.claims))


@dataclass(frozen=True, slots=True, eq=False)
class _ForTemplate:
    key: Key
    template: Object

    @property
    def uids(self) -> tuple[str, ...]:
        return (str(self.key),)  # a new one has no UID before the server's answer


@dataclass(frozen=True, slots=True, eq=False)
class WriteAllocation(_ForClaims):
    """Write the allocations of all these claims of the pod, then lift its gate if it is `gated`.
    With `read_pod` the pod is read first, and nothing is written if it has changed."""

    pod: Object
    gated: bool
    read_pod: bool

    @property
    def uids(self) -> tuple[str, ...]:
        return uid_of(self.pod), *map(uid_of, self.claims)


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseAllocation(_ForClaims):
    """Clear the allocations of these claims. They failed for the pod with the UID `failed_for`;
    empty if for no pod."""

    why: str
    failed_for: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SettleUncertain(_ForClaims):
    """Make sure that no earlier write to the one claim can still arrive."""


@dataclass(frozen=True, slots=True, eq=False)
class LiftGate(_ForPod):
    """Remove our scheduling gate from the pod."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadVolumes(_ForPod):
    """Read the node selectors of the pod's volumes."""


@dataclass(frozen=True, slots=True, eq=False)
class CreateTemplate(_ForTemplate):
    """Create the claim template, for which these pods wait."""

    pods: tuple[Object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DeleteTemplate(_ForTemplate):
    """Delete this version of the claim template."""


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

    `objects` are as it has them: a claim for each that was reached, the template, or the node
    selectors of volumes. `pod` is set if the pod was read or written. `error` is what ended the
    command early; if it is no `GcuError` it is a fault of ours. Whether the allocations of the
    `uncertain` claims were written, or still will be, is unknown: the server did not answer. If
    `pod_changed`, nothing was written: the decision was for another version of the pod, and `pod`
    is the present one, None if there is none.
    """

    objects: tuple[Object, ...] = ()
    pod: Object | None = None
    error: Exception | None = None
    uncertain: tuple[Object, ...] = ()
    pod_changed: bool = False


@dataclass(frozen=True, slots=True)
class WriteDone:
    """A command ended."""

    command: Command
    answer: Answer


def uid_of(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
