"""Events about this program's pod: those that concern no other object."""

from __future__ import annotations

import logging

from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object

logger = logging.getLogger(__name__)


class OwnPod:
    """The pod `name` of `namespace`."""

    def __init__(self, api: Api, recorder: Recorder, *, namespace: str, name: str) -> None:
        self._api = api
        self._recorder = recorder
        self._namespace = namespace
        self._name = name

    def report(
        self, reason: str, note: str, action: str, kind: EventType = EventType.WARNING
    ) -> None:
        """Send an event. Reads the pod from the API server."""
        self._recorder.record(self._reference(), kind=kind, reason=reason, note=note, action=action)

    def _reference(self) -> Object:
        """With its UID, by which `kubectl describe` finds the event; without where it cannot be
        read."""
        uid = ""
        try:
            found = self._api.get(PODS, self._name, namespace=self._namespace)
            uid = found["metadata"]["uid"]
        except KubeError as error:
            logger.info("pod %s/%s: %s", self._namespace, self._name, error)
        metadata = {"name": self._name, "namespace": self._namespace, "uid": uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
