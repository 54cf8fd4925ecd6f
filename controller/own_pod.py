"""This program's pod, which events are about that concern no other object."""

from __future__ import annotations

import logging

from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object

logger = logging.getLogger(__name__)


class OwnPod:
    """The pod `name` of `namespace`."""

    def __init__(self, api: Api, *, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name

    def reference(self) -> Object:
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
