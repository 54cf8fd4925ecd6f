"""A cluster for random histories: what people make and delete, and a kube-scheduler that binds.

The controller of the `World` allocates. The kube-scheduler here knows of its rules what concerns
allocations: scheduling gates, groups (1.37.1, plugins/gangscheduling), reservations, and that it
clears the allocations of a gang that it cannot bind (PodGroupPostFilter).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import SCHEDULING_GATE
from tests.unit.controller.allocator.build import claim, device, pool, request
from tests.unit.controller.test_pod_groups import group
from tests.unit.controller.world import World, pod, unallocated, unschedulable

FOREIGN_GATE: Final = "kueue.x-k8s.io/admission"
_RUN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class PodPlan:
    """A pod as people make it. `group` is empty for a pod alone; `is_scheduled`: a scheduler runs
    for it."""

    name: str
    claims: Sequence[str]
    gates: Sequence[str] = ()
    group: str = ""
    is_scheduled: bool = True


class Cluster:
    """Two nodes with one to three cards each. `pods` and `groups` (with their minCount, 0 for a
    Basic one) exist at this moment; `bound_at` has when a pod was bound."""

    def __init__(self, chance: random.Random) -> None:
        self.cards = {node: chance.randint(1, 3) for node in "ab"}
        slices = [
            each
            for node, count in self.cards.items()
            for each in pool(node, [device("whole", bus) for bus in range(count)])
        ]
        self.world = World(slices, draw=chance.random)
        self.pods: dict[str, PodPlan] = {}
        self.groups: dict[str, int] = {}
        self.bound_at: dict[str, float] = {}

    def make_pod(self, plan: PodPlan) -> None:
        made = pod(
            plan.name,
            *plan.claims,
            schedulingGates=[{"name": each} for each in plan.gates],
            schedulerName="default-scheduler" if plan.is_scheduled else "nobody",
            **({"schedulingGroup": {"podGroupName": plan.group}} if plan.group else {}),
        )
        minutes, seconds = divmod(int(self.world.time), 60)
        made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{minutes:02d}:{seconds:02d}Z"
        self.pods[plan.name] = plan
        self._put(PODS, made)

    def make_claim(self, name: str, count: int) -> None:
        self._put(RESOURCE_CLAIMS, claim(name, [request(count=count)]))

    def make_group(self, name: str, min_count: int) -> None:
        """A PodGroup that no other had the UID of."""
        made = group(name, min_count)
        made["metadata"]["uid"] = f"uid-{name}-{self.world.api.version}"
        self.groups[name] = min_count
        self._put(POD_GROUPS, made)

    def delete_group(self, name: str) -> None:
        del self.groups[name]
        self.world.remove(POD_GROUPS, name)
        self.world.run_until_idle()

    def delete_pod(self, name: str) -> None:
        """The pod ends; kube-controller-manager ends its reservations, and its claims if no other
        pod names them."""
        plan = self.pods.pop(name, None)
        if plan is None:
            return
        self.bound_at.pop(name, None)
        self.world.remove(PODS, name)
        for each in filter(self.has_claim, plan.claims):
            if any(each in other.claims for other in self.pods.values()):
                self._set_reservations(each, [u for u in self._users(each) if u["name"] != name])
            else:
                self.world.remove(RESOURCE_CLAIMS, each)
        self.world.run_until_idle()

    def lift_foreign_gate(self, name: str) -> None:
        if name in self.pods and self.has_gate(name, FOREIGN_GATE):
            ours = [each for each in self.gates(name) if each["name"] != FOREIGN_GATE]
            self.change_pod(name, lambda found: found["spec"].update(schedulingGates=ours))

    def bind(self, name: str, node: str) -> None:
        """Reserve the pod's claims for it, and bind it."""
        user = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
        for each in self.pods[name].claims:
            self._set_reservations(each, [*self._users(each), user])
        self.bound_at[name] = self.world.time
        self.change_pod(name, lambda found: found["spec"].update(nodeName=node))

    def clear(self, claim_name: str) -> None:
        """Clear the claim's allocation if nobody has reserved it."""
        if self.is_held(claim_name):
            self._put(RESOURCE_CLAIMS, unallocated(self.world.claim(claim_name)))

    def change_pod(self, name: str, change: Callable[[Object], object]) -> None:
        found = copy.deepcopy(self.world.api.live[PODS, name])
        change(found)
        self._put(PODS, found)

    def has_claim(self, name: str) -> bool:
        return (RESOURCE_CLAIMS, name) in self.world.api.live

    def is_held(self, claim_name: str) -> bool:
        """Whether the claim is allocated, and no pod has reserved it."""
        return (
            self.has_claim(claim_name)
            and allocation(self.world.claim(claim_name)) is not None
            and not self._users(claim_name)
        )

    def has_all_claims(self, plan: PodPlan) -> bool:
        return all(map(self.has_claim, plan.claims))

    def gates(self, name: str) -> Sequence[Object]:
        found: Object = self.world.api.live[PODS, name]
        return found["spec"].get("schedulingGates") or ()

    def has_gate(self, name: str, gate: str = SCHEDULING_GATE) -> bool:
        return any(each["name"] == gate for each in self.gates(name))

    def served_on(self, plan: PodPlan) -> str | None:
        """The node on which all claims of the pod are allocated; None if there is none. A pod
        without claims may run anywhere."""
        if not self.has_all_claims(plan):
            return None
        nodes = {self.world.node_of(each) for each in plan.claims} or {"a"}
        return nodes.pop() if len(nodes) == 1 else None

    def members(self, group_name: str) -> list[PodPlan]:
        return [each for each in self.pods.values() if each.group == group_name]

    def waiting(self, group_name: str = "") -> list[PodPlan]:
        """The group's pods that are not bound; by default of the pods alone."""
        return [each for each in self.members(group_name) if each.name not in self.bound_at]

    def _users(self, claim_name: str) -> list[Object]:
        status = self.world.claim(claim_name).get("status", {})
        return list(status.get("reservedFor") or ())

    def _set_reservations(self, claim_name: str, users: list[Object]) -> None:
        found = copy.deepcopy(self.world.claim(claim_name))
        found.setdefault("status", {})["reservedFor"] = users
        self._put(RESOURCE_CLAIMS, found)

    def _put(self, resource: Resource, obj: Object) -> None:
        self.world.put(resource, obj)
        self.world.run_until_idle()


