"""What a pod takes of its node, summed as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from controller.allocator.capacity import NANO, Amount
from dra_driver.model.errors import InvalidValue

Requests = tuple[tuple[str, int], ...]
"""Resources by name, each with its amount: cpu in thousandths, all others in units."""

_NO_LIST: Final[Mapping[str, str]] = MappingProxyType({})
_UNIT: Final = {"cpu": NANO // 1000}
_RESIZE_PENDING: Final = "PodResizePending"
_OF_PODS: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
_BEYOND_ALL: Final = 2**200  # more than any node has

_Amounts = dict[str, int]
"""In nano units."""

_Read = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, str]]
"""Given a container, and its status, a ResourceList (core/v1)."""


def pod_requests(pod: Mapping[str, Any]) -> Requests:
    """What the pod takes of its node, its own place included (k8s.io/component-helpers 1.37.2,
    resource.PodRequests with UseStatusResources)."""
    spec, status = pod["spec"], pod.get("status") or {}
    total = _in_force(spec, status) if _is_resized(spec, status) else _sum(spec, {}, _asked)
    if listed := _requests(spec):  # what the pod as a whole asks for
        for name, amount in _as_a_whole(listed, status).items():
            if _is_of_pods(name):
                total[name] = amount
    _add(total, spec.get("overhead"))
    total["pods"] = NANO
    return _one_object(tuple(sorted(_in_units(total))))


def resources_of(listed: Mapping[str, str] | None) -> Mapping[str, int]:
    """A ResourceList (core/v1) in the units of `Requests`; nodes of a kind share one object."""
    return _parsed(tuple((listed or _NO_LIST).items()))


def is_read(condition: Mapping[str, Any]) -> bool:
    """Whether `pod_requests` reads such a condition of a pod."""
    return bool(condition["type"] == _RESIZE_PENDING)


@lru_cache(4096)
def _one_object(requests: Requests) -> Requests:
    """For replicas: all pods of the cluster are counted."""
    return requests


@lru_cache(1024)
def _parsed(listed: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    return MappingProxyType(dict(_in_units(_sum_of(dict(listed)))))


def _in_units(amounts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Rounded up, as upstream's Quantity.Value and MilliValue; without what is zero."""
    for name, nano in amounts.items():
        if nano:
            yield name, -(-nano // _UNIT.get(name, NANO))


def _sum_of(*lists: Mapping[str, str] | None) -> _Amounts:
    total: _Amounts = {}
    for listed in lists:
        _add(total, listed)
    return total


def _add(total: _Amounts, listed: Mapping[str, str] | None) -> None:
    for name, text in (listed or _NO_LIST).items():
        total[name] = total.get(name, 0) + _amount(text)


def _most(*several: _Amounts) -> _Amounts:
    """The greatest amount of each."""
    most: _Amounts = {}
    for amounts in several:
        for name, amount in amounts.items():
            if amount > most.get(name, 0):
                most[name] = amount
    return most


def _amount(text: str) -> int:
    try:
        return Amount.parse(text).value
    except InvalidValue:  # such as 1e120, which upstream reads: no count may stop on a pod
        return _BEYOND_ALL


def _is_of_pods(resource: str) -> bool:
    """Whether a pod as a whole may ask for it (IsSupportedPodLevelResource)."""
    return resource in _OF_PODS or resource.startswith(_HUGE_PAGES)


def _as_a_whole(asked: Mapping[str, str], status: Mapping[str, Any]) -> _Amounts:
    if status.get("resources") is None:
        return _sum_of(asked)
    given = _most(_sum_of(_requests(status)), _sum_of(status.get("allocatedResources")))
    return given if _is_infeasible(status) else _most(given, _sum_of(asked))


def _in_force(spec: Mapping[str, Any], status: Mapping[str, Any]) -> _Amounts:
    """The greatest of what is asked for, what the kubelet has granted, and what is in force."""
    statuses = {
        container["name"]: container
        for kind in ("containerStatuses", "initContainerStatuses")
        for container in status.get(kind) or ()
    }
    is_infeasible = _is_infeasible(status)

    def granted(container: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        listed: Mapping[str, str] | None = given.get("allocatedResources")
        if listed is not None:
            return listed
        return _NO_LIST if is_infeasible else _requests(container)

    def actual(container: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        return _requests(given) or granted(container, given)

    if status.get("allocatedResources") is not None and _requests(status):
        given = _most(_sum_of(status["allocatedResources"]), _sum_of(_requests(status)))
    else:
        given = _most(_sum(spec, statuses, granted), _sum(spec, statuses, actual))
    return given if is_infeasible else _most(given, _sum(spec, statuses, _asked))


def _sum(
    spec: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], read: _Read
) -> _Amounts:
    """All that run for good, sidecars among them, or what is needed while one initialises the pod
    beside the sidecars before it."""

    def of(container: Mapping[str, Any]) -> Mapping[str, str]:
        return read(container, statuses.get(container["name"], _NO_LIST))

    running = _sum_of(*map(of, spec.get("containers") or ()))  # not decoded where it counts nowhere
    sidecars, initialising = list[Mapping[str, str]](), list[_Amounts]()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars.append(of(container))
            _add(running, sidecars[-1])
            initialising.append(_sum_of(*sidecars))
        else:
            initialising.append(_sum_of(*sidecars, of(container)))
    return _most(running, *initialising) if initialising else running


def _asked(container: Mapping[str, Any], _given: Mapping[str, Any]) -> Mapping[str, str]:
    return _requests(container)


def _is_resized(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the pod, or a container of it, has other resources than were asked for at first."""
    if status.get("allocatedResources") is not None or _is_infeasible(status):
        return True
    if not (status.get("containerStatuses") or status.get("initContainerStatuses")):
        return False
    asked = {
        container["name"]: _requests(container)
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
    }
    return any(
        listed is not None and listed != asked.get(container["name"])
        for kind in ("containerStatuses", "initContainerStatuses")
        for container in status.get(kind) or ()
        for listed in (
            (container.get("resources") or _NO_LIST).get("requests"),
            container.get("allocatedResources"),
        )
    )


def _is_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether the kubelet will never resize the pod as it was asked to."""
    return any(
        is_read(condition) and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )


def _requests(holder: Mapping[str, Any]) -> Mapping[str, str]:
    resources: Mapping[str, Any] = holder.get("resources") or _NO_LIST
    return resources.get("requests") or _NO_LIST
