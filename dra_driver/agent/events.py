"""The agent's events, about its Node or about a claim."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError
from dra_driver.node.claims.device_ops import RecreatedInstance

logger = logging.getLogger(__name__)

# Reasons of events; docs/user/events.md lists them.
MODE_CHOSEN: Final = "GcuServingModeChosen"
NOT_SERVING: Final = "GcuNotServing"
SERVING: Final = "GcuServing"
CARD_LOST: Final = "GcuCardLost"
CARD_BACK: Final = "GcuCardBack"
CARD_UNHEALTHY: Final = "GcuCardUnhealthy"
CARD_HEALTHY: Final = "GcuCardHealthy"
CARD_ERRORS: Final = "GcuCardErrors"
CARD_CHANGED: Final = "GcuCardChanged"
CARD_UNTRIED: Final = "GcuCardUntried"
CARD_UNUSABLE: Final = "GcuCardUnusable"
CARD_FOREIGN: Final = "GcuCardForeign"
CARD_WITHOUT_DRS: Final = "GcuCardWithoutDrs"
DEVICE_FAILING: Final = "GcuDeviceFailing"
INSTANCE_RECREATED: Final = "GcuInstanceRecreated"
STATUS_REJECTED: Final = "GcuClaimStatusRejected"
RECOVERY_FAILED: Final = "GcuRecoveryFailed"
RUNTIME_CHECKED: Final = "GcuRuntimeChecked"
RUNTIME_UNSUITABLE: Final = "GcuRuntimeUnsuitable"
JOURNAL_DAMAGED: Final = "GcuJournalDamaged"
JOURNAL_REBUILT: Final = "GcuJournalRebuilt"
CLAIMS_UNKNOWN: Final = "GcuClaimsUnknown"
CLAIM_FORGOTTEN: Final = "GcuClaimForgotten"

_ACTION: Final = "Serve"
_MOST_NAMED: Final = 10  # claims in one event


class EventReporter:
    """Records events. No method raises or waits."""

    def __init__(self, recorder: Recorder, node_name: str) -> None:
        self._recorder = recorder
        # The kubelet uses the node's name as the UID in its events, and `kubectl describe node`
        # looks for both. So the Node object need not be read before the first event.
        self._node = {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": node_name, "uid": node_name},
        }

    def warning(self, reason: str, note: str) -> None:
        """A warning about the node, also in the log."""
        logger.warning("%s: %s", reason, note)
        self._record(self._node, EventType.WARNING, reason, note)

    def normal(self, reason: str, note: str) -> None:
        """An event about the node that asks for nothing, also in the log."""
        logger.info("%s: %s", reason, note)
        self._record(self._node, EventType.NORMAL, reason, note)

    def instance_recreated(self, made: RecreatedInstance) -> None:
        """A DRS instance disappeared under its owner and was created again. The event is about the
        owner's claim. Of a container of the device plugin the pod is not known, so it is about the
        node."""
        owner = made.owner
        regarding = _claim(owner) if isinstance(owner, ClaimRef) else self._node
        self._record(regarding, EventType.WARNING, INSTANCE_RECREATED, made.text)

    def status_rejected(self, claim: ClaimRef, note: str) -> None:
        """The API server never accepts the claim's ``status.devices``."""
        self._record(_claim(claim), EventType.WARNING, STATUS_REJECTED, note)

    def device_failing(self, device: str, reason: str) -> None:
        """Nothing could be made on the device, try after try."""
        self.warning(DEVICE_FAILING, f"device {device} takes no new claim for now: {reason}")

    def recovery_failed(self, failed: Mapping[str, GcuError]) -> None:
        """Claims that could not be recovered, each by its UID. The log has them already."""
        for uid, error in failed.items():
            note = f"claim with UID {uid}: {error}"
            self._record(self._node, EventType.WARNING, RECOVERY_FAILED, note)

    def journal_damaged(self, damaged: Path) -> None:
        """The journal's file has the name `damaged`, too, for a person to examine."""
        note = f"the journal was damaged and is rebuilt; the damaged file is {damaged}"
        self.warning(JOURNAL_DAMAGED, note)

    def journal_rebuilt(self, count: int) -> None:
        """There was no journal, and so many CDI files of claims."""
        files = "CDI file" if count == 1 else "CDI files"
        note = (
            f"the journal was missing and was rebuilt from {count} {files}; nothing is lost, but "
            "see what removed it"
        )
        self.warning(JOURNAL_REBUILT, note)

    def claims_unknown(self, names: Sequence[str]) -> None:
        """Claims (``namespace/name``) that containers of the node use, and that the journal has
        not. `kubectl gcu doctor` reads their names."""
        note = (
            "containers use claims whose records the agent lost: "
            f"{first_named(names, _MOST_NAMED)}; a container that restarts does not start, so "
            "delete its pod"
        )
        self._record(self._node, EventType.WARNING, CLAIMS_UNKNOWN, note)

    def claim_forgotten(self, claim: ClaimRef) -> None:
        """The claim was unprepared although the kubelet did not ask for it. The event is about the
        node: the claim is gone, and maybe its namespace."""
        note = (
            f"claim {claim} (UID {claim.uid}) was prepared, is gone from the API server, and no "
            "container of the kubelet has it: its devices were freed"
        )
        self.warning(CLAIM_FORGOTTEN, note)

    def _record(self, regarding: Object, kind: EventType, reason: str, note: str) -> None:
        self._recorder.record(regarding, kind=kind, reason=reason, note=note, action=_ACTION)


def first_named(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _claim(ref: ClaimRef) -> Object:
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid},
    }
