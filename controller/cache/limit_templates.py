"""The claim template that a name stands for, which admission gives to pods with limits. Pure.

``enflame-shared-gcu-2-1`` is for a pod with two containers with the limits
``enflame.com/shared-gcu: 2`` and ``1``. ``enflame-shared-gcu-devices-2`` is for the limit
``deviceclass.resource.kubernetes.io/shared-gcu.enflame.com: 2``, two devices of the class.
docs/adr/0015 has the scheme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ATTR_CARD,
    ATTR_PROFILES,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    CLASS_DRS,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
    LABEL_MADE_FOR_LIMITS,
)

_MOST_DEVICES: Final = 32  # resource.k8s.io/v1, AllocationResultsMaxSize
_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gcu": CLASS_WHOLE,
        "shared-gcu": CLASS_SHARED,
        "drs-gcu": CLASS_DRS,
        "shared-gcu-devices": CLASS_SHARED,
        "drs-gcu-devices": CLASS_DRS,
        "part-gcu-devices": CLASS_PART,
    }
)
"""By the middle of the template's name. Its numbers are slices, or sizes, of the second and the
third one, and counts of devices of all others."""

_PARTS: Final = frozenset({"shared-gcu", "drs-gcu"})
_NAME: Final = re.compile(rf"enflame-({'|'.join(_CLASSES)})((?:-[1-9][0-9]{{0,2}}){{1,32}})")


def template_for(namespace: str, name: str) -> Object | None:
    """The ResourceClaimTemplate to create under that name; None if the name is no template's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    amounts = [int(each) for each in match[2][1:].split("-")]
    device_class = _CLASSES[match[1]]
    counts_devices = match[1] not in _PARTS
    if counts_devices and sum(amounts) > _MOST_DEVICES:
        return None
    exactly = _devices if counts_devices else _part
    requests = [
        {"name": f"gcu-{i}", "exactly": exactly(device_class, amount)}
        for i, amount in enumerate(amounts)
    ]
    devices: dict[str, Any] = {"requests": requests}
    if len(requests) > 1 and not counts_devices:
        # The vendor's rule: the slices or instances of a pod are on one card.
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{ATTR_CARD}"}]
    return {
        "apiVersion": RESOURCE_CLAIM_TEMPLATES.api_version,
        "kind": RESOURCE_CLAIM_TEMPLATES.kind,
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {LABEL_MADE_FOR_LIMITS: "true"},
        },
        "spec": {"spec": {"devices": devices}},
    }


def _devices(device_class: str, count: int) -> Object:
    return {"deviceClassName": device_class, "count": count}


def _part(device_class: str, amount: int) -> Object:
    name = CAPACITY_SLICES if device_class == CLASS_SHARED else CAPACITY_SIZE
    exactly: Object = {
        "deviceClassName": device_class,
        "capacity": {"requests": {name: str(amount)}},
    }
    if device_class == CLASS_DRS:
        # A claim's size is rounded up to the next profile; a limit names the very profile.
        expression = f'device.attributes["{DRIVER}"].{ATTR_PROFILES}.matches("(^|,){amount}g[.]")'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return exactly
