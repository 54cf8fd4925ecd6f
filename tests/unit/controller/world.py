"""A controller without threads: tests put objects, set the time, and read the writes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

import msgspec
from prometheus_client import CollectorRegistry

from controller.allocating.clocks import Clocks
from controller.allocating.reconciler import Reconciler
from controller.allocator.packing.policy import Policy
from controller.app import new_worker
from controller.cache.cache import WATCHED
from controller.informers.decoders import decoders
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import EventQueue, Replaced, ResourceEvent
from controller.settings import ControllerSettings
from dra_driver.kube.api import Api, Change
from dra_driver.kube.events import EventType, Note
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, ReadOnlyObject, allocation
from dra_driver.model.names import ALLOCATOR_CONTROLLER
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import CLASSES, OTHER_CLASS, claim, device, pool
from tests.unit.controller.fake_api import FakeApi

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
_DECODERS = decoders()


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
        scheduler_names: str = "",
        draw: Callable[[], float] = lambda: 0.0,
        settings: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """`settings` are others than `SETTINGS`."""
        self.time = 1000.0
        self.check_seconds = 0.0  # seconds that pass with each check of a decision's allowance
        self.api = api or FakeApi()
        self.recorder = FakeRecorder()
        self.events = EventQueue(self.clock)
        self.fence = Fence(self.clock)
        self.lead()
        self.registry = CollectorRegistry()
        self.pool = ManualExecutor()
        _SELECTORS.allowance = Allowance(self.decision_clock)
        self.worker, context = new_worker(
            SETTINGS.model_copy(
                update={
                    "pack_nodes": policy.nodes,
                    "pack_cards": policy.cards,
                    "allocator": allocator,
                    "scheduler_names": scheduler_names,
                }
                | dict(settings)
            ),
            cast("Api", self.api),
            self.registry,
            recorder=self.recorder,
            pool=self.pool,
            events=self.events,
            fence=self.fence,
            selectors=_SELECTORS,
            clock=self.clock,
            now=lambda: datetime(2026, 1, 2, tzinfo=UTC),
            draw=draw,
        )
        self.queue = context.queue
        if slices is None:
            slices = [
                *pool("a", [device("whole", 0)]),
                *pool("b", [device("whole", 0), device("whole", 1)]),
            ]
        for resource, items in (
            (RESOURCE_SLICES, slices),
            (DEVICE_TAINT_RULES, []),
            (DEVICE_CLASSES, [*CLASSES.values(), OTHER_CLASS]),
            (NAMESPACES, [{"metadata": {"name": "default", "labels": {"team": "x"}}}]),
            (NODES, [node("a"), node("b")]),
            (RESOURCE_CLAIM_TEMPLATES, []),
            (RESOURCE_CLAIMS, []),
            (POD_GROUPS, []),
            (PODS, []),
        ):
            if resource in listed:
                listed_ones = [self.api.put(resource, _with_uid(each)) for each in items]
                self.events.put(Replaced(resource, [self._seen(resource, e) for e in listed_ones]))
        self.worker.run_once(0)  # it leads, and begins its term

    @property
    def clocks(self) -> Clocks:
        """Of a controller that allocates."""
        reconciler = self.worker._reconciler
        assert isinstance(reconciler, Reconciler)
        return reconciler._clocks

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

    def ask(self, name: str, *claims: str, **spec: Any) -> None:
        """Someone created a pod, see `pod`, and before it claims of these names for one card."""
        for each in claims:
            self.put(RESOURCE_CLAIMS, claim(each))
        self.put(PODS, pod(name, *claims, **spec))

    def put_unseen(self, resource: Resource, obj: Object) -> Object:
        """Someone created or changed the object, and the watch has not delivered it yet."""
        return self.api.put(resource, _with_uid(obj))

    def remove(self, resource: Resource, name: str) -> None:
        gone = self.api.live.pop((resource, name))
        self.events.put(ResourceEvent(resource, Change.DELETED, self._seen(resource, gone)))

    def _seen(self, resource: Resource, obj: Object) -> ReadOnlyObject:
        """The object as a watch decodes it."""
        seen: ReadOnlyObject = _DECODERS[resource].decode(msgspec.json.encode(obj))
        return seen

    def metric(self, name: str, labels: dict[str, str] | None = None) -> float:
        """0 for labels with which nothing was counted."""
        found = self.registry.get_sample_value(name, labels)
        assert labels or found is not None
        return found or 0.0

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


def node(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "allocatable": {"pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
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
    metadata = obj["metadata"]
    return obj | {"metadata": {"uid": f"uid-{metadata['name']}"} | metadata}
