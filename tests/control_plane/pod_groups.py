"""Groups of pods (scheduling.k8s.io, PodGroup), each pod with a claim for a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.kube.resources import POD_GROUPS_V1BETA1
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import SCHEDULING_GATE
from tests.cluster.waiting import wait_until
from tests.control_plane.conftest import Scene

LIMIT: Final = 60.0
"""Seconds for what takes some, and took 94 where members of two gangs took each other's cards."""

GATES: Final = {
    "GenericWorkload": True,
    "DRAWorkloadResourceClaims": True,
    "TopologyAwareWorkloadScheduling": True,
}
"""Feature gates that are off by default."""

SERVED: Final = "--runtime-config=scheduling.k8s.io/v1beta1=true"

OUR_GATE: Final = [{"name": SCHEDULING_GATE}]


@dataclass(frozen=True, slots=True)
class PodGroups:
    """Makes groups in the test's namespace, and looks at their pods."""

    scene: Scene

    def make(self, name: str, *, least: int = 0, **spec: Any) -> None:
        """A PodGroup, which is a gang if it has a least number of pods."""
        made = pod_group(name, self.scene.namespace, least=least, **spec)
        self.scene.api.create(POD_GROUPS_V1BETA1, made)

    def need(self, name: str, least: int) -> None:
        """The gang needs so many pods from now on."""
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
        self.scene.api.patch(
            POD_GROUPS_V1BETA1, name, {"spec": spec}, namespace=self.scene.namespace
        )

    def join(self, group: str, *names: str, gated: bool = False, **spec: Any) -> None:
        """Pods of these names, and their claims, in the group."""
        for name in names:
            self.scene.hands.start(name, **member_of(group, gated=gated), **spec)

    def bound(self, names: Sequence[str]) -> list[str]:
        """Those pods that have a node."""
        return [name for name in names if self.scene.eyes.pod(name)["spec"].get("nodeName")]

    def holding(self, names: Sequence[str]) -> list[str]:
        """Those pods whose claim is allocated."""
        return [name for name in names if allocation(self.scene.eyes.claim(name))]

    def gated(self, names: Sequence[str]) -> list[str]:
        """Those pods that have a scheduling gate."""
        pods = {name: self.scene.eyes.pod(name) for name in names}
        return [name for name, each in pods.items() if each["spec"].get("schedulingGates")]

    def wait_for_bound(self, names: Sequence[str], count: int) -> list[str]:
        """Return those that are bound when they are so many, and the others hold nothing."""

        def is_so() -> bool:
            bound = self.bound(names)
            return len(bound) == count and self.holding(names) == bound

        wait_until(is_so, LIMIT, f"{count} bound", seen=lambda: self.describe(names))
        return self.bound(names)

    def wait_for_one(self, *gangs: Sequence[str]) -> Sequence[str]:
        """Return the gang that is bound, when all of it is and the others hold nothing."""
        everybody = [name for gang in gangs for name in gang]

        def whole() -> list[Sequence[str]]:
            bound = self.bound(everybody)
            return [gang for gang in gangs if list(gang) == bound == self.holding(everybody)]

        [gang] = wait_until(whole, LIMIT, "one gang bound", seen=lambda: self.describe(everybody))
        return gang

    def describe(self, names: Sequence[str]) -> str:
        """For a test that failed."""
        found = (self.holding(names), self.bound(names), self.gated(names))
        return "holding {}, bound {}, gated {}".format(*found)


def pod_group(name: str, namespace: str, *, least: int = 0, **spec: Any) -> Object:
    """A PodGroup, which is a gang if it has a least number of pods."""
    policy: Object = {"gang": {"minCount": least}} if least else {"basic": {}}
    return {
        "apiVersion": POD_GROUPS_V1BETA1.api_version,
        "kind": POD_GROUPS_V1BETA1.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member_of(group: str, *, gated: bool = False) -> dict[str, Any]:
    """The fields of such a pod's spec."""
    spec: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}}
    return spec | {"schedulingGates": OUR_GATE} if gated else spec
