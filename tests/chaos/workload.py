"""What users ask for: each form of a claim or limit, with the pods that use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_CARD, ATTR_PCIE_SWITCH, CLASS_PART, CLASS_WHOLE, DRIVER
from tests.cluster.workloads import pod
from tests.e2e.manifests import claim, claim_in, pod_with

Object = dict[str, Any]

LABEL: Final = "chaos"
"""Its value is the workload's name: all that was made of it is deleted by it."""

NEED: Final = "chaos/need"
"""Annotation of a pod that asks for one thing of one card: ``<mode> <amount>``."""


class Shape(StrEnum):
    """How a workload asks for GCUs. All but those by limit and those named otherwise have a claim
    template."""

    WHOLE = "whole card"
    TWO_CARDS = "two cards of one switch"
    TOO_MANY = "more cards than a node has"
    SLICES = "slices"
    INSTANCE = "instance"
    MEMORY = "memory and compute"
    FIRST_AVAILABLE = "first available"
    TWO_INSTANCES = "two containers, two instances of one card"
    MIXED = "three containers: a card, a slice, an instance"
    ADMINISTRATOR = "administrative access"
    COMPLETES = "slices, for a pod that ends by itself"
    NAMED = "named claim for slices"
    COMMON = "named claim of two pods"
    LIMIT_WHOLE = "limit of cards"
    LIMIT_SLICES = "limit of slices"
    LIMIT_INSTANCE = "limit of an instance"


class Ending(StrEnum):
    """How a workload's pods are deleted: its named claims are deleted with them."""

    DELETED = "deleted"
    BY_FORCE = "deleted by force"


@dataclass(frozen=True, slots=True)
class Workload:
    """`amount` is the cards, slices or size that it asks for, where its shape has one."""

    name: str
    shape: Shape
    amount: int
    ending: Ending

    def __str__(self) -> str:
        return f"{self.name}: {self.shape}, {self.amount}"

    def objects(self, namespace: str) -> list[Object]:
        """What a user would apply."""
        made = _OF_SHAPE[self.shape](self, namespace)
        for each in made:
            each["metadata"].setdefault("labels", {})[LABEL] = self.name
        return made


SHAPES: Final[Mapping[Shape, tuple[int, ...]]] = MappingProxyType(
    {
        Shape.WHOLE: (1,),
        Shape.TWO_CARDS: (2,),
        Shape.TOO_MANY: (9,),
        Shape.SLICES: (1, 2, 3, 4, 6),
        Shape.INSTANCE: (1, 3, 6),
        Shape.MEMORY: (5, 20, 45),
        Shape.FIRST_AVAILABLE: (3,),
        Shape.TWO_INSTANCES: (1, 3),
        Shape.MIXED: (1,),
        Shape.ADMINISTRATOR: (1,),
        Shape.COMPLETES: (1, 2),
        Shape.NAMED: (1, 3, 5),
        Shape.COMMON: (2, 4),
        Shape.LIMIT_WHOLE: (1, 2),
        Shape.LIMIT_SLICES: (1, 2, 6),
        Shape.LIMIT_INSTANCE: (1, 3),
    }
)
"""Every shape, with the amounts that it is asked for in."""


def _templated(name: str, namespace: str, wanted: Object, made: Object) -> list[Object]:
    """The pod with a claim of its own, as `wanted` says."""
    template = {
        "apiVersion": wanted["apiVersion"],
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": wanted["spec"]},
    }
    made["spec"]["resourceClaims"] = [{"name": "gcu", "resourceClaimTemplateName": name}]
    return [template, made]


def _one(mode: Mode, *, amount: bool = True) -> Callable[[Workload, str], list[Object]]:
    def objects(workload: Workload, namespace: str) -> list[Object]:
        asked = workload.amount if amount else None
        wanted = claim_in(mode, workload.name, namespace, asked)
        made = pod_with(workload.name, namespace)
        _note_need(made, mode, workload.amount)
        return _templated(workload.name, namespace, wanted, made)

    return objects


def _note_need(made: Object, mode: Mode, amount: int) -> None:
    made["metadata"]["annotations"] = {NEED: f"{mode} {amount}"}


def _cards(workload: Workload, namespace: str) -> list[Object]:
    same = [{"requests": ["gcu"], "matchAttribute": f"{DRIVER}/{ATTR_PCIE_SWITCH}"}]
    constraints = {"constraints": same} if workload.shape is Shape.TWO_CARDS else {}
    wanted = claim(workload.name, namespace, count=workload.amount, **constraints)
    return _templated(workload.name, namespace, wanted, pod_with(workload.name, namespace))


