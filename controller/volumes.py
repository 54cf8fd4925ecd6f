"""Where a pod's volumes already are: a bound volume ties its pods to a zone or a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_driver.kube.api import Api
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from dra_driver.model.claim import Object

# Volumes of before node affinity carry labels (kube-scheduler's VolumeZone); a volume that is in
# several zones has them all in one value, as k8s.io/cloud-provider/volume writes it.
_ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SEPARATOR: Final = "__"


class BoundVolumes:
    """Reads live and keeps nothing: few pods with GCUs have such volumes, and each is asked about
    only when it is about to be served. Raises KubeError."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def selectors(self, pod: Object) -> list[Object]:
        """A NodeSelector (core/v1) for each requirement of a bound volume; all must match."""
        return [
            selector
            for name in _claim_names(pod)
            for selector in self._of_claim(name, pod["metadata"]["namespace"])
        ]

    def _of_claim(self, name: str, namespace: str) -> Iterator[Object]:
        try:
            claim = self._api.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
            volume_name = claim["spec"].get("volumeName")
            volume = self._api.get(PERSISTENT_VOLUMES, volume_name) if volume_name else None
        except NotFound:
            return  # kube-scheduler waits for it and tells
        if volume is None:
            return
        required = (volume["spec"].get("nodeAffinity") or {}).get("required")
        if required:
            yield required
        labels = volume["metadata"].get("labels") or {}
        expressions = [
            {"key": key, "operator": "In", "values": labels[key].split(_SEPARATOR)}
            for key in _ZONE_LABELS
            if key in labels
        ]
        if expressions:
            yield {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def _claim_names(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume['name']}"
