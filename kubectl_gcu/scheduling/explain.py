"""``kubectl gcu explain``: it reads, `judgement` decides, and `explanation` has the words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from controller.cache import pods
from dra_driver.asks.limits import limit_names
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, claim_names
from dra_driver.model.names import CLASS_WHOLE
from kubectl_gcu.cluster.observed_pod import observe_pod
from kubectl_gcu.cluster.to_decide import observe_cluster
from kubectl_gcu.scheduling.explanation import Explanation
from kubectl_gcu.scheduling.judgement import judge_by_allocator, judge_by_objects


def explain_pod(api: Api, namespace: str, name: str, *, now: datetime) -> Explanation:
    """The rest of the cluster is read only if the pod waits for devices. Raises NotFound, Forbidden
    and other KubeErrors of the pod itself."""
    pod = observe_pod(api, namespace, name)
    serves_claims = bool(limit_names(pod.pod)) and _serves_claims(api)
    explanation = judge_by_objects(pod, serves_claims=serves_claims, now=now)
    if not explanation.step.waits_for_devices:
        return explanation
    return judge_by_allocator(explanation, pod, observe_cluster(api, pod.pod))


def pods_of_claim(api: Api, namespace: str, name: str) -> list[str]:
    """The names of the pods that use the claim, those that have ended left out. Raises NotFound if
    there is no such claim."""
    api.get(RESOURCE_CLAIMS, name, namespace=namespace)
    return sorted(
        str(pod["metadata"]["name"])
        for pod in api.list(PODS, namespace=namespace).items
        if name in _claims_of(pod) and not pods.is_done(pod)
    )


def _claims_of(pod: Object) -> set[str | None]:
    """With the claim that kube-scheduler made for limits."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return {*claim_names(pod).values(), extended.get("resourceClaimName")}


def _serves_claims(api: Api) -> bool:
    """Whether the chart serves claims here: then it has DeviceClasses, and no scheduler extender.
    Where the user may not list them, the server's version has to do."""
    version = api.server_version()
    if (version.major, version.minor) < OLDEST:
        return False
    try:
        classes = api.list(DEVICE_CLASSES).items
    except NotFound:  # DRA can be switched off
        return False
    except Forbidden:
        return True
    return has_class_of_driver(classes)


def has_class_of_driver(classes: Iterable[Object]) -> bool:
    """Whether the chart's DeviceClasses are among them."""
    return any(device_class["metadata"]["name"] == CLASS_WHOLE for device_class in classes)
