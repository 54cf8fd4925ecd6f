"""A controller without threads: tests put objects, set the time, and read the writes.

Its API answers a write with the next resourceVersion, or with an error that a test has set. What a
real API server does with the write is shown by the control-plane tests.
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
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import ALLOCATOR_CONTROLLER
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


class FakeApi:
    """Stores what was written. `write_errors` are for the next writes, one each; `read_errors` for
    reads of one object, `list_errors` for lists. `before_error` is called before an error of a
    write, `after_list` after each list."""

    def __init__(self) -> None:
        self.live: dict[tuple[Resource, str], Object] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.write_errors: list[Exception] = []
        self.before_error: Callable[[], object] = lambda: None
        self.read_errors: list[Exception] = []
        self.list_errors: list[KubeError] = []
        self.after_list: Callable[[], object] = lambda: None
        self.lists: list[str] = []
        self.version = 100

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self.reads.append(f"{resource.plural} {name}")
        if self.read_errors:
            raise self.read_errors.pop(0)
        found = self.live.get((resource, name))
        if found is None:
            raise NotFound("gone", status=404)
        return found

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} {subresource}".strip())
        if self.write_errors:
            self.before_error()
            raise self.write_errors.pop(0)
        stored = copy.deepcopy(body)
        if subresource == "status" and allocation(stored) is not None:
            stored["metadata"]["managedFields"] = written_by(MANAGER)
        return self.store(resource, stored)

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        name = body["metadata"]["name"]
        self.writes.append(f"{name} create")
        if self.write_errors:
            raise self.write_errors.pop(0)
        if (resource, name) in self.live:
            raise AlreadyExists("there is one", status=409)
        # Not that of one of the same name before it.
        made = body | {"metadata": body["metadata"] | {"uid": f"uid-{name}-{self.version}"}}
        return self.store(resource, copy.deepcopy(made))

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
        return self.store(resource, obj | {"metadata": changed})

    def list(self, resource: Resource, *, decoder: Decoder = WHOLE, **_: str) -> Listing:
        self.lists.append(resource.plural)
        return self._listed(resource, lambda obj: decoder.decode(encode(obj)))

    def list_metadata(self, resource: Resource, *, decoder: Decoder = WHOLE) -> Listing:
        self.lists.append(f"{resource.plural} metadata")
        return self._listed(
            resource, lambda obj: decoder.decode(encode({"metadata": obj["metadata"]}))
        )

    def _listed(self, resource: Resource, decode: Callable[[Object], Object]) -> Listing:
        if self.list_errors:
            raise self.list_errors.pop(0)
        found = [decode(obj) for (kind, _), obj in self.live.items() if kind is resource]
        listing = Listing(tuple(found), str(self.version))
        self.after_list()
        return listing

    def patch(self, resource: Resource, name: str, body: Object, **_: Any) -> Object:
        self.writes.append(f"{name} patch")
        if self.write_errors:
            self.before_error()
            raise self.write_errors.pop(0)
        found = copy.deepcopy(self.get(resource, name))
        if found["metadata"]["uid"] != body["metadata"]["uid"]:
            raise Conflict("another object", status=409)
        gone = {each["name"] for each in body["spec"]["schedulingGates"]}
        gates = [each for each in found["spec"]["schedulingGates"] if each["name"] not in gone]
        found["spec"]["schedulingGates"] = gates
        return self.store(resource, found)

    def store(self, resource: Resource, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.live[resource, obj["metadata"]["name"]] = obj
        return obj


class ManualExecutor(Executor):
    """Executes at once what is submitted; while `is_paused`, only when `resume` is called."""

    def __init__(self) -> None:
        self.is_paused = False
        self.submitted: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - as an executor of threads does it
                future.set_exception(error)

        self.submitted.append(work)
        if not self.is_paused:
            self.resume()
        return future

    def resume(self) -> None:
        """Execute all that was submitted."""
        self.is_paused = False
        submitted, self.submitted = self.submitted, []
        for work in submitted:
            work()


class FakeRecorder:
    """Notes the events; with `blocked_for` it sends none, and returns these seconds."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.blocked_for = 0.0

    def record(
        self, regarding: Object, *, kind: EventType, reason: str, note: Note, action: str
    ) -> float:
        if self.blocked_for:
            return self.blocked_for
        text = note if isinstance(note, str) else note()
        self.notes.append(f"{regarding['kind']} {regarding['metadata']['name']}: {text}")
        return 0.0


