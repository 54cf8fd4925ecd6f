"""A controller without threads: objects are told, time is set, writes are looked at.

The port below it answers a write with the next resourceVersion, or with the error that a test put
in; what an API server would make of the write is left to the control-plane tests.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from datetime import UTC, datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry

from controller.allocator.order import Policy
from controller.app import new_worker
from controller.cache.cache import WATCHED
from controller.cache.claims import MANAGER
from controller.informers.decoders import decoders
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import EventQueue, Replaced, ResourceEvent
from controller.settings import ControllerSettings
from dra_driver.kube.api import NOTHING, Api, Change, Listing
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.encode import encode
from dra_driver.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dra_driver.kube.events import EventType, Note
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claim import Object, allocation
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import CLASSES, OTHER_CLASS, device, pool

QUIET, PATIENCE, RETRY = 5.0, 30.0, 60.0
FAIRNESS = 300.0
RETENTION = 600.0
LIMIT = 4  # writes at a time
POLICY = Policy()
SETTINGS = ControllerSettings(
    quiet_time=QUIET,
    scheduling_patience=PATIENCE,
    node_retry=RETRY,
    node_retry_longest=RETRY,
    fairness_patience=FAIRNESS,
    template_retention=RETENTION,
    writes_in_flight=LIMIT,
)
_SELECTORS = Selectors()


class Port:
    """Keeps what was written; `refuse` holds errors for the next writes, one each, and
    `meanwhile` happens at the server just before such an error, `after_list` after each list.
    `refuse_reads` and `refuse_lists` are likewise for reads of one object and for lists."""

    def __init__(self) -> None:
        self.live: dict[tuple[Resource, str], Object] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.refuse: list[Exception] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.refuse_reads: list[Exception] = []
        self.refuse_lists: list[KubeError] = []
        self.after_list: Callable[[], object] = lambda: None
        self.lists: list[str] = []
        self.version = 100

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self.reads.append(f"{resource.plural} {name}")
        if self.refuse_reads:
            raise self.refuse_reads.pop(0)
        found = self.live.get((resource, name))
        if found is None:
            raise NotFound("gone", status=404)
        return found

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} {subresource}".strip())
        if self.refuse:
            self.meanwhile()
            raise self.refuse.pop(0)
        stored = copy.deepcopy(body)
        if subresource == "status" and allocation(stored) is not None:
            stored["metadata"]["managedFields"] = written_by(MANAGER)
        return self.keep(resource, stored)

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} create")
        if self.refuse:
            raise self.refuse.pop(0)
        if (resource, name) in self.live:
            raise AlreadyExists("there is one", status=409)
        # Not that of one of the same name before it.
        made = body | {"metadata": body["metadata"] | {"uid": f"uid-{name}-{self.version}"}}
        return self.keep(resource, copy.deepcopy(made))

    def delete(
        self, resource: Resource, name: str, *, namespace: str, uid: str, resource_version: str
    ) -> None:
        self.writes.append(f"{name} delete")
        found = self.get(resource, name)["metadata"]
        if (found["uid"], found["resourceVersion"]) != (uid, resource_version):
            raise Conflict("another one", status=409)
        del self.live[resource, name]

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        metadata = obj["metadata"]
        self.writes.append(f"{metadata['name']} exactly")
        changed = metadata | {
            "finalizers": [*metadata.get("finalizers", ()), *finalizers],
            "annotations": {**metadata.get("annotations", {}), **annotations},
        }
        return self.keep(resource, obj | {"metadata": changed})

    def list(self, resource: Resource, *, decoder: Decoder = WHOLE, **_: str) -> Listing:
        self.lists.append(resource.plural)
        return self._listed(resource, lambda obj: decoder.decode(encode(obj)))

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        self.lists.append(f"{resource.plural} metadata")
        return self._listed(
            resource, lambda obj: decoder.decode(encode({"metadata": obj["metadata"]}))
        )

    def _listed(self, resource: Resource, decode: Callable[[Object], Object]) -> Listing:
        if self.refuse_lists:
            raise self.refuse_lists.pop(0)
        found = [decode(obj) for (kind, _), obj in self.live.items() if kind is resource]
        listing = Listing(tuple(found), str(self.version))
        self.after_list()
        return listing

    def patch(self, resource: Resource, name: str, body: Object, **_: Any) -> Object:
        self.writes.append(f"{name} patch")
        if self.refuse:
            self.meanwhile()
            raise self.refuse.pop(0)
        found = copy.deepcopy(self.get(resource, name))
        if found["metadata"]["uid"] != body["metadata"]["uid"]:
            raise Conflict("another object", status=409)
        gone = {each["name"] for each in body["spec"]["schedulingGates"]}
        gates = [each for each in found["spec"]["schedulingGates"] if each["name"] not in gone]
        found["spec"]["schedulingGates"] = gates
        return self.keep(resource, found)

    def keep(self, resource: Resource, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.live[resource, obj["metadata"]["name"]] = obj
        return obj


class Hands(Executor):
    """Does at once what it is given; while `tied`, only when `untie` is called."""

    def __init__(self) -> None:
        self.tied = False
        self.given: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - as an executor of threads does it
                future.set_exception(error)

        self.given.append(work)
        if not self.tied:
            self.untie()
        return future

    def untie(self) -> None:
        """Do all that was given."""
        self.tied = False
        given, self.given = self.given, []
        for work in given:
            work()


class Ears:
    """Writes down the events; while deaf, says for how many seconds more."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.deaf_for = 0.0

    def record(
        self, regarding: Object, *, kind: EventType, reason: str, note: Note, action: str
    ) -> float:
        if self.deaf_for:
            return self.deaf_for
        text = note if isinstance(note, str) else note()
        self.told.append(f"{regarding['kind']} {regarding['metadata']['name']}: {text}")
        return 0.0


