"""Where a pod's volumes already are: a bound volume ties its pods to a zone or a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.queue.scheduling_queue import SchedulingQueue
from controller.write.dispatcher import Writes
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

LIFE: Final = 10.0  # seconds
# Claims of one pod that are read, each by two calls. A pod may name tens of thousands, and who
# reads them keeps others' writes waiting: the rest is kube-scheduler's to look at.
MOST_READ: Final = 64


class Volumes:
    """Node selectors of the volumes of waiting pods. They are not watched: few pods with GCUs have
    volumes that tie them to a place. They are read in another thread when their pod is about to be
    served.

    What was read serves at least one decision, however many pods are decided on before, and all
    others within `LIFE` of the read: a volume that is bound stays where it is.
    """

    def __init__(
        self,
        reader: BoundVolumes,
        writes: Writes,
        queue: SchedulingQueue,
        clock: Callable[[], float],
    ) -> None:
        self._reader = reader
        self._writes = writes
        self._queue = queue
        self._clock = clock
        self._known: dict[Key, _Known] = {}

    def selectors(self, key: Key, pod: Object) -> Sequence[Object] | None:
        """As `BoundVolumes.selectors` read them; None where the pod comes up again when they are
        read."""
        if not any(_claim_names(pod)):
            return ()
        uid, known = pods.uid_of(pod), self._known.get(key)
        if known is not None and known.serves(uid, self._clock()):
            known.used = True
            return known.selectors
        read = partial(self._reader.selectors, pod)
        self._writes.begin(key, [uid], read, partial(self._learn, key, uid))
        return None

    def forget(self, key: Key) -> None:
        """The pod waits no longer."""
        self._known.pop(key, None)

    def _learn(self, key: Key, uid: str, selectors: Sequence[Object]) -> None:
        now = self._clock()
        self._known[key] = _Known(uid, now + LIFE, selectors)
        self._queue.add(key, now)  # if the pod is gone, this forgets what was read


@dataclass(slots=True)
class _Known:
    uid: str
    until: float
    selectors: Sequence[Object]
    used: bool = False

    def serves(self, uid: str, now: float) -> bool:
        return self.uid == uid and (not self.used or now < self.until)


class BoundVolumes:
    """Reads live and keeps nothing. Raises KubeError."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def selectors(self, pod: Object) -> list[Object]:
        """A NodeSelector (core/v1) for each requirement of a bound volume; all must match."""
        return [
            selector
            for name in islice(dict.fromkeys(_claim_names(pod)), MOST_READ)
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
