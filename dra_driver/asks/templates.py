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
from dataclasses import dataclass
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
    CLASS_LIMIT_PREFIX,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
    LABEL_MADE_FOR_LIMITS,
    LIMITS_TEMPLATE_PREFIX,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)


@dataclass(frozen=True, slots=True)
class LimitKind:
    """What a limit of n means: so much of `capacity` of one device of the class; without it, n
    devices. `word` is the middle of the template's name."""

    word: str
    device_class: str
    capacity: str = ""


KINDS: Final[Mapping[str, LimitKind]] = MappingProxyType(
    {
        RESOURCE_WHOLE: LimitKind("gcu", CLASS_WHOLE),
        RESOURCE_SHARED: LimitKind("shared-gcu", CLASS_SHARED, CAPACITY_SLICES),
        RESOURCE_DRS: LimitKind("drs-gcu", CLASS_DRS, CAPACITY_SIZE),
        f"{CLASS_LIMIT_PREFIX}{CLASS_WHOLE}": LimitKind("gcu", CLASS_WHOLE),
        f"{CLASS_LIMIT_PREFIX}{CLASS_SHARED}": LimitKind("shared-gcu-devices", CLASS_SHARED),
        f"{CLASS_LIMIT_PREFIX}{CLASS_DRS}": LimitKind("drs-gcu-devices", CLASS_DRS),
        f"{CLASS_LIMIT_PREFIX}{CLASS_PART}": LimitKind("part-gcu-devices", CLASS_PART),
    }
)
"""By limit, without the measures. Of whole cards both limits mean the same."""

_BY_WORD: Final = {kind.word: kind for kind in KINDS.values()}
_MOST_DEVICES: Final = 32  # resource.k8s.io/v1, AllocationResultsMaxSize
_NAME: Final = re.compile(  # resource.k8s.io/v1, DeviceRequestsMaxSize
    rf"{LIMITS_TEMPLATE_PREFIX}({'|'.join([*_BY_WORD, *ISOLATION])})((?:-[0-9mc]+){{1,32}})"
)
_COUNT: Final = re.compile(r"[1-9][0-9]{0,2}")
_MEASURES: Final = re.compile(r"(?:(?P<memory>[1-9][0-9]{0,6})m)?(?:(?P<cores>[1-9][0-9]?)c)?")


def template_for(namespace: str, name: str) -> Object | None:
    """The ResourceClaimTemplate to create under that name; None if the name is no template's."""
    devices = devices_named(name)
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


def devices_named(name: str) -> Object | None:
    """``spec.devices`` of the claim that a template's name stands for; None where it stands for
    none, or for more than a claim can hold."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    word, amounts = match[1], match[2][1:].split("-")
    if word in ISOLATION:
        measures = [each for each in map(_MEASURES.fullmatch, amounts) if each]
        return _by_measures(word, measures) if len(measures) == len(amounts) else None
    if not all(map(_COUNT.fullmatch, amounts)):
        return None
    kind, numbers = _BY_WORD[word], [*map(int, amounts)]
    is_too_much = not kind.capacity and sum(numbers) > _MOST_DEVICES
    return None if is_too_much else devices_of(kind, numbers)


def devices_of(kind: LimitKind, amounts: Sequence[int]) -> Object:
    """``spec.devices`` of a claim with a request ``gcu-<i>`` for each amount. Several parts are of
    one card, which is the vendor's rule for a pod."""
    devices: Object = {"requests": _requests(_exactly(kind, amount) for amount in amounts)}
    if kind.capacity and len(amounts) > 1:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{ATTR_CARD}"}]
    return devices


def _by_measures(isolation: str, amounts: Sequence[re.Match[str]]) -> Object:
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


def _config(isolation: str, measures: re.Match[str]) -> Object:
    parameters: Object = {"apiVersion": API_VERSION, "kind": KIND, "isolation": isolation}
    if memory := measures["memory"]:
        parameters["memory"] = f"{memory}Mi"
    if cores := measures["cores"]:
        parameters["cores"] = int(cores)
    return parameters


def _exactly(kind: LimitKind, amount: int) -> Object:
    exactly: Object = {"deviceClassName": kind.device_class}
    if not kind.capacity:
        return exactly | {"count": amount}
    exactly["capacity"] = {"requests": {kind.capacity: str(amount)}}
    if kind.capacity == CAPACITY_SIZE:
        # A claim's size is rounded up to the next profile; a limit names the very profile.
        exactly["selectors"] = [{"cel": {"expression": profile_selector(str(amount))}}]
    return exactly


def profile_selector(size: str) -> str:
    """The expression by which a limit for an instance selects cards with a profile of the size."""
    return f'device.attributes["{DRIVER}"].{ATTR_PROFILES}.matches("(^|,){size}g[.]")'
