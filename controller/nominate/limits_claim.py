"""The claim that kube-scheduler is going to make for a pod's limits, as the placer reads claims."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from controller.allocator.ownership import serves_class
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.claims import name_to_be_made
from controller.cache.keys import Key, Subject, uid_of
from controller.nominate.scheduler_claim import devices_by_scheduler
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.names import CLASS_LIMIT_PREFIX

_CLAIM: Final = "limits"
"""What it is called in the pod, which does not name it."""


def claims_of(cache: ClusterCache, pod: Object) -> dict[str, Object] | None:
    """The pod's claims by their names in the pod, with the one that kube-scheduler is going to make
    for its limits; None while one that the pod names is missing."""
    claims = cache.claims_of(pod)
    if claims is None or pods.node_name(pod):
        return claims
    with suppress(Refused):
        made = claim_to_be_made(pod, cache.state())
        return claims if made is None else claims | {_CLAIM: made}
    return claims


def claim_to_be_made(pod: Object, state: State) -> Object | None:
    """None if the pod has no limit that is a DeviceClass of this driver, or has its claim already.
    Raises Refused for limits that no API server stores."""
    if has_made_claim(pod):
        return None
    if not limit_names(pod, _is_extended):
        return None
    classes: dict[str, str] = {}
    for name, found in state.classes.items():
        if serves_class(name, state):
            classes[f"{CLASS_LIMIT_PREFIX}{name}"] = name
            if limit := found["spec"].get("extendedResourceName"):
                classes[limit] = name
    devices = devices_by_scheduler(pod, classes)
    if devices is None:
        return None
    metadata = {
        "namespace": pod["metadata"]["namespace"],
        "name": name_to_be_made(pod["metadata"]["name"]),
        "uid": uid_to_be_made(uid_of(pod)),
    }
    return {"metadata": metadata, "spec": {"devices": devices}}


def has_made_claim(pod: Object) -> bool:
    """Whether kube-scheduler has made a claim for the pod's limits: it says so before it binds the
    pod (1.37.2, PreBind of plugins/dynamicresources)."""
    return bool((pod.get("status") or {}).get("extendedResourceClaimStatus"))


def _is_extended(limit: str) -> bool:
    """Whether a DeviceClass may serve it: what kubelets serve themselves has no domain."""
    return "/" in limit


def key_to_be_made(pod: Key) -> Key:
    """The key of the claim that is to be made for that pod."""
    return Key(Subject.CLAIM, pod.namespace, name_to_be_made(pod.name))


def uid_to_be_made(pod_uid: str) -> str:
    """The UID of the claim that is to be made for that pod."""
    return f"limits of {pod_uid}"


def is_made(claim: Object, expected: Object) -> bool:
    """Whether a claim of the pod is the one that was expected: a pod may have others, made from
    templates."""
    return _request_names(claim) == _request_names(expected)


def _request_names(claim: Object) -> list[str]:
    return [each["name"] for each in claim["spec"]["devices"].get("requests") or ()]
