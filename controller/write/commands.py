"""What the deciding thread asks the pool's threads to write or read, and what the server answered.

Commands and answers are values: no function travels between the threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.cache.keys import Key
from controller.write.node_hint import NodeHint
from controller.write.volumes import NO_VOLUMES, PodVolumes
from dra_driver.kube.errors import KubeError
from dra_driver.model.claims.claim import Object


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Command:
    """A write for the pod, claim or template `key`, which is reconciled again after the answer.
    Those of one `sequence` are executed one after the other, as they were dispatched; what hands
    nothing over to kube-scheduler may be executed before."""

    key: Key
    sequence: str = ""
    claims: tuple[Object, ...] = ()
    pod: Object | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LiftGate(Command):
    """Remove our scheduling gate from the pod. If `node` is given, it is proposed to kube-scheduler
    before, by `hint`."""

    pod: Object
    node: str = ""
    hint: NodeHint = NodeHint.NAME


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NameNode(Command):
    """Name the node in the pod's status, and leave its gate. Without `node` the name goes."""

    pod: Object
    node: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClearNomination(Command):
    """Take the name of the node out of this version of the pod's status."""

    pod: Object


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadVolumes(Command):
    """Read where the pod's volumes are."""

    pod: Object


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CreateTemplate(Command):
    """Create the claim template, for which the pods `waiting` wait."""

    template: Object
    waiting: tuple[Object, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeleteTemplate(Command):
    """Delete this version of the claim template."""

    template: Object


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered to a command.

    `claims`: the claims that were written or read, as the server has them.
    `pod`: the pod, if it was written or read.
    `found`: the template.
    `volumes`: where the pod's volumes are.
    `error`: what ended the command early; an error that is no `GcuError` is a fault of ours.
    `uncertain`: claims whose write the server did not answer: it may still arrive.
    `hint_refused`: why no node was proposed. A `LiftGate` lifted the gate nevertheless.
    `pod_changed`: nothing was written, because the decision was for another version of the pod.
    `pod` is the present version then, or None if the pod is gone.
    """

    claims: tuple[Object, ...] = ()
    pod: Object | None = None
    found: tuple[Object, ...] = ()
    volumes: PodVolumes = NO_VOLUMES
    error: Exception | None = None
    uncertain: tuple[Object, ...] = ()
    hint_refused: KubeError | None = None
    pod_changed: bool = False


@dataclass(frozen=True, slots=True)
class WriteDone:
    """The event that a command has ended."""

    command: Command
    answer: Answer
