"""The driver on a cluster without DRA: device plugins, the extender, a second kube-scheduler."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from dra_driver.model.devices.node_cards import Hold, NodeCard, parse_cards
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.images import SCHEDULER_IMAGE, scheduler_archive
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.e2e.by_limits import Holds, assert_has, limits_of
from tests.e2e.installation import CARDS, RELEASE, Installation

Object = dict[str, Any]
SCHEDULER = "gcushare-scheduler"
_NOWHERE = '{"spec": {"template": {"spec": {"nodeSelector": {"runs": "nowhere"}}}}}'
_ANYWHERE = '{"spec": {"template": {"spec": {"nodeSelector": {"runs": null}}}}}'


def asking(name: str, namespace: str, *limits: Mapping[str, int], **spec: Any) -> Object:
    """A pod of one container for each of `limits`, for the vendor's scheduler."""
    made = pod(name, namespace, **{"schedulerName": SCHEDULER, **spec})
    made["spec"]["terminationGracePeriodSeconds"] = 1
    [first] = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**first, "name": f"c{n}", "resources": {"limits": {k: str(v) for k, v in each.items()}}}
        for n, each in enumerate(limits)
    ]
    return made


class OldInstallation(Installation):
    """The release with a kube-scheduler of its own, under the vendor's name."""

    def load_scheduler(self) -> None:
        """Put kube-scheduler's image on all nodes."""
        self.cluster.load_image(scheduler_archive(self.cluster.programs))

    def values(self, **changed: Any) -> dict[str, Any]:
        flags = list(self.cluster.settings.flags("kube-scheduler"))
        extender = {"schedulerImage": SCHEDULER_IMAGE, "schedulerFlags": flags}
        return super().values(**{"extender": extender, **changed})

    def published(self) -> bool:
        """Whether every node counts its cards, all free, and tells of them."""
        return all(
            self.allocatable(node, Mode.WHOLE) == CARDS[machine] == len(self.cards(node))
            and all(card.total and card.mode is None for card in self.cards(node))
            and self.allocatable(node, Mode.DRS) == sum(card.total for card in self.cards(node))
            for node, machine in self.machines.items()
        )

    def wait_for_rest(self) -> None:
        super().wait_for_rest()
        wait_until(self.published, PATIENCE, "all cards to be counted again", seen=self._slices)

    def wait_until_counted(self, node: str) -> int:
        """Return how many devices for instances the kubelet counts, once they are those of the
        cards that the agent tells of. Raises WaitTimeout."""

        def told() -> int:
            cards = [card for card in self.cards(node) if card.mode in {None, Mode.DRS}]
            return sum(card.total for card in cards if not card.problem)

        def agreed() -> list[int]:
            counted = self.allocatable(node, Mode.DRS)
            return [counted] if counted == told() else []

        [count] = wait_until(
            agreed,
            PATIENCE,
            f"the kubelet of {node} to count what its agent tells of",
            seen=lambda: f"{self.allocatable(node, Mode.DRS)} of {told()}",
        )
        return count

    def forget_counts(self, node: str) -> None:
        """Let the Node count no devices for instances until its kubelet does: while that is not
        there, what it counted before stays."""
        patch = json.dumps({"status": {"allocatable": {RESOURCES[Mode.DRS]: "0"}}})
        self.cluster.kubectl("patch", "node", node, "--subresource=status", f"--patch={patch}")

    def wait_for_ended(self, node: str) -> None:
        """Return when the node has instances of pods that are there and no others, and its agent
        tells so of all that is held. Raises WaitTimeout."""

        def pods() -> set[str]:
            found = self.cluster.get(
                "pods", "--all-namespaces", f"--field-selector=spec.nodeName={node}"
            )["items"]
            return {str(each["metadata"]["uid"]) for each in found}

        def told() -> list[Hold]:
            return [hold for card in self.cards(node) for hold in card.held]

        def made() -> set[str]:
            return {each.uuid for each in self.machine(node).instances()}

        def settled() -> bool:
            holds = told()
            instances = {hold.instance.uuid for hold in holds if hold.instance}
            return instances == made() and {hold.pod for hold in holds} <= pods()

        wait_until(
            settled,
            PATIENCE,
            f"{node} without anything of pods that have ended",
            seen=lambda: f"told {told()}\nmade {made()}\npods {pods()}",
        )

    def allocatable(self, node: str, mode: Mode) -> int:
        """How many devices of the mode the kubelet counts."""
        found = self.cluster.get("node", node)["status"]["allocatable"]
        return int(found.get(RESOURCES[mode], 0))

    def cards(self, node: str) -> tuple[NodeCard, ...]:
        """What the node's agent tells."""
        annotations = self.cluster.get("node", node)["metadata"].get("annotations", {})
        return parse_cards(annotations[ANNOTATION_CARDS]) if ANNOTATION_CARDS in annotations else ()

    def free(self, node: str) -> int:
        """How many of the node's cards nobody has."""
        return sum(card.mode is None for card in self.cards(node))

    def holds(self, pod: Object) -> Holds:
        """What the node tells that the pod's containers have."""
        found: Holds = defaultdict(list)
        for card in self.cards(pod["spec"]["nodeName"]):
            for hold in card.held:
                if hold.pod == pod["metadata"]["uid"]:
                    found[hold.container].append((str(card.address), hold.amount))
        return dict(found)

    def instances(self, pod: Object) -> set[str]:
        """The UUIDs of the instances that the node tells that the pod has."""
        return {
            hold.instance.uuid
            for card in self.cards(pod["spec"]["nodeName"])
            for hold in card.held
            if hold.instance and hold.pod == pod["metadata"]["uid"]
        }

    def told(self, pod: Object) -> Holds:
        """The same, once the node tells of all of the pod's containers with limits."""
        asked = limits_of(pod["spec"]).keys()

        def everything() -> Holds | None:
            found = self.holds(pod)
            return found if found.keys() == asked else None

        return wait_until(
            everything,
            PATIENCE,
            f"the Node to tell of pod {pod['metadata']['name']}",
            seen=lambda: f"{pod['metadata']['uid']} among {self.cards(pod['spec']['nodeName'])}",
        )

    def assert_has_what_it_asks(self, pod: Object) -> None:
        """The node tells of each container what its limit says, and the container sees that."""
        assert_has(self, pod, limits_of(pod["spec"]), self.told(pod))

    @contextmanager
    def without_agents(self) -> Iterator[None]:
        """Within it no node has an agent; afterwards each has one that is ready."""
        agents = (f"--namespace={DRIVER_NAMESPACE}", "patch", "daemonset", f"{RELEASE}-agent")
        self.cluster.kubectl(*agents, f"--patch={_NOWHERE}")
        try:
            for node in self.machines:
                wait_until(partial(self._has_no_agent, node), PATIENCE, f"no agent on {node}")
            yield
        finally:
            self.cluster.kubectl(*agents, f"--patch={_ANYWHERE}")
            for node in self.machines:
                wait_until(partial(self.agent_pods, node), PATIENCE, f"an agent on {node}")
            self.wait_for_agents()

    def _has_no_agent(self, node: str) -> bool:
        scope = (f"--namespace={DRIVER_NAMESPACE}", f"--field-selector=spec.nodeName={node}")
        selector = "--selector=app.kubernetes.io/component=agent"
        return not self.cluster.get("pods", *scope, selector)["items"]

    def _slices(self) -> str:
        return self.cluster.kubectl("get", "nodes", "--output=yaml")
