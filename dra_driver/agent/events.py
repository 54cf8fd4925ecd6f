"""What a person should know about this node, as events on its Node object, a claim or a pod."""

from __future__ import annotations

from typing import Final

from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.node.claims.recreated import RecreatedInstance

# Reasons of events; docs/user/install.md lists them.
WAY_CHOSEN: Final = "GcuWayChosen"
NOT_SERVING: Final = "GcuNotServing"
SERVING: Final = "GcuServing"
CARD_LOST: Final = "GcuCardLost"
CARD_BACK: Final = "GcuCardBack"
CARD_UNHEALTHY: Final = "GcuCardUnhealthy"
CARD_HEALTHY: Final = "GcuCardHealthy"
CARD_ERRORS: Final = "GcuCardErrors"
CARD_CHANGED: Final = "GcuCardChanged"
CARD_UNUSABLE: Final = "GcuCardUnusable"
CARD_FOREIGN: Final = "GcuCardForeign"
CARD_WITHOUT_DRS: Final = "GcuCardWithoutDrs"
DEVICE_FAILING: Final = "GcuDeviceFailing"
INSTANCE_REMADE: Final = "GcuInstanceRemade"
STATUS_REFUSED: Final = "GcuStatusRefused"
RECOVERY_FAILED: Final = "GcuRecoveryFailed"
JOURNAL_DAMAGED: Final = "GcuJournalDamaged"


class EventReporter:
    """Never raises, never waits."""

    def __init__(self, recorder: Recorder, node_name: str) -> None:
        self._recorder = recorder
        # As the kubelet does it: a node's events carry its name as uid, and `kubectl describe
        # node` looks for both; so nothing has to be read before something can be told.
        self._node = {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": node_name, "uid": node_name},
        }

    def warning(self, reason: str, note: str) -> None:
        self._recorder.record(
            self._node, kind=EventType.WARNING, reason=reason, note=note, action="Serve"
        )

    def instance_recreated(self, made: RecreatedInstance) -> None:
        """A DRS instance went under its owner, and was made anew. On the owner's claim; of a
        container of the device plugin the pod is not known, so that stands on the node."""
        owner = made.owner
        self._recorder.record(
            _claim(owner) if isinstance(owner, ClaimRef) else self._node,
            kind=EventType.WARNING,
            reason=INSTANCE_REMADE,
            note=made.text,
            action="Serve",
        )

    def status_refused(self, claim: ClaimRef, note: str) -> None:
        """The claim's ``status.devices`` can never be written."""
        self._recorder.record(
            _claim(claim),
            kind=EventType.WARNING,
            reason=STATUS_REFUSED,
            note=note,
            action="Serve",
        )

    def normal(self, reason: str, note: str) -> None:
        self._recorder.record(
            self._node, kind=EventType.NORMAL, reason=reason, note=note, action="Serve"
        )


def _claim(ref: ClaimRef) -> Object:
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid},
    }
