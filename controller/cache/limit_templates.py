"""The claim template that a name stands for, which admission gives to pods with limits. Pure.

``enflame-shared-gcu-2-1`` is for a pod with two containers with the limits
``enflame.com/shared-gcu: 2`` and ``1``. ``enflame-shared-gcu-devices-2`` is for the limit
``deviceclass.resource.kubernetes.io/shared-gcu.enflame.com: 2``, two devices of the class.
``enflame-fixed-share-20480m40c`` is for the limits ``enflame.com/gcu-memory: 20480`` and
``enflame.com/gcu-core: 40``. docs/adr/0015 has the scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dra_driver.config.device_config import API_VERSION, ISOLATION, KIND
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
_BY_MEASURES: Final = re.compile(
    rf"enflame-({'|'.join(ISOLATION)})"
    r"((?:-(?:[1-9][0-9]{0,6}m(?:[1-9][0-9]?c)?|[1-9][0-9]?c)){1,32})"
)
_MEASURES: Final = re.compile(r"(?:(?P<memory>[0-9]+)m)?(?:(?P<cores>[0-9]+)c)?")


def template_for(namespace: str, name: str) -> Object | None:
    """The ResourceClaimTemplate to create under that name; None if the name is no template's."""
    if match := _NAME.fullmatch(name):
        devices = _by_amounts(match[1], [int(each) for each in _split(match[2])])
    elif match := _BY_MEASURES.fullmatch(name):
        devices = _by_measures(match[1], _split(match[2]))
    else:
        return None
    if devices is None:
        return None
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


def _split(amounts: str) -> list[str]:
    return amounts[1:].split("-")


def _by_amounts(kind: str, amounts: Sequence[int]) -> Object | None:
    counts_devices = kind not in _PARTS
    if counts_devices and sum(amounts) > _MOST_DEVICES:
        return None
    exactly = _devices if counts_devices else _part
    devices: Object = {"requests": _requests(exactly(_CLASSES[kind], each) for each in amounts)}
    if len(amounts) > 1 and not counts_devices:
        # The vendor's rule: the slices or instances of a pod are on one card.
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{ATTR_CARD}"}]
    return devices


def _by_measures(isolation: str, amounts: Sequence[str]) -> Object:
    """The class for any part of a card; each request has its measures as configuration."""
    return {
        "requests": _requests({"deviceClassName": CLASS_PART} for _ in amounts),
        "config": [
            {"requests": [f"gcu-{i}"], "opaque": {"driver": DRIVER, "parameters": parameters}}
            for i, parameters in enumerate(_config(isolation, each) for each in amounts)
        ],
    }


def _requests(exactly: Iterable[Object]) -> list[Object]:
    return [{"name": f"gcu-{i}", "exactly": each} for i, each in enumerate(exactly)]


def _config(isolation: str, measures: str) -> Object:
    asked = _MEASURES.fullmatch(measures)
    assert asked is not None
    parameters: Object = {"apiVersion": API_VERSION, "kind": KIND, "isolation": isolation}
    if memory := asked["memory"]:
        parameters["memory"] = f"{memory}Mi"
    if cores := asked["cores"]:
        parameters["cores"] = int(cores)
    return parameters


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
