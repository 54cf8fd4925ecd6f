"""A pod's limits as the claim that asks for the same, so that the allocator decides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.extender.devices import ATTR_SIZES, size_word
from controller.extender.limit_request import LimitRequest, Pod
from dra_driver.model.claim import Object
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


# Named as people wrote them, because a refusal names its class.
CLASSES: Final[Mapping[str, Object]] = MappingProxyType(
    {
        RESOURCE_WHOLE: _class(Mode.WHOLE),
        RESOURCE_SHARED: _class(Mode.SHARED),
        RESOURCE_DRS: _class(Mode.DRS),
    }
)


def wanted(pod: Pod, asked: LimitRequest) -> ClaimRequest:
    """The claim of all that the pod asks for. Raises Refused where it asks for more than a claim
    can hold."""
    metadata = pod["metadata"]
    claim: Object = {
        "metadata": {key: metadata.get(key, "") for key in ("namespace", "name", "uid")},
        "spec": {"devices": _devices(asked)},
    }
    return parse_claim(claim, CLASSES)


def _devices(asked: LimitRequest) -> Object:
    if asked.mode is Mode.WHOLE:
        return {"requests": [_request("cards", RESOURCE_WHOLE, count=asked.total)]}
    if asked.mode is Mode.SHARED:
        capacity = {"requests": {CAPACITY_SLICES: str(asked.total)}}
        return {"requests": [_request("slices", RESOURCE_SHARED, capacity=capacity)]}
    requests = [
        _request(
            container,
            RESOURCE_DRS,
            capacity={"requests": {CAPACITY_SIZE: str(size)}},
            selectors=[_has_profile_of(size)],
        )
        for container, size in asked.containers
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