def _memory(workload: Workload, namespace: str) -> list[Object]:
    wanted = claim(workload.name, namespace)
    wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = CLASS_PART
    measures = {"memory": f"{workload.amount * 2 // 5}Gi", "cores": workload.amount}
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **measures}
    wanted["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    return _templated(workload.name, namespace, wanted, pod_with(workload.name, namespace))


def _exactly(mode: Mode, amount: int | None) -> Object:
    [request] = claim_in(mode, "", "", amount)["spec"]["devices"]["requests"]
    found: Object = request["exactly"]
    return found


def _first_available(workload: Workload, namespace: str) -> list[Object]:
    choices = []
    for mode in CAPACITY_OF_MODE:
        exactly = _exactly(Mode(mode), workload.amount)
        del exactly["count"]
        choices.append({"name": mode, **exactly})
    wanted = claim(workload.name, namespace)
    wanted["spec"]["devices"]["requests"] = [{"name": "gcu", "firstAvailable": choices}]
    return _templated(workload.name, namespace, wanted, pod_with(workload.name, namespace))


def _two_containers(workload: Workload, namespace: str) -> list[Object]:
    sizes = {"first": workload.amount, "second": 1}
    requests = {name: _exactly(Mode.DRS, size) for name, size in sizes.items()}
    same = {"requests": list(requests), "matchAttribute": f"{DRIVER}/{ATTR_CARD}"}
    return _container_for_each(workload, namespace, requests, constraints=[same])


def _mixed(workload: Workload, namespace: str) -> list[Object]:
    requests = {
        str(mode): _exactly(mode, workload.amount if mode in CAPACITY_OF_MODE else None)
        for mode in Mode
    }
    return _container_for_each(workload, namespace, requests)


def _container_for_each(
    workload: Workload, namespace: str, requests: Mapping[str, Object], **devices: Any
) -> list[Object]:
    """A pod with a container for each request of its claim, by the request's name: variables of one
    container cannot name an instance beside other cards."""
    wanted = claim(workload.name, namespace, **devices)
    wanted["spec"]["devices"]["requests"] = [
        {"name": name, "exactly": exactly} for name, exactly in requests.items()
    ]
    made = pod_with(workload.name, namespace)
    [container] = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**container, "name": name, "resources": {"claims": [{"name": "gcu", "request": name}]}}
        for name in requests
    ]
    return _templated(workload.name, namespace, wanted, made)


def _administrator(workload: Workload, namespace: str) -> list[Object]:
    wanted = claim(workload.name, namespace)
    wanted["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": CLASS_WHOLE,
        "allocationMode": "All",
        "adminAccess": True,
    }
    return _templated(workload.name, namespace, wanted, pod_with(workload.name, namespace))


def _completes(workload: Workload, namespace: str) -> list[Object]:
    wanted = claim_in(Mode.SHARED, workload.name, namespace, workload.amount)
    made = pod_with(workload.name, namespace, restartPolicy="Never")
    made["spec"]["containers"][0]["command"] = ["sleep", "8"]
    _note_need(made, Mode.SHARED, workload.amount)
    return _templated(workload.name, namespace, wanted, made)


def _named(workload: Workload, namespace: str) -> list[Object]:
    wanted = claim_in(Mode.SHARED, workload.name, namespace, workload.amount)
    pods = 2 if workload.shape is Shape.COMMON else 1
    names = [f"{workload.name}-{number}" for number in range(pods)]
    return [wanted, *(pod_with(workload.name, namespace, name=name) for name in names)]


def _limit(mode: Mode) -> Callable[[Workload, str], list[Object]]:
    def objects(workload: Workload, namespace: str) -> list[Object]:
        made = pod(workload.name, namespace, terminationGracePeriodSeconds=1)
        limits = {RESOURCES[mode]: str(workload.amount)}
        made["spec"]["containers"][0]["resources"] = {"limits": limits}
        return [made]

    return objects


_OF_SHAPE: Final[Mapping[Shape, Callable[[Workload, str], list[Object]]]] = MappingProxyType(
    {
        Shape.WHOLE: _one(Mode.WHOLE, amount=False),
        Shape.TWO_CARDS: _cards,
        Shape.TOO_MANY: _cards,
        Shape.SLICES: _one(Mode.SHARED),
        Shape.INSTANCE: _one(Mode.DRS),
        Shape.MEMORY: _memory,
        Shape.FIRST_AVAILABLE: _first_available,
        Shape.TWO_INSTANCES: _two_containers,
        Shape.MIXED: _mixed,
        Shape.ADMINISTRATOR: _administrator,
        Shape.COMPLETES: _completes,
        Shape.NAMED: _named,
        Shape.COMMON: _named,
        Shape.LIMIT_WHOLE: _limit(Mode.WHOLE),
        Shape.LIMIT_SLICES: _limit(Mode.SHARED),
        Shape.LIMIT_INSTANCE: _limit(Mode.DRS),
    }
)
