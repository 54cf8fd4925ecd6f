"""Where a pod's volumes are: a bound volume binds its pods to a zone or a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from controller.cache.keys import Key, uid_of
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from dra_driver.model.claim import Object

# Volumes from before node affinity have labels (kube-scheduler: VolumeZone). A volume in several
# zones has all of them in one value (k8s.io/cloud-provider/volume).
_ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SEPARATOR: Final = "__"

# PersistentVolumeClaims of one pod that are read, each by two calls. A pod may name tens of
# thousands, and to read them would delay other pods' writes: kube-scheduler checks the rest.
MOST_READ: Final = 64
LIFE: Final = 10.0  # seconds


@dataclass(slots=True)
class _Entry:
    pod_uid: str
    until: float
    selectors: Sequence[Object]
    is_used: bool = False


class VolumeCache:
    """Node selectors of the volumes of waiting pods. Volumes are not watched: few pods with GCUs
    have volumes that bind them to a place. They are read when their pod is about to be served.

    What was read serves at least one decision, however many other pods are decided before, and all
    decisions within `LIFE` of the read: a bound volume stays where it is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[Key, _Entry] = {}

    def get(self, key: Key, pod: Object) -> Sequence[Object] | None:
        """The result of `node_selectors`; None if it is to be read."""
        if not any(claim_names(pod)):
            return ()
        entry = self._entries.get(key)
        if entry is None or entry.pod_uid != uid_of(pod):
            return None
        if entry.is_used and self._clock() >= entry.until:
            return None
        entry.is_used = True
        return entry.selectors

    def put(self, key: Key, pod: Object, selectors: Sequence[Object]) -> None:
        """The selectors were just read."""
        self._entries[key] = _Entry(uid_of(pod), self._clock() + LIFE, selectors)

    def forget(self, key: Key) -> None:
        """The pod waits no longer."""
        self._entries.pop(key, None)


def node_selectors(api: ObjectApi, pod: Object) -> list[Object]:
    """A NodeSelector (core/v1) for each requirement of a bound volume; all must match. Raises
    KubeError."""
    return [
        selector
        for name in islice(dict.fromkeys(claim_names(pod)), MOST_READ)
        for selector in _of_claim(api, name, pod["metadata"]["namespace"])
    ]


def claim_names(pod: Object) -> Iterator[str]:
    """The names of the pod's PersistentVolumeClaims."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume['name']}"


def _of_claim(api: ObjectApi, name: str, namespace: str) -> Iterator[Object]:
    try:
        claim = api.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        volume_name = claim["spec"].get("volumeName")
        volume = api.get(PERSISTENT_VOLUMES, volume_name) if volume_name else None
    except NotFound:
        return  # kube-scheduler waits for it and says so
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
