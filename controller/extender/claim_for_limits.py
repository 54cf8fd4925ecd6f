"""The claim that requests what a pod's limits request, for the allocator. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.extender.devices import ATTR_SIZES, size_word
from controller.extender.limit_request import LimitRequest, Pod
from dra_driver.model.claims.claim import Object
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_CARD,
    ATTR_TYPE,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    DRIVER,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)

_ATTRIBUTES: Final = f'device.attributes["{DRIVER}"]'


def _class(mode: Mode) -> Object:
    expression = f'device.driver == "{DRIVER}" && {_ATTRIBUTES}.{ATTR_TYPE} == "{mode.value}"'
    return {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


# Named as in the pod's limits, because a refusal names its class.
CLASSES: Final[Mapping[str, Object]] = MappingProxyType(
    {
        RESOURCE_WHOLE: _class(Mode.WHOLE),
        RESOURCE_SHARED: _class(Mode.SHARED),
        RESOURCE_DRS: _class(Mode.DRS),
    }
)


def claim_request(pod: Pod, request: LimitRequest) -> ClaimRequest:
    """One claim for the whole pod. Raises Refused for more than a claim can hold."""
    metadata = pod["metadata"]
    claim: Object = {
        "metadata": {key: metadata.get(key, "") for key in ("namespace", "name", "uid")},
        "spec": {"devices": _devices(request)},
    }
    return parse_claim(claim, CLASSES)


def _devices(request: LimitRequest) -> Object:
    if request.mode is Mode.WHOLE:
        return {"requests": [_request("cards", RESOURCE_WHOLE, count=request.total)]}
    if request.mode is Mode.SHARED:
        capacity = {"requests": {CAPACITY_SLICES: str(request.total)}}
        return {"requests": [_request("slices", RESOURCE_SHARED, capacity=capacity)]}
    requests = [
        _request(
            container,
            RESOURCE_DRS,
            capacity={"requests": {CAPACITY_SIZE: str(size)}},
            selectors=[_has_profile_of(size)],
        )
        for container, size in request.containers
    ]
    if len(requests) == 1:
        return {"requests": requests}
    return {"requests": requests, "constraints": [{"matchAttribute": f"{DRIVER}/{ATTR_CARD}"}]}


def _request(name: str, class_name: str, **fields: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": class_name, **fields}}


def _has_profile_of(size: int) -> Object:
    # A claim's size would be rounded up to the next profile; a limit's is the instance's.
    expression = f'{_ATTRIBUTES}.{ATTR_SIZES}.contains("{size_word(size)}")'
    return {"cel": {"expression": expression}}
