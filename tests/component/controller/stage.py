"""What the others in a cluster do, as far as a test plays them: users, schedulers, agents."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from dra_driver.kube.api import PatchType
from dra_driver.kube.errors import Conflict
from dra_driver.kube.resources import (
    BINDINGS,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import (
    Object,
    allocation,
    claim_names,
    reserved_for,
    results,
)
from dra_driver.model.names import FINALIZER
from tests.control_plane.objects import claim, node_of, pod_with, resource_slices
from tests.fake_api.api import FakeApi
from tests.fake_api.store import Key
from tests.unit.controller.allocator.build import CLASSES, OTHER_CLASS

PATIENCE: Final = 30.0
"""Seconds for what is done in a tenth of one, on a machine that has other work."""

UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

T = TypeVar("T")


class Stage:
    """A cluster without controllers of Kubernetes, and the namespace `team` in it."""

    namespace: Final = "team"

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self._scheduler = api.client("kube-scheduler/1")
        self._manager = api.client("kube-controller-manager/1")
        self._numbers = itertools.count()
        for each in (*CLASSES.values(), OTHER_CLASS):
            api.put(DEVICE_CLASSES, each)

    def add_node(self, devices: Sequence[Object], **spec: Any) -> str:
        """A node with these devices; gives its name."""
        name = f"node-{next(self._numbers)}"
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True"}
        node: Object = {
            "metadata": {"name": name, "labels": {"machine": name}},
            "spec": spec,
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
        }
        self.api.put(NODES, node)
        for each in resource_slices(name, devices):
            self.api.put(RESOURCE_SLICES, each)
        return name

    def remove_node(self, name: str) -> None:
        for each in self.api.all(RESOURCE_SLICES):
            if each["spec"]["nodeName"] == name:
                self.api.remove(RESOURCE_SLICES, each["metadata"]["name"])
        self.api.remove(NODES, name)

    def set_ready(self, node: str, status: str) -> None:
        self.set_status(NODES, node, {"conditions": [{"type": "Ready", "status": status}]})

    def add_claim(self, name: str, **how: Any) -> Object:
        return self.add_made_claim(claim(name, self.namespace, **how))

    def add_made_claim(self, made: Object) -> Object:
        return self.api.put(RESOURCE_CLAIMS, made)

    def add_pod(self, name: str, *claims: str, **spec: Any) -> Object:
        """A pod that uses the claims, as a user makes it."""
        return self.put_pod(pod_with(name, self.namespace, *claims, **spec))

    def put_pod(self, pod: Object) -> Object:
        """The pod as the API server has a new one, or another one of its name."""
        spec = {"schedulerName": "default-scheduler", **pod["spec"]}
        return self.api.put(PODS, {"status": {"phase": "Pending"}, **pod, "spec": spec})

    def start(self, name: str, **spec: Any) -> None:
        """A claim for a card, and a pod that uses it, both of that name."""
        self.add_claim(name)
        self.add_pod(name, name, **spec)

    def bind(self, name: str) -> str:
        """The pod is bound once its claims are allocated, as kube-scheduler does it: they are
        reserved first. Gives the node."""
        while True:
            claims = self.wait(partial(self._allocated_claims, name), f"the claims of {name}")
            with suppress(Conflict):  # given back meanwhile
                for each in claims:
                    self.reserve(each, name)
                break
        [node] = {node_of(each) for each in claims}
        self.bind_to(name, node)
        return node

    def bind_to(self, name: str, node: str) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self._scheduler.create(BINDINGS, {"metadata": metadata, "target": target})

    def reserve(self, found: Object, *pods: str) -> Object:
        users = [
            {"resource": "pods", "name": name, "uid": self.pod(name)["metadata"]["uid"]}
            for name in pods
        ]
        status = found["status"] | {"reservedFor": users}
        return self._scheduler.replace(
            RESOURCE_CLAIMS, found | {"status": status}, subresource="status"
        )

    def allocate(self, name: str, devices: Object, *pods: str) -> None:
        """kube-scheduler allocates these devices to the claim, and reserves it for the pods."""
        found = self.claim(name)
        metadata = found["metadata"] | {"finalizers": [FINALIZER]}
        found = self._scheduler.replace(RESOURCE_CLAIMS, found | {"metadata": metadata})
        self.reserve(found | {"status": {"allocation": devices}}, *pods)

    def clear(self, found: Object) -> None:
        """The allocation is given up, as by kube-scheduler."""
        status = {key: value for key, value in found["status"].items() if key != "allocation"}
        self._scheduler.replace(RESOURCE_CLAIMS, found | {"status": status}, subresource="status")

    def refuse(self, pod: str) -> None:
        """kube-scheduler finds no node for the pod."""
        self.set_status(PODS, pod, {"conditions": [UNSCHEDULABLE]})

    def end(self, name: str) -> None:
        """The pod is gone, and what nobody uses any more is freed, as by kube-controller-manager:
        only what was reserved for it."""
        uid = self.pod(name)["metadata"]["uid"]
        self.api.remove(PODS, name, self.namespace)
        for each in self.api.all(RESOURCE_CLAIMS, self.namespace):
            users = reserved_for(each)
            left = [user for user in users if user["uid"] != uid]
            if len(left) < len(users):
                self._free(each, left)

    def _free(self, found: Object, users: Sequence[Object]) -> None:
        status = found["status"] | {"reservedFor": users}
        stored = self._manager.replace(
            RESOURCE_CLAIMS, found | {"status": status if users else {}}, subresource="status"
        )
        if not users:
            finalizers = [each for each in stored["metadata"]["finalizers"] if each != FINALIZER]
            metadata = stored["metadata"] | {"finalizers": finalizers}
            self._manager.replace(RESOURCE_CLAIMS, stored | {"metadata": metadata})

    def set_status(self, resource: Resource, name: str, status: Object) -> None:
        self._manager.patch(
            resource,
            name,
            {"status": status},
            namespace=self.namespace if resource.namespaced else "",
            patch_type=PatchType.STRATEGIC_MERGE,
            subresource="status",
        )

    def claim(self, name: str) -> Object:
        return self._one(RESOURCE_CLAIMS, name)

    def pod(self, name: str) -> Object:
        return self._one(PODS, name)

    def node_of(self, name: str) -> str:
        """The node that the claim is allocated on; empty where it is not."""
        found = self.claim(name)
        return node_of(found) if results(found) else ""

    def is_allocated(self, *names: str) -> bool:
        return all(allocation(self.claim(name)) for name in names)

    def allocated(self, name: str) -> Object:
        """The claim, once it is allocated."""
        self.wait(lambda: self.is_allocated(name), f"claim {name} allocated")
        return self.claim(name)

    def released(self, name: str) -> None:
        self.wait(lambda: not self.is_allocated(name), f"claim {name} released")

    def gates(self, pod: str) -> list[str]:
        return [each["name"] for each in self.pod(pod)["spec"].get("schedulingGates") or ()]

    def no_card_twice(self, names: Iterable[str]) -> None:
        """Return when all of the claims have different cards."""
        held = [(each.pool, each.device) for name in names for each in results(self.claim(name))]
        assert len(held) == len(set(held))

    def events_about(self, name: str) -> list[str]:
        """The events about the objects of that name, each in a line."""
        return [
            f"{each['type']} {each['reason']} {each['regarding']['kind']}: {each['note']}"
            for each in self.api.store.of_kind(EVENTS)
            if each["regarding"]["name"] == name
        ]

    def wait_for_event(self, name: str, words: str, reason: str = "") -> None:
        """Return when an event about the object has these words, and is of that reason."""
        self.wait(
            lambda: any(words in each and reason in each for each in self.events_about(name)),
            f"an event about {name} with {words!r}",
            seen=lambda: self.events_about(name),
        )

    def writes_to(self, *names: str, since: int = 0) -> list[Object]:
        """Each of the claims as it was after each change, in order."""
        keys = {Key(RESOURCE_CLAIMS, self.namespace, name) for name in names}
        first = since or self.api.store.oldest
        return [
            each.new
            for each in self.api.store.after(first)
            if each.key in keys and each.new is not None
        ]

    def wait(
        self, predicate: Callable[[], T], what: str, *, seen: Callable[[], object] = lambda: ""
    ) -> T:
        """Return what it gives, once that is true. It is asked again with each change. If
        it stays false, the error has what `seen` gives."""
        end = time.monotonic() + PATIENCE
        with self.api.store.changed:
            while not (found := predicate()):
                left = end - time.monotonic()
                assert left > 0, f"no {what} {seen()}"
                self.api.store.changed.wait(min(left, 0.05))
        return found

    def stays(self, predicate: Callable[[], bool], seconds: float, what: str) -> None:
        """Return when it has been true for so long, at each change."""
        end = time.monotonic() + seconds
        with self.api.store.changed:
            while (left := end - time.monotonic()) > 0:
                assert predicate(), what
                self.api.store.changed.wait(left)
            assert predicate(), what

    def _allocated_claims(self, pod: str) -> list[Object]:
        """All of the pod's; empty where one is not allocated, or a gate holds the pod."""
        names = [str(name) for name in claim_names(self.pod(pod)).values()]
        ready = not self.gates(pod) and self.is_allocated(*names)
        return [self.claim(name) for name in names] if ready else []

    def _one(self, resource: Resource, name: str) -> Object:
        found = self.api.store.find(Key(resource, self.namespace, name))
        assert found is not None, f"no {resource.kind} {name}"
        return found
