"""The claim that kube-scheduler itself makes for a pod's limits, before it binds the pod (upstream:
createRequestsAndMappings of plugins/dynamicresources, 1.37.2). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from dra_driver.asks.limits import Pod, all_containers, asking, resources_of
from dra_driver.model.claims.claim import Object


def devices_by_scheduler(pod: Pod, classes: Mapping[str, str]) -> Object | None:
    """``spec.devices`` of the claim; None if the pod has none of the limits. `classes` has the
    DeviceClass of each limit. Raises Refused for an amount that is no whole number."""
    requests = [
        request
        for limit, device_class in classes.items()
        for request in _requests(pod, limit, device_class)
    ]
    return {"requests": sorted(requests, key=lambda each: each["name"])} if requests else None


def _requests(pod: Pod, limit: str, device_class: str) -> list[Object]:
    """A request for each container that stays, and one for the init container that asks for most
    beside what the containers after it have."""
    raw = [container for _, _, container in all_containers(pod)]
    containers = list(asking(pod, [limit]))
    staying = {each.start: each.amount for each in containers if not each.ends}
    more = {
        each.start: each.amount - sum(n for start, n in staying.items() if start > each.start)
        for each in containers
        if each.ends
    }
    most = max(more, key=more.__getitem__, default=None)
    if most is not None and more[most] > 0:
        staying[most] = more[most]
    return [
        {
            "name": f"container-{start}-request-{sorted(resources_of(raw[start])).index(limit)}",
            "exactly": {
                "deviceClassName": device_class,
                "allocationMode": "ExactCount",
                "count": count,
            },
        }
        for start, count in staying.items()
    ]