class World:
    """Two nodes, `a` with one card and `b` with two, unless `slices` are given."""

    def __init__(
        self,
        slices: Sequence[Object] | None = None,
        *,
        listed: Sequence[Resource] = WATCHED,
        api: FakeApi | None = None,
        policy: Policy = POLICY,
        allocator: str = ALLOCATOR_CONTROLLER,
    ) -> None:
        self.time = 1000.0
        self.check_seconds = 0.0  # seconds that pass with each check of a decision's allowance
        self.api = api or FakeApi()
        self.recorder = FakeRecorder()
        self._decoders = decoders()
        self.events = EventQueue(self.clock)
        self.fence = Fence(self.clock)
        self.lead()
        self._registry = CollectorRegistry()
        self.pool = ManualExecutor()
        _SELECTORS.allowance = Allowance(self.decision_clock)
        self.worker, context = new_worker(
            SETTINGS.model_copy(
                update={
                    "pack_nodes": policy.nodes,
                    "pack_cards": policy.cards,
                    "allocator": allocator,
                }
            ),
            cast("Api", self.api),
            self._registry,
            recorder=self.recorder,
            pool=self.pool,
            events=self.events,
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
                listed_ones = [self.api.store(resource, _with_uid(each)) for each in items]
                self.events.put(Replaced(resource, [self._seen(resource, e) for e in listed_ones]))
        self.worker.run_once(0)  # it leads, and begins its term

    def clock(self) -> float:
        return self.time

    def decision_clock(self) -> float:
        """The clock of the allowance of decisions."""
        self.time += self.check_seconds
        return self.time

    def lead(self, term: str = "1") -> None:
        """The lease was won."""
        self.fence.open_until(float("inf"), term)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Someone created or changed the object, and the watch delivers it."""
        known = (resource, obj["metadata"]["name"]) in self.api.live
        stored = self.put_unseen(resource, obj)
        change = Change.MODIFIED if known else Change.ADDED
        self.events.put(ResourceEvent(resource, change, self._seen(resource, stored)))
        return stored

    def put_unseen(self, resource: Resource, obj: Object) -> Object:
        """Someone created or changed the object, and the watch has not delivered it yet."""
        return self.api.store(resource, _with_uid(obj))

    def remove(self, resource: Resource, name: str) -> None:
        gone = self.api.live.pop((resource, name))
        self.events.put(ResourceEvent(resource, Change.DELETED, self._seen(resource, gone)))

    def _seen(self, resource: Resource, obj: Object) -> Object:
        """The object as a watch decodes it."""
        return self._decoders[resource].decode(encode(obj))

    def metric(self, name: str) -> float:
        found = self._registry.get_sample_value(name)
        assert found is not None
        return found

    def claim(self, name: str) -> Object:
        return self.api.live[RESOURCE_CLAIMS, name]

    def node_of(self, name: str) -> str | None:
        """The node that the claim is allocated on, by its only result's pool."""
        found = allocation(self.claim(name))
        return None if found is None else found["devices"]["results"][0]["pool"].split("/")[1]

    def run_until_idle(self) -> list[str]:
        """Let the controller do all that is due; returns its writes."""
        before = len(self.api.writes)
        for _ in range(100):
            self.worker.run_once(0)
            patience = self.worker.next_wakeup()
            if (patience is None or patience > 0) and not len(self.events):
                return self.api.writes[before:]
        raise AssertionError("the controller is never idle")

    def after(self, seconds: float) -> list[str]:
        self.time += seconds
        return self.run_until_idle()


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
