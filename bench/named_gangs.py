"""The controller beside a played kube-scheduler: whole, without threads and without a server.

kube-scheduler comes first: when cards come free, it tries what has no gate before the controller
has named anybody. A name wakes no pod that has lost its gate already (1.37.2); it is tried when
cards come free again. What they do takes no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from bench import fleet
from bench.gang_days import Unit
from bench.played_scheduler import PlayedScheduler
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, DRIVER, SCHEDULING_GATE
from tests.unit.controller.test_pod_groups import group
from tests.unit.controller.world import World, node, pod, unschedulable

RACK = "rack"


class NamedGangs:
    """What kube-scheduler is to try, by what the controller has written. Units are known by a
    number. `racks` are by node; `waiting` is `nomination.waiting`."""

    def __init__(
        self, scheduler: PlayedScheduler, racks: Mapping[str, str], *, waiting: int
    ) -> None:
        self._scheduler = scheduler
        made = [fleet.resource_slice(number) for number in range(len(racks))]
        self._world = World(
            [part for each in made for part in fleet.for_scheduler(each)],
            allocator=ALLOCATOR_SCHEDULER,
            settings={"nomination_waiting": waiting, "nomination_group_labels": RACK},
        )
        self._begin = self._world.time
        for each in fleet.classes().values():
            self._world.put(DEVICE_CLASSES, each)
        for name, rack in racks.items():
            found = node(name)
            found["metadata"]["labels"] = {RACK: rack}
            self._world.put(NODES, found)
        self._pods: dict[int, list[str]] = {}
        self._open: set[int] = set()  # units without gates

    def wait_until(self, second: float) -> None:
        self._world.time = self._begin + second

    def next_wakeup(self) -> float | None:
        """Seconds until the controller does something by itself; None if it does not."""
        return self._world.worker.next_wakeup()

    def come(self, number: int, unit: Unit) -> None:
        names = [f"pod-{number:05}-{member}" for member in range(unit.size)]
        spec: Object = {"schedulingGates": [{"name": SCHEDULING_GATE}]}
        if unit.size > 1:
            self._world.put(POD_GROUPS, group(f"gang-{number:05}", unit.size))
            spec["schedulingGroup"] = {"podGroupName": f"gang-{number:05}"}
        at = datetime.fromtimestamp(self._world.time, UTC)
        request = fleet.request(unit.job.mode, unit.job.slices, cards=unit.job.cards)
        for name in names:
            claim = fleet.claim([request])
            claim["metadata"] = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
            self._world.put(RESOURCE_CLAIMS, claim)
            made = pod(name, name, **spec)
            made["metadata"]["creationTimestamp"] = f"{at:%Y-%m-%dT%H:%M:%SZ}"
            self._world.put(PODS, made)
        self._pods[number] = names

    def woken(self, waiting: Iterable[int]) -> list[int]:
        """Those of `waiting` that kube-scheduler tries as cards have come free."""
        return [number for number in waiting if number in self._open]

    def opened(self, waiting: Iterable[int]) -> list[int]:
        """Let the controller do all that is due. Those of `waiting` that have lost their gates."""
        self._run_until_idle()
        opened = [
            number
            for number in waiting
            if number not in self._open
            and not any(self._live(name)["spec"]["schedulingGates"] for name in self._pods[number])
        ]
        self._open.update(opened)
        return opened

    def names(self, number: int) -> Sequence[str]:
        """The node that is named for each pod; empty for none."""
        status = [self._live(name)["status"] for name in self._pods[number]]
        return [each.get("nominatedNodeName") or "" for each in status]

    def refused(self, number: int) -> None:
        """None is bound. Those that have a name lose it, as kube-scheduler had found a place."""
        for name in self._pods[number]:
            found = self._live(name)
            status = unschedulable()
            if found["status"] != status:
                self._world.put(PODS, found | {"status": status})

    def bound(self, number: int, running: Sequence[int], unit: Unit) -> None:
        for name, each in zip(self._pods[number], running, strict=True):
            results = [
                {"request": "gcu", "driver": DRIVER, **result}
                for result in self._results(each, unit)
            ]
            user = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
            status = {"allocation": {"devices": {"results": results}}, "reservedFor": [user]}
            self._put(RESOURCE_CLAIMS, name, {"status": status})
            spec = self._live(name)["spec"] | {"nodeName": self._scheduler.node_of(each)}
            self._put(PODS, name, {"spec": spec})

    def ended(self, number: int) -> None:
        for name in self._pods.pop(number):
            self._world.remove(PODS, name)
            self._world.remove(RESOURCE_CLAIMS, name)
        self._open.discard(number)
        if (POD_GROUPS, gang := f"gang-{number:05}") in self._world.api.live:
            self._world.remove(POD_GROUPS, gang)

    def _results(self, running: int, unit: Unit) -> Iterable[Object]:
        for number, held in enumerate(self._scheduler.ours.devices_of(running)):
            result: Object = {"pool": held.device.pool, "device": held.device.name}
            if held.consumed is not None:
                [capacity] = held.consumed
                result["shareID"] = f"share-{running}-{number}"
                result["consumedCapacity"] = {capacity: str(unit.job.slices)}
            yield result

    def _run_until_idle(self) -> None:
        worker, events = self._world.worker, self._world.events
        while True:
            worker.run_once(0)
            patience = worker.next_wakeup()
            if (patience is None or patience > 0) and not len(events):
                return

    def _live(self, name: str) -> Object:
        return self._world.api.live[PODS, name]

    def _put(self, resource: Resource, name: str, change: Object) -> None:
        self._world.put(resource, self._world.api.live[resource, name] | change)
