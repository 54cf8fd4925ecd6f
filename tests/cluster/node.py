"""A node: containerd, kubelet and kube-proxy in namespaces and folders of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import cgroups, configs
from tests.cluster.addresses import POD_SUBNET
from tests.cluster.context import Context
from tests.cluster.control_plane import ControlPlane
from tests.cluster.errors import CommandError
from tests.cluster.network import NETWORK, connect_node, connect_pods, enter, hold_namespaces
from tests.cluster.pki import PROXY, Authority, node_identity
from tests.cluster.processes import Process, run
from tests.cluster.versions import release
from tests.cluster.waiting import PATIENCE, wait_until

# What a node writes to. All of it is the node's own, at the paths of any node; programs and
# libraries are the machine's. Propagation is shared again at the end because pods ask for it.
_COVERED = ("run", "var/lib", "var/log")
_PREMADE = (
    "run/lock",
    "run/netns",
    "etc/cni/net.d",
    "etc/cdi",
    "run/cdi",
    "var/lib/gcu-simulator",
    "var/lib/kubelet",
    "var/log/pods",
)
_MOUNT = """
cd "$(dirname "$0")"
for folder in {covered}; do mount --bind "$folder" "/$folder"; done
mount -t overlay overlay -o lowerdir=/etc,upperdir="$PWD/etc",workdir="$PWD/etc.work" /etc
mount --make-rshared /
"""


class Node:
    """Node `number` (1, 2, …) of a cluster."""

    def __init__(self, number: int, context: Context) -> None:
        self.number = number
        self.name = context.settings.node_names()[number - 1]
        self.address = context.addresses.node(number)
        self._settings = context.settings
        self._addresses = context.addresses
        self._directory = context.directory / "nodes" / self.name
        self._pki = context.pki
        self._programs = context.programs
        self._table = context.processes

    def start(self, authority: Authority, control_plane: ControlPlane) -> None:
        """Start everything but the kubelet and the proxy, which need the sandbox image first.

        Raises ClusterError with the end of a component's log.
        """
        self.write_files(authority, control_plane)
        holder = hold_namespaces(
            self._table, self.name, setup=self._directory / "mount.sh", hostname=self.name
        )
        connect_node(self._table.get(NETWORK), holder, self.number, self._addresses)
        connect_pods(holder, self.number, self._settings.nodes, self._addresses)
        self.start_containerd()

    def write_files(self, authority: Authority, control_plane: ControlPlane) -> None:
        """Make the folders, certificates and configuration of this version's components."""
        for folder in (*_COVERED, *_PREMADE, "etc", "etc.work"):
            (self._directory / folder).mkdir(parents=True, exist_ok=True)
        control_plane.write_kubeconfig(
            authority, self._pki / f"{self.name}.kubeconfig", self.name, node_identity(self.name)
        )
        serving = authority.server(f"{self.name}-serving", (self.address,), (self.name,))
        kubelet = configs.kubelet(
            version=self._settings.kubernetes,
            address=self.address,
            cgroup_root=cgroups.kubelet_root(self._settings.name, self.name),
            authority=authority.certificate,
            serving=serving,
            overrides=self._settings.kubelet_config,
        )
        network = configs.pod_network(self._addresses.pods(self.number))
        files = {
            "mount.sh": _MOUNT.format(covered=" ".join(_COVERED)),
            "containerd.toml": configs.containerd(),
            "kubelet.json": json.dumps(kubelet, indent=2),
            "etc/cni/net.d/10-pods.conflist": json.dumps(network, indent=2),
        }
        for name, content in files.items():
            (self._directory / name).write_text(content)

    def start_containerd(self) -> None:
        """Start containerd; returns when it answers."""
        flags = [f"--config={self._directory / 'containerd.toml'}"]
        self._start("containerd", [*flags, *self._settings.extra_flags_of("containerd")])

        def answers() -> bool:
            self._table.check(self.component("containerd"))
            return bool(self.ctr("version"))

        wait_until(
            answers,
            PATIENCE,
            f"containerd of {self.name}",
            retry_on=(CommandError,),
            seen=lambda: self._table.tail(self.component("containerd")),
        )

    def start_kubelet(self) -> None:
        """Start the kubelet; does not wait until the node is ready."""
        flags = [
            f"--config={self._directory / 'kubelet.json'}",
            f"--kubeconfig={self._pki / self.name}.kubeconfig",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            "--v=2",
        ]
        self._start("kubelet", [*flags, *self._settings.flags("kubelet")])

    def stop_kubelet(self) -> None:
        """Stop the kubelet; containers go on running."""
        self._table.stop(self.component("kubelet"))

    def restart_kubelet(self) -> None:
        """Stop and start the kubelet; does not wait until the node is ready."""
        self.stop_kubelet()
        self.start_kubelet()

    def start_proxy(self) -> None:
        """Start kube-proxy, which makes service addresses reachable."""
        flags = [
            f"--kubeconfig={self._pki / 'kube-proxy'}.kubeconfig",
            f"--hostname-override={self.name}",
            f"--cluster-cidr={POD_SUBNET}",
            "--proxy-mode=nftables",
            # The connection tracking table's size is the machine's, and not ours to set.
            "--conntrack-max-per-core=0",
            *release(self._settings.kubernetes).proxy,
        ]
        self._start("kube-proxy", [*flags, *self._settings.flags("kube-proxy")])

    def stop_proxy(self) -> None:
        """Stop kube-proxy; the rules that it made stay."""
        self._table.stop(self.component("kube-proxy"))

    def load_image(self, archive: Path) -> None:
        """Import the images of an OCI or docker archive into containerd."""
        self.ctr("images", "import", "--local", str(archive.resolve()))

    def ctr(self, *arguments: str) -> str:
        """Run `ctr` in Kubernetes' containerd namespace, and give its output."""
        return self.run([str(self._programs / "ctr"), "--namespace=k8s.io", *arguments])

    def run(self, command: Sequence[str]) -> str:
        """Run a command on the node, as if logged in there, and give its output."""
        return run([*self.enter(), *command])

    def enter(self) -> list[str]:
        """The words to put before a command so that it runs on the node."""
        return enter(self._holder(), mounts=True)

    def host_path(self, path: str) -> Path:
        """Where a file that the node has below /run, /var/lib, /var/log or /etc really lies.

        Raises ValueError for other paths: those are the machine's own.
        """
        if path.startswith("/var/run/"):
            path = path.removeprefix("/var")  # a link on every system
        if not path.startswith(tuple(f"/{folder}/" for folder in (*_COVERED, "etc"))):
            raise ValueError(f"{path} is not among the folders that the node has for itself")
        return self._directory / path.removeprefix("/")

    def component(self, program: str) -> str:
        """The name of one of the node's processes in the cluster's process table and logs."""
        return f"{self.name}-{program}"

    def _holder(self) -> Process:
        return self._table.get(self.name)

    def _start(self, program: str, flags: Sequence[str]) -> None:
        command = [*self.enter(), str(self._programs / program), *flags]
        # containerd looks for its shim, the kubelet for mount, in PATH.
        path = f"{self._programs}:/usr/sbin:/sbin:{os.environ['PATH']}"
        self._table.start(self.component(program), command, {"PATH": path})


def write_proxy_kubeconfig(authority: Authority, control_plane: ControlPlane, pki: Path) -> None:
    """kube-proxy's identity is one for all nodes, as kubeadm has it."""
    control_plane.write_kubeconfig(authority, pki / "kube-proxy.kubeconfig", "kube-proxy", PROXY)
