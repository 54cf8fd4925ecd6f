"""What follows from an answer of the API server, in the deciding thread."""

from __future__ import annotations

from dataclasses import dataclass

from controller.filter.volumes import Volumes
from controller.reconcile.committer import AllocationCommitter
from controller.reconcile.deallocator import Deallocator
from controller.reconcile.templates import TemplateKeeper
from controller.write.commands import (
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadVolumes,
    ReleaseAllocation,
    SettleUncertain,
    WriteAllocation,
    WriteDone,
)


@dataclass(frozen=True, slots=True)
class AnswerHandlers:
    """Those that act on answers, each on those of its commands."""

    committer: AllocationCommitter
    deallocator: Deallocator
    volumes: Volumes
    templates: TemplateKeeper

    def handle(self, done: WriteDone) -> None:
        """Raises what ended the command, once its answer was acted on."""
        match done.command:
            case WriteAllocation() as command:
                self.committer.on_allocation(command, done.answer)
            case ReleaseAllocation() as command:
                self.deallocator.on_release(command, done.answer)
            case LiftGate() as command:
                self.committer.on_gate_lifted(command, done.answer)
            case SettleUncertain() as command:
                self.committer.on_settled(command, done.answer)
            case ReadVolumes() as command:
                self.volumes.on_read(command, done.answer)
            case CreateTemplate() as command:
                self.templates.on_created(command, done.answer)
            case DeleteTemplate() as command:
                self.templates.on_deleted(command, done.answer)
