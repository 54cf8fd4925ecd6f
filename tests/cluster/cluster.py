"""A whole cluster: bring it up, use it, take it down."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from kubernetes import client, config

from tests.cluster import cgroups, diagnostics, state
from tests.cluster.addresses import Addresses, free_slot
from tests.cluster.build import Report, build_all, silent
from tests.cluster.calls import Calls
from tests.cluster.context import Context
from tests.cluster.control_plane import ControlPlane
from tests.cluster.errors import ClusterError, CommandError, WaitTimeout
from tests.cluster.images import busybox_archive
from tests.cluster.kernel import raise_limits
from tests.cluster.network import NETWORK, connect_machine, hold_namespaces, machine_routes
from tests.cluster.node import Node, write_proxy_kubeconfig
from tests.cluster.packages import install_missing
from tests.cluster.pki import API_SERVER_TO_KUBELET, Authority
from tests.cluster.processes import COLLECT_LESS, Process, require_root, run
from tests.cluster.settings import Settings
from tests.cluster.teardown import KEEPER, sweep, tear_down
from tests.cluster.versions import release
from tests.cluster.waiting import PATIENCE, wait_until

_CHECKOUT = Path(__file__).parents[2]


class Cluster:
    """A running cluster. Made by `up` or `attach`, never directly."""

    def __init__(self, found: state.State, programs: Path) -> None:
        self.name = found.name
        self.settings = found.settings
        self.release = release(found.settings.kubernetes)
        self.directory = found.directory
        self.programs = programs
        self.processes = found.processes()
        self._addresses = Addresses(found.slot)
        self.context = Context(
            self.settings, self._addresses, self.directory, programs, self.processes
        )
        self.control_plane = ControlPlane(self.context)
        numbers = range(1, self.settings.nodes + 1)
        self.nodes = tuple(Node(number, self.context) for number in numbers)

    @classmethod
    def up(cls, settings: Settings, *, owner: Process | None, report: Report = silent) -> Cluster:
        """Bring a new cluster up; returns when its nodes are ready.

        The cluster is removed when `owner` ends, however that ends; without an owner it stays
        until `down`. Programs and packages that are missing are made first.
        Raises ClusterError when there is such a cluster already or something does not start;
        what had started is removed.
        """
        require_root()
        install_missing(report)
        raise_limits(report)
        programs = build_all(settings.kubernetes, report)
        for name in sweep():
            report(f"removed {name}, whose owner had died")
        # Whoever starts it owns it until it is up: a half-started cluster serves nobody.
        found = _register(settings, owner or state.own_process())
        try:
            cluster = cls(found, programs)
            cluster._start(report)
            if owner is None:
                replace(found, owner=None).save()
                cluster.processes.stop(KEEPER)
        except BaseException:
            tear_down(settings.name)
            raise
        return cluster

    @classmethod
    def attach(cls, name: str) -> Cluster:
        """The running cluster of that name. Raises ClusterError when there is none."""
        found = state.load(name)
        if found is None:
            up = "make cluster-up"
            if name != state.DEFAULT:
                up = f"python -m tests.cluster up --name {name}"
            raise ClusterError(f"no cluster {name!r} is up; `{up}` makes one")
        return cls(found, build_all(found.settings.kubernetes, silent))

    def down(self) -> None:
        """Remove everything of the cluster; nothing happens when it is gone already."""
        tear_down(self.name)

    @property
    def kubeconfig(self) -> Path:
        """An administrator's, usable from the machine itself."""
        return self.control_plane.kubeconfig

    @property
    def machine_address(self) -> IPv4Address:
        """This machine's own, as the control plane and the nodes reach it."""
        return self._addresses.host

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError."""
        return {node.name: node for node in self.nodes}[name]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and give its output. Raises CommandError."""
        command = self._client("kubectl", arguments)
        return run(command, stdin=stdin, environment=self.environment())

    def wait(self, *arguments: str, timeout: float = PATIENCE) -> None:
        """Run `kubectl wait` or `kubectl rollout status`; returns when what it awaits is there.
        Raises WaitTimeout, and CommandError where there is nothing to wait for."""
        try:
            self.kubectl(*arguments, f"--timeout={timeout:g}s")
        except CommandError as error:
            if "timed out waiting" in error.output:
                raise WaitTimeout(str(error)) from None  # it has the same text
            raise

    def helm(self, *arguments: str, stdin: str | None = None, both: bool = False) -> str:
        """Run helm as administrator and give its output; with `both` streams, as what hooks say
        comes on the second one. Raises CommandError."""
        command = self._client("helm", arguments)
        return run(command, stdin=stdin, environment=self.environment(), both=both)

    @cached_property
    def _calls(self) -> Calls:
        return Calls(self.kubeconfig)

    def environment(self) -> dict[str, str]:
        """Variables for kubectl and helm.

        They remember for hours what the API server at an address serves, and another cluster
        may have had that address a moment ago: what they remember has to end with the cluster.
        kubectl 1.30 loses the output of an exec that answers at once over a WebSocket, as it reads
        before its streams are there (client-go 0.30.14, websocket.go: readDemuxLoop).
        """
        helm = {
            f"HELM_{kind}_HOME": str(self.directory / "helm" / kind.lower())
            for kind in ("CACHE", "CONFIG", "DATA")
        }
        kube = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.directory / "cache"),
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false",
        }
        return {**kube, **helm, **COLLECT_LESS}

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get … -o json`, parsed. Raises CommandError."""
        if Calls.knows(arguments[0]):
            return self._calls.get(*arguments)
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return found

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request to the API server; gives the answer. A PATCH is a merge patch. Raises
        CommandError, with kubectl's words."""
        return self._calls.call(method, path, None if body is None else dict(body))

    def execute(self, namespace: str, pod: str, *command: str, container: str = "") -> str:
        """Run a command in a pod's container, the first one unless named; gives its output. Raises
        CommandError."""
        return self._calls.execute(namespace, pod, container, *command)

    def end_pod(self, namespace: str, name: str) -> None:
        """Delete the pod at once, where no kubelet would confirm its end. Raises CommandError."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self.call("DELETE", path, {"gracePeriodSeconds": 0})

    def delete_pods(self, namespace: str, *names: str) -> None:
        """`kubectl delete pod`: returns when they are gone. Raises CommandError, WaitTimeout."""
        pods = [f"/api/v1/namespaces/{namespace}/pods/{name}" for name in names]
        left = {path: str(self.call("DELETE", path)["metadata"]["uid"]) for path in pods}

        def gone() -> bool:
            for path, uid in [*left.items()]:
                try:
                    found = self.call("GET", path)
                except CommandError as error:
                    if "(NotFound)" not in error.output:
                        raise
                    del left[path]
                else:
                    if found["metadata"]["uid"] != uid:
                        del left[path]
            return not left

        wait_until(gone, PATIENCE, f"the end of {', '.join(names)}", seen=lambda: str(sorted(left)))

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """`kubectl apply --server-side` of objects given as dicts. Raises CommandError."""
        for wanted in objects:
            self._calls.apply(wanted)

    def client_configuration(self) -> client.Configuration:
        """The Python client's configuration, as administrator from the machine itself."""
        configuration = client.Configuration()
        config.load_kube_config(str(self.kubeconfig), client_configuration=configuration)
        return configuration

    def load_image(self, archive: Path) -> None:
        """Import the images of an OCI archive on every node."""
        self._on_each_node(lambda node: node.load_image(archive))

    def wait_ready(self, timeout: float = PATIENCE) -> None:
        """Return when every node with a kubelet is Ready.

        Raises WaitTimeout, and ClusterError at once where a kubelet has ended.
        """
        for node in self.nodes:
            wait_until(
                partial(self._ready, node),
                timeout,
                f"{node.name} to be ready",
                seen=partial(self.processes.tail, node.component("kubelet")),
                retry_on=(CommandError,),
                interval=0.3,
            )

    def add_node_object(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] = {},
        annotations: Mapping[str, str] = {},
    ) -> None:
        """Make a Ready Node that no kubelet stands behind: pods are bound to it and never run.

        It stays Ready only in a cluster with `keep_nodes_ready`.
        """
        resources = {"cpu": "64", "memory": "256Gi", "pods": "110", **capacity}
        metadata = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": annotations,
        }
        nodes = "/api/v1/nodes"
        self.call("POST", nodes, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        ready = {"type": "Ready", "status": "True", "reason": "Declared"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        self.call("PATCH", f"{nodes}/{name}/status", {"status": status})

        def untainted() -> bool:
            return not self.get("node", name)["spec"].get("taints")

        wait_until(untainted, PATIENCE, f"node {name} without the not-ready taint")

    def diagnostics(self, *namespaces: str) -> str:
        """What a person would look for after a failure, as text."""
        return diagnostics.collect(self, namespaces)

    def _start(self, report: Report) -> None:
        started = time.monotonic()

        def tell(what: str) -> None:
            report(f"{self.name}: {what} ({time.monotonic() - started:.1f} s)")

        self.guard()
        cgroups.create(self.name, self.settings.node_names())
        network = hold_namespaces(self.processes, NETWORK)
        connect_machine(network, self._addresses)
        authority = Authority(self.directory / "pki")
        self.control_plane.start(authority)
        self.kubectl(
            "create",
            "clusterrolebinding",
            "kube-apiserver-kubelet-client",
            "--clusterrole=system:kubelet-api-admin",
            f"--user={API_SERVER_TO_KUBELET.user}",
        )
        tell(f"control plane {self.settings.kubernetes} is ready at {self.control_plane.server}")
        if not self.nodes:
            return
        write_proxy_kubeconfig(authority, self.control_plane, self.directory / "pki")
        sandbox = busybox_archive()

        def start_node(node: Node) -> None:
            node.start(authority, self.control_plane)
            node.load_image(sandbox)
            node.start_kubelet()
            node.start_proxy()
            tell(f"{node.name} has started")

        self._on_each_node(start_node)
        self.wait_ready()
        tell("all nodes are ready")

    def guard(self) -> None:
        """Start what removes the cluster when its owner dies."""
        keeper = [sys.executable, "-m", "tests.cluster.keeper", self.name]
        self.processes.start_outside(KEEPER, ["env", f"--chdir={_CHECKOUT}", *keeper])

    def _on_each_node(self, action: Callable[[Node], None]) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self.nodes))) as pool:
            list(pool.map(action, self.nodes))

    def _ready(self, node: Node) -> bool:
        self.processes.check(node.component("kubelet"))
        conditions = self.get("node", node.name)["status"].get("conditions", ())
        # The condition outlives the kubelet that wrote it; its own answer does not.
        self.kubectl("get", "--raw", f"/api/v1/nodes/{node.name}/proxy/healthz")
        return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)

    def _client(self, program: str, arguments: tuple[str, ...]) -> list[str | Path]:
        return [self.programs / program, *arguments]


def _register(settings: Settings, owner: Process) -> state.State:
    with state.registry_lock():
        directory = state.run_directory(settings.name)
        if directory.exists():
            raise ClusterError(
                f"a cluster {settings.name!r} is up already; "
                f"`python -m tests.cluster down --name {settings.name}` removes it"
            )
        known = [found for name in state.names() if (found := state.load(name))]
        slot = free_slot((other.slot for other in known), machine_routes())
        found = state.State(settings, slot, owner)
        for folder in ("processes", "log", "pki"):
            (directory / folder).mkdir(parents=True)
        directory.chmod(0o700)
        found.save()
    return found
