"""The claim that requests what a pod's limits request, for the allocator. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from controller.allocator.claim_request import parse_claim
from controller.extender.limit_request import LimitRequest
from controller.placer.pod_claims import PodClaims
from dra_driver.asks.templates import KINDS, devices_of
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, DRIVER


def _class(mode: Mode) -> Object:
    attributes = f'device.attributes["{DRIVER}"]'
    expression = f'device.driver == "{DRIVER}" && {attributes}.{ATTR_TYPE} == "{mode.value}"'
    return {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


# Named as in the pod's limits, because a refusal names its class.
CLASSES: Final[Mapping[str, Object]] = MappingProxyType(
    {limit: _class(mode) for mode, limit in RESOURCES.items()}
)


def claims_of(pod: Object, request: LimitRequest) -> PodClaims:
    """One claim for the whole pod. Raises Refused for more than a claim can hold."""
    metadata = pod["metadata"]
    claim: Object = {
        "metadata": {key: metadata.get(key, "") for key in ("namespace", "name", "uid")},
        "spec": {"devices": _devices(request)},
    }
    return PodClaims(pod, [parse_claim(claim, CLASSES)])


def _devices(request: LimitRequest) -> Object:
    kind = KINDS[RESOURCES[request.mode]]
    sizes = [size for _, size in request.containers]
    amounts = sizes if request.mode is Mode.DRS else [request.total]
    return devices_of(replace(kind, device_class=RESOURCES[request.mode]), amounts)
