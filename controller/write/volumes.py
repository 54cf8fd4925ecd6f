"""Where a pod's volumes are: a bound volume binds its pods to a zone or a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from controller.cache.keys import Key, uid_of
from controller.cache.pods import key_of
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from dra_driver.model.claims.claim import Object

# PersistentVolumeClaims of one pod that are read, each by two calls. A pod may name tens of
# thousands, and to read them would delay other pods' writes: kube-scheduler checks the rest.
MOST_READ: Final = 64
LIFE: Final = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """A NodeSelector (core/v1) in `selectors` for each requirement of a bound volume; all must
    match. `are_unbound`: a volume is bound when kube-scheduler binds the pod."""

    selectors: Sequence[Object] = ()
    are_unbound: bool = False


NO_VOLUMES: Final = PodVolumes()


@dataclass(slots=True)
class _CachedVolumes:
    pod_uid: str
    until: float
    volumes: PodVolumes
    is_used: bool = False


class VolumeCache:
    """Where the volumes of waiting pods are. Volumes are not watched: few pods with GCUs
    have volumes that bind them to a place. They are read when their pod is about to be served.

    What was read serves at least one decision, however many other pods are decided before, and all
    decisions within `LIFE` of the read: a bound volume stays where it is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[Key, _CachedVolumes] = {}

    def get(self, pod: Object) -> PodVolumes | None:
        """The result of `read_volumes`; None if it is to be read."""
        if not any(claim_names(pod)):
            return NO_VOLUMES
        entry = self._entries.get(key_of(pod))
        if entry is None or entry.pod_uid != uid_of(pod):
            return None
        if entry.is_used and self._clock() >= entry.until:
            return None
        entry.is_used = True
        return entry.volumes

    def put(self, pod: Object, volumes: PodVolumes) -> None:
        """They were just read."""
        self._entries[key_of(pod)] = _CachedVolumes(uid_of(pod), self._clock() + LIFE, volumes)

    def forget(self, key: Key) -> None:
        """The pod waits no longer."""
        self._entries.pop(key, None)


def read_volumes(api: ObjectApi, pod: Object) -> PodVolumes:
    """Raises KubeError."""
    namespace = pod["metadata"]["namespace"]
    selectors: list[Object] = []
    are_unbound = False
    for name in islice(dict.fromkeys(claim_names(pod)), MOST_READ):
        volume = _volume_of(api, name, namespace)
        if volume is None:
            are_unbound = True
        elif required := (volume["spec"].get("nodeAffinity") or {}).get("required"):
            selectors.append(required)
    return PodVolumes(tuple(selectors), are_unbound)


def claim_names(pod: Object) -> Iterator[str]:
    """The names of the pod's PersistentVolumeClaims."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume['name']}"


def _volume_of(api: ObjectApi, name: str, namespace: str) -> Object | None:
    """The PersistentVolume of the claim of that name; None for a claim that is missing or
    unbound: kube-scheduler waits for it."""
    try:
        claim = api.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        if not claim["spec"].get("volumeName"):
            return None
        return api.get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"])
    except NotFound:
        return None