class KubeScheduler:
    """Tries all pods in each round. As in a real cluster it may take several rounds to come to a
    pod that it could bind."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance

    def run_once(self) -> None:
        for plan in self._cluster.waiting():
            if plan.is_scheduled:
                self._try_pod(plan)
        for name in self._cluster.groups:
            self._try_group(name)
        self._end_pods()

    def _try_pod(self, plan: PodPlan) -> None:
        cluster = self._cluster
        if cluster.gates(plan.name) or not cluster.has_all_claims(plan):
            return
        node = cluster.served_on(plan)
        if node is None:
            self._report(plan)
        elif self._chance.random() < 0.8:
            cluster.bind(plan.name, node)

    def _try_group(self, name: str) -> None:
        """Bind the group's pods that are served: of a gang minCount at least, or none."""
        cluster, min_count = self._cluster, self._cluster.groups[name]
        members, waiting = cluster.members(name), cluster.waiting(name)
        if not waiting or len(members) < min_count:
            return
        if any(cluster.gates(e.name) or not cluster.has_all_claims(e) for e in waiting):
            return
        served = {e.name: node for e in waiting if (node := cluster.served_on(e)) is not None}
        if len(members) - len(waiting) + len(served) < min_count:
            self._reject_gang(waiting)
        elif self._chance.random() < 0.8:
            for each, node in served.items():
                cluster.bind(each, node)

    def _reject_gang(self, waiting: Sequence[PodPlan]) -> None:
        if self._chance.random() < 0.3:
            for plan in waiting:
                self._report(plan)
                for each in plan.claims:
                    self._cluster.clear(each)

    def _report(self, plan: PodPlan) -> None:
        """The pod fits nowhere; said once."""
        if self._cluster.world.api.live[PODS, plan.name]["status"] != unschedulable():
            self._cluster.change_pod(plan.name, lambda found: found.update(status=unschedulable()))

    def _end_pods(self) -> None:
        """Pods that have run for long enough end."""
        for name, since in list(self._cluster.bound_at.items()):
            if self._cluster.world.time > since + _RUN_SECONDS:
                self._cluster.delete_pod(name)
