"""The driver on a real cluster: the chart, installed by helm, with simulated GCUs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from controller.legacy_resources.decision_cache import TRANSLATE
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, DRIVER, RESOURCE_SHARED, pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.machine import SimulatedMachine
from tests.cluster.build import Report, silent
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError, WaitTimeout
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.node import Node
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, why_not_ready
from tests.e2e.page_steps import page_commands

CHECKOUT = Path(__file__).parents[2]
CHART = CHECKOUT / "charts" / "gcu-dra-driver"
RELEASE = "gcu-dra-driver"
LIMITS = f"{RELEASE}-limits"
SIMULATOR_ROOT = "/var/lib/gcu-simulator"

# What somebody else does to cards is told in half the time. Each look starts an `efsmi` for each
# card: twelve in a cluster, and with all clusters they would take half a processor at ten seconds.
LOOKS = {"inventoryInterval": 30, "reconcileInterval": 30}

# What the cluster's nodes are: one big one and one small one, all of whose cards take all modes.
MACHINES = ("s60-ecc-8", "s60-4")
CARDS = {"s60-ecc-8": 8, "s60-4": 4}


class Installation:
    """The release on one cluster, whose nodes have simulated machines.

    `told_at_first` are the events of its namespace when it was first installed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        names = [node.name for node in cluster.nodes]
        self.machines = dict(zip(names, MACHINES, strict=True))
        self.told_at_first: list[dict[str, Any]] = []

    def values(self, **changed: Any) -> dict[str, Any]:
        """The chart's values; `changed` replaces whole top-level keys."""
        # After a test with another device plugin, limits are soon claims again.
        delay = {"name": "GCU_LEGACY_RESOURCES_DELAY", "value": "1"}
        ours = {
            "simulation": {"enabled": True, "nodes": self.machines},
            "agent": LOOKS,
            "nodeLabels": {"enabled": True},
            "controller": {"extraEnv": [delay]},
            # The cluster's kube-scheduler is no pod, from which helm would read it.
            "schedulerVersion": self.cluster.release.version,
            **self.cluster.release.chart_values,
        }
        return {**ours, **changed}

    def install(self, values: Mapping[str, Any] | None = None, *, report: Report = silent) -> str:
        """`helm upgrade --install`; gives its notes. Returns when every card is published,
        and API servers treat limits as the controller has decided.

        Raises CommandError or WaitTimeout.
        """
        report(f"helm upgrade --install {RELEASE}")
        file = self.cluster.directory / "values.json"
        file.write_text(json.dumps(self.values() if values is None else values))
        try:
            output = self.cluster.helm(
                "upgrade",
                "--install",
                RELEASE,
                str(CHART),
                f"--namespace={DRIVER_NAMESPACE}",
                "--create-namespace",
                f"--values={file}",
                "--wait",
                # Agents are replaced on one node after the other.
                f"--timeout={len(self.machines) * PATIENCE:g}s",
            )
        except CommandError as error:
            if "context deadline exceeded" in error.output:
                pods = self.cluster.get("pods", f"--namespace={DRIVER_NAMESPACE}")["items"]
                raise WaitTimeout(f"{error}\n{why_not_ready(self.cluster, pods)}") from error
            raise
        report("agents and controller are ready; waiting for the cards of all nodes")
        wait_until(self.published, PATIENCE, "the cards of all nodes", seen=self._slices)
        wait_until(
            self._limits_are_heeded, PATIENCE, "limits treated as decided", retry_on=(CommandError,)
        )
        return output.partition("NOTES:")[2].strip()

    def _limits_are_heeded(self) -> bool:
        """Whether API servers treat limits as the controller has decided; true where it decides
        nothing. A pod that is made before keeps its limits."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        text = self.cluster.kubectl(
            "get", "serviceaccount", LIMITS, scope, "--ignore-not-found", "--output=json"
        )
        if not text.strip():
            return True
        decided = (json.loads(text)["metadata"].get("annotations") or {}).get(TRANSLATE)
        if decided != "true":
            return decided is not None
        tried = pod("tried", "default")
        tried["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE_SHARED: "1"}}
        made = self.cluster.kubectl(
            "create", "--dry-run=server", "--filename=-", "--output=json", stdin=json.dumps(tried)
        )
        return "resourceClaims" in json.loads(made)["spec"]

    @contextmanager
    def changed(self, **values: Any) -> Iterator[None]:
        """Within it the release has these values, afterwards its own again."""
        try:
            self.install(self.values(**values))
            yield
        finally:
            self.install()

    def restore(self) -> None:
        """Install it unless it is there with its own values, as after a test that failed while it
        was not. Raises CommandError or WaitTimeout."""
        found = self._release()
        if not found or found["info"]["status"] != "deployed" or found["config"] != self.values():
            self.install()

    def is_installed(self) -> bool:
        """Whether helm knows of the release."""
        return bool(self._release())

    def _release(self) -> dict[str, Any]:
        """What helm tells of it; nothing where there is none."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        try:
            told = self.cluster.helm("status", RELEASE, scope, "--output=json")
        except CommandError as error:
            if "release: not found" in error.output:
                return {}
            raise
        found: dict[str, Any] = json.loads(told)
        return found

    def uninstall(self, *flags: str) -> str:
        """`helm uninstall`, waiting for what it deletes; gives what it says. Raises CommandError,
        with the same, where it refuses."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        return self.cluster.helm("uninstall", RELEASE, scope, "--wait", *flags, both=True)

    def clear_nodes(self, *nodes: Node) -> None:
        """Run the page's commands that remove from nodes, or these alone, what an uninstall
        leaves."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        wait_until(lambda: not self.cluster.get("pods", scope)["items"], PATIENCE, "no pods")
        for program, *words in page_commands(CHECKOUT / "docs/user/uninstall.md", "What stays"):
            if program == "kubectl":
                self.cluster.kubectl(*words)
            else:
                for node in nodes or self.cluster.nodes:
                    node.run([program, *words])

    def published(self) -> bool:
        """Whether every node's pool has its cards, each in all modes."""
        found: Counter[str] = Counter()
        for each in self.slices():
            devices = each["spec"].get("devices", ())
            found[each["spec"]["pool"]["name"]] += sum(map(has_mode, devices))
        wanted = {pool_name(node): len(Mode) * CARDS[name] for node, name in self.machines.items()}
        return found == wanted

    def slices(self) -> list[dict[str, Any]]:
        """The driver's ResourceSlices."""
        selector = f"--field-selector=spec.driver={DRIVER}"
        found: list[dict[str, Any]] = self.cluster.get("resourceslices", selector)["items"]
        return found

    def allocator(self) -> str:
        """Which program allocates, by the controller's environment: `controller` or `scheduler`."""
        value = '{.spec.template.spec.containers[0].env[?(@.name=="GCU_ALLOCATOR")].value}'
        scope = f"--namespace={DRIVER_NAMESPACE}"
        name = f"{RELEASE}-controller"
        return self.cluster.kubectl("get", "deployment", name, scope, f"--output=jsonpath={value}")

    def devices(self, node: str) -> list[dict[str, Any]]:
        """The devices that the node publishes."""
        return [
            device
            for published in self.slices()
            if published["spec"]["pool"]["name"] == pool_name(node)
            for device in published["spec"].get("devices", ())
        ]

    def slice_counts(self, node: str) -> dict[str, int]:
        """By address, into how many slices each card of the node is cut, as published."""
        return {
            device["attributes"]["card"]["string"]: int(device["capacity"]["slices"]["value"])
            for device in self.devices(node)
            if "slices" in device["capacity"]
        }

    def machine(self, node: str) -> SimulatedMachine:
        """The simulated machine of a node, from outside."""
        return SimulatedMachine.open(self.cluster.node(node).host_path(SIMULATOR_ROOT))

    def minor(self, node: str, address: PciAddress) -> int:
        """The minor that the machine itself gives the card."""
        return self.machine(node).card(str(address)).minor

    def agent_pod(self, node: str) -> str:
        """The name of the agent's pod on a node."""
        [name] = self.agent_pods(node)
        return name

    def agent_pods(self, node: str) -> list[str]:
        """The names of the agent's pods on a node but for those that end: one, two during an
        update, none for a moment after a kill."""
        pods = self.cluster.get(
            "pods",
            f"--namespace={DRIVER_NAMESPACE}",
            "--selector=app.kubernetes.io/component=agent",
            f"--field-selector=spec.nodeName={node}",
        )["items"]
        return [str(pod["metadata"]["name"]) for pod in pods if not _is_ending(pod)]

    def wait_for_agents(self) -> None:
        """Return when every node has a ready agent. Raises WaitTimeout."""
        agents = f"daemonset/{RELEASE}-agent"
        patience = len(self.machines) * PATIENCE
        scope = f"--namespace={DRIVER_NAMESPACE}"
        self.cluster.wait("rollout", "status", scope, agents, timeout=patience)

    def cdi_files(self, node: Node) -> set[str]:
        """The names of the driver's CDI files on a node."""
        return {path.name for path in node.host_path("/var/run/cdi").glob(f"{DRIVER}*")}

    def traces(self, node: Node) -> set[str]:
        """What the driver has on a node, but for what pods of it that end still have."""
        kubelet = node.host_path("/var/lib/kubelet")
        folders = (kubelet / name for name in ("plugins", "plugins_registry", "device-plugins"))
        found = {str(path.relative_to(kubelet)) for each in folders for path in each.rglob("*gcu*")}
        return found | self.cdi_files(node)

    def wait_for_rest(self) -> None:
        """Return when no node has anything of a claim: no CDI file of ours, no DRS instance, no
        card in DRS mode. Raises WaitTimeout."""
        for node in self.cluster.nodes:
            wait_until(
                partial(self._is_at_rest, node),
                PATIENCE,
                f"{node.name} without prepared claims",
                seen=partial(self._left, node),
            )

    def _is_at_rest(self, node: Node) -> bool:
        return not self.cdi_files(node) and all(
            card.virtualization == "Disable" for card in self.machine(node.name).state().cards
        )

    def _left(self, node: Node) -> str:
        machine = self.machine(node.name)
        divided = {
            card.bdf: [one.profile for one in card.instances]
            for card in machine.state().cards
            if card.virtualization != "Disable"
        }
        return f"CDI files {sorted(self.cdi_files(node))}, cards in DRS mode {divided}"

    def _slices(self) -> str:
        return self.cluster.kubectl("get", "resourceslices")


def has_mode(device: Mapping[str, Any]) -> bool:
    """Whether the device is the card in one of its modes."""
    return device["attributes"][ATTR_TYPE]["string"] in set(Mode)


def _is_ending(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]
