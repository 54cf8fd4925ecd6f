"""A stand-in for the API server, and a cluster of two cards on it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from controller.cache.claims import MANAGER
from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import CLASSES, allocated, device, pool
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.world import node, reserved

CONTROLLER: Object = {
    "metadata": {
        "namespace": "gcu-dra-driver",
        "name": "controller",
        "labels": {
            "app.kubernetes.io/name": "gcu-dra-driver",
            "app.kubernetes.io/component": "controller",
        },
    },
    "spec": {"containers": [{"name": "controller"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HELD = allocated("held", "a", "whole-0000-01-00-0")


class Server:
    """What it has; `forbidden` may not be listed by this user."""

    version = ServerVersion(1, 36, "v1.36.3")

    def __init__(self, *objects: tuple[Resource, Object], forbidden: Sequence[Resource] = ()):
        self._forbidden = forbidden
        self._objects: dict[Resource, list[Object]] = {}
        for number, (resource, each) in enumerate(objects):
            stored = copy.deepcopy(each)
            stored["metadata"].setdefault("uid", f"uid-{stored['metadata']['name']}")
            stored["metadata"]["resourceVersion"] = str(number + 1)
            self._objects.setdefault(resource, []).append(stored)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        for obj in self._objects.get(resource, ()):
            if (obj["metadata"]["name"], obj["metadata"].get("namespace", "")) == (name, namespace):
                return obj
        raise NotFound(f"no {resource.kind} {name}", status=404)

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        forbids: bool = True,
    ) -> Listing:
        if forbids and resource in self._forbidden and not namespace:
            raise Forbidden("no", status=403)
        found = self._objects.get(resource, ())
        return Listing(tuple(_selected(found, field_selector)), "1")

    def server_version(self) -> ServerVersion:
        return self.version

    def close(self) -> None:
        """Nothing is open."""


def _selected(found: Iterable[Object], field_selector: str) -> Iterable[Object]:
    """As the API server selects by ``path=value`` and ``path!=value``."""
    for term in filter(None, field_selector.split(",")):
        path, _, value = term.partition("=")
        section, field = path.removesuffix("!").split(".")
        wanted = not path.endswith("!")
        found = [each for each in found if (str(each[section].get(field, "")) == value) is wanted]
    return found


def by_controller(claim: Object) -> Object:
    """The claim, allocated by the controller."""
    claim["metadata"]["managedFields"] = written_by(MANAGER)
    return claim


def cluster(*more: tuple[Resource, Object], forbidden: Sequence[Resource] = ()) -> Any:
    """Two nodes with a card each; that of node a is held by claim `held`, that of b by `other`. A
    controller runs."""
    slices = [
        *pool("a", [device(mode, 1) for mode in ("whole", "shared")]),
        *pool("b", [device(mode, 2) for mode in ("whole", "shared")]),
    ]
    return Server(
        *((RESOURCE_SLICES, each) for each in slices),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        *((NODES, node(name)) for name in ("a", "b")),
        (RESOURCE_CLAIMS, reserved(HELD, "holder")),
        (RESOURCE_CLAIMS, allocated("other", "b", "shared-0000-02-00-0", consumed={"slices": "2"})),
        (PODS, CONTROLLER),
        *more,
        forbidden=forbidden,
    )


def event(reason: str, note: str, about: str = "p") -> Object:
    return {"reason": reason, "note": note, "regarding": {"name": about}}
