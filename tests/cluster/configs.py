"""The configuration files of the components."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from tests.cluster.addresses import DNS_SERVICE
from tests.cluster.pki import KeyPair
from tests.cluster.versions import release

SANDBOX_IMAGE = "localhost/busybox:1"

# restrict_oom_score_adj: below a process that may not lower its score runc fails otherwise.
# [plugins."…opt"]: its default is a folder of the machine itself.
# stats_collect_period: the default asks each container's shim every second, which costs more than
# all else of an idle node. Nobody here looks at a rate of processors.
_CONTAINERD = """\
version = 3
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{sandbox}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  stats_collect_period = "1m"
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def containerd() -> str:
    """containerd's config.toml (version 3, containerd 2)."""
    return _CONTAINERD.format(sandbox=SANDBOX_IMAGE)


def pod_network(pods: IPv4Network) -> dict[str, Any]:
    """The CNI configuration of a node whose pods have addresses of `pods`.

    No address is rewritten on the way out: all nodes and the control plane have routes to all
    pods, and nothing else is reachable.
    """
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def kubelet(
    *,
    version: str,
    address: IPv4Address,
    cgroup_root: str,
    authority: Path,
    serving: KeyPair,
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    """A KubeletConfiguration; keys of `overrides` replace ours."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(address),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        # A pod without these gets a warning event about its DNS.
        "resolvConf": "",
        "clusterDomain": "cluster.local",
        "clusterDNS": [str(DNS_SERVICE)],
        # The disk is the machine's, and mostly full of other things.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    }
    return {**config, **release(version).kubelet, **overrides}


def kubeconfig(server: str, authority: Path, client: KeyPair) -> dict[str, Any]:
    """A kubeconfig with everything inside, so that it can be copied elsewhere."""

    def encoded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": encoded(authority)}
    user = {
        "client-certificate-data": encoded(client.certificate),
        "client-key-data": encoded(client.key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "gcu-dra", "cluster": cluster}],
        "users": [{"name": "gcu-dra", "user": user}],
        "contexts": [{"name": "gcu-dra", "context": {"cluster": "gcu-dra", "user": "gcu-dra"}}],
        "current-context": "gcu-dra",
    }