class World:
    """Two nodes, `a` with one card and `b` with two, unless told otherwise."""

    def __init__(
        self,
        slices: Sequence[Object] | None = None,
        *,
        listed: Sequence[Resource] = WATCHED,
        port: Port | None = None,
        policy: Policy = POLICY,
    ) -> None:
        self.time = 1000.0
        self.look_takes = 0.0  # seconds that pass with each look at the clock within a decision
        self.port = port or Port()
        self.ears = Ears()
        self._decoders = decoders()
        self.inbox = EventQueue(self.clock)
        self.fence = Fence(self.clock)
        self.lead()
        self._registry = CollectorRegistry()
        self.hands = Hands()
        _SELECTORS.allowance = Allowance(self.look)
        self.worker, context = new_worker(
            SETTINGS.model_copy(update={"pack_nodes": policy.nodes, "pack_cards": policy.cards}),
            cast("Api", self.port),
            self._registry,
            recorder=self.ears,
            pool=self.hands,
            events=self.inbox,
            fence=self.fence,
            selectors=_SELECTORS,
            clock=self.clock,
            now=lambda: datetime(2026, 1, 2, tzinfo=UTC),
            draw=lambda: 0.0,
        )
        self.queue, self.backoff = context.queue, context.backoff
        if slices is None:
            slices = [
                *pool("a", [device("whole", 0)]),
                *pool("b", [device("whole", 0), device("whole", 1)]),
            ]
        for resource, items in (
            (RESOURCE_SLICES, slices),
            (DEVICE_TAINT_RULES, []),
            (DEVICE_CLASSES, [*CLASSES.values(), OTHER_CLASS]),
            (NODES, [node("a"), node("b")]),
            (RESOURCE_CLAIM_TEMPLATES, []),
            (RESOURCE_CLAIMS, []),
            (PODS, []),
        ):
            if resource in listed:
                listed_ones = [self.port.keep(resource, _with_uid(each)) for each in items]
                self.inbox.put(Replaced(resource, [self._seen(resource, e) for e in listed_ones]))
        self.worker.run_once(0)  # it leads, and begins its term

    def clock(self) -> float:
        return self.time

    def look(self) -> float:
        """A decision looks at the clock."""
        self.time += self.look_takes
        return self.time

    def lead(self, term: str = "1") -> None:
        """The lease was won."""
        self.fence.open_until(float("inf"), term)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Someone created or changed the object, and the watch tells."""
        known = (resource, obj["metadata"]["name"]) in self.port.live
        stored = self.hide(resource, obj)
        change = Change.MODIFIED if known else Change.ADDED
        self.inbox.put(ResourceEvent(resource, change, self._seen(resource, stored)))
        return stored

    def hide(self, resource: Resource, obj: Object) -> Object:
        """Someone created or changed the object, and the watch has not told yet."""
        return self.port.keep(resource, _with_uid(obj))

    def remove(self, resource: Resource, name: str) -> None:
        gone = self.port.live.pop((resource, name))
        self.inbox.put(ResourceEvent(resource, Change.DELETED, self._seen(resource, gone)))

    def _seen(self, resource: Resource, obj: Object) -> Object:
        """The object as a watch decodes it."""
        return self._decoders[resource].decode(encode(obj))

    def metric(self, name: str) -> float:
        found = self._registry.get_sample_value(name)
        assert found is not None
        return found

    def claim(self, name: str) -> Object:
        return self.port.live[RESOURCE_CLAIMS, name]

    def node_of(self, name: str) -> str | None:
        """The node that the claim is allocated on, by its only result's pool."""
        found = allocation(self.claim(name))
        return None if found is None else found["devices"]["results"][0]["pool"].split("/")[1]

    def settle(self) -> list[str]:
        """Let the controller do all that is due; gives its writes."""
        before = len(self.port.writes)
        for _ in range(100):
            self.worker.run_once(0)
            patience = self.worker.next_wakeup()
            if (patience is None or patience > 0) and not len(self.inbox):
                return self.port.writes[before:]
        raise AssertionError("the controller never comes to rest")

    def after(self, seconds: float) -> list[str]:
        self.time += seconds
        return self.settle()


def written_by(manager: str) -> list[Object]:
    fields: Object = {"f:status": {"f:allocation": {}}}
    return [{"manager": manager, "subresource": "status", "fieldsV1": fields}]


def node(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, *claims: str, status: Object | None = None, **spec: Any) -> Object:
    """A pod whose only container uses the claims."""
    used = [{"name": each} for each in claims]
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {
            "resourceClaims": [{"name": each, "resourceClaimName": each} for each in claims],
            "containers": [{"name": "main", "resources": {"claims": used}}],
            **spec,
        },
        "status": status or {},
    }


def unschedulable() -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"conditions": [condition]}


def unallocated(found: Object) -> Object:
    """The claim as kube-scheduler leaves it when it clears the allocation."""
    cleared = copy.deepcopy(found)
    del cleared["status"]["allocation"]
    cleared["metadata"]["managedFields"] = []
    return cleared


def reserved(found: Object, pod_name: str) -> Object:
    changed = copy.deepcopy(found)
    changed["status"]["reservedFor"] = [
        {"resource": "pods", "name": pod_name, "uid": f"uid-{pod_name}"}
    ]
    return changed


def _with_uid(obj: Object) -> Object:
    copied = copy.deepcopy(obj)
    copied["metadata"].setdefault("uid", f"uid-{copied['metadata']['name']}")
    return copied
