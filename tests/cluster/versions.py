"""Which programs the cluster is made of, at which versions, and how each is built.

A version is a folder `programs/<name>/<version>/` with the go.mod and go.sum that pin every
module it is made of; another version is another folder and another line in the table.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.errors import ClusterError
from tests.cluster.stand_ins import APIEXTENSIONS_API, StandIn

SOURCES = Path(__file__).parent / "programs"

DEFAULT_KUBERNETES = "1.37.2"
WITHOUT_TAINTS = "1.34"  # the first minor version that serves resource.k8s.io/v1
WITHOUT_DRA = "1.34-without-dra"
WITH_GROUPS = (1, 37)  # the first minor version with PodGroups of scheduling.k8s.io/v1beta1

CHOICE = "GCU_DRA_KUBERNETES"
"""The environment variable for the version of those fixtures that name none; the Makefile sets it
from K8S."""

_CONTAINERD_VERSION = "2.4.2"
_HELM_VERSION = "4.3.1"

COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)
EMULATING = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
"""The components that can play an older version."""


_NEWEST = DEFAULT_KUBERNETES
_CGROUP_V1: Mapping[str, Any] = {"failCgroupV1": False}


@dataclass(frozen=True, slots=True)
class Release:
    """What differs from one Kubernetes to another.

    `version` is that of its programs. With `emulates` its control plane plays an older minor
    version, by ``--emulated-version``; `flags` are for its components, by their names. `kubelet`
    are fields that its KubeletConfiguration needs and others' do not know; `proxy` are flags that
    its kube-proxy needs. `dra` is whether it serves resource.k8s.io, and `drops_taints` whether its
    API server then drops taints and tolerations of devices. `toolchain` is the Go that it needs, if
    the machine's may be older, and `stand_ins` are for its modules that cannot be had.
    """

    version: str
    emulates: str = ""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    proxy: tuple[str, ...] = ()
    dra: bool = True
    drops_taints: bool = False
    toolchain: str = ""
    stand_ins: tuple[StandIn, ...] = ()

    @property
    def minor(self) -> str:
        """The minor version that users of its API meet, such as ``1.34``."""
        return self.emulates or ".".join(self.version.split(".")[:2])

    @property
    def is_final(self) -> bool:
        """Whether it is none of the versions that come before a minor one."""
        return "-" not in self.version

    @property
    def chart_values(self) -> Mapping[str, str]:
        """Values that the chart needs: helm sees only the version of the programs."""
        return {"kubernetesVersion": f"{self.emulates}.0"} if self.emulates else {}


def _emulated(minor: str, *gates: str, served: str = "") -> Mapping[str, tuple[str, ...]]:
    """Flags by which the newest control plane plays a minor version; three back are allowed."""
    flags = (f"--emulated-version=kube={minor}", *(f"--feature-gates={gate}" for gate in gates))
    of_server = (f"--runtime-config={served}",) if served else ()
    return {name: (*flags, *of_server) if name == "kube-apiserver" else flags for name in EMULATING}


# The first is locked from 1.35 on, and the others depend on it. Without it the API is served all
# the same.
_DRA_OFF = tuple(
    f"{gate}=false"
    for gate in (
        "DynamicResourceAllocation",
        "DRAAdminAccess",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
    )
)

RELEASES: Mapping[str, Release] = {
    _NEWEST: Release(_NEWEST, kubelet=_CGROUP_V1),
    WITHOUT_TAINTS: Release(
        _NEWEST, "1.34", _emulated("1.34"), kubelet=_CGROUP_V1, drops_taints=True
    ),
    WITHOUT_DRA: Release(
        _NEWEST,
        "1.34",
        _emulated("1.34", *_DRA_OFF, served="resource.k8s.io/v1=false"),
        kubelet=_CGROUP_V1,
        dra=False,
    ),
    # Its DRA is alpha, off, and of a kind that exists no more; its nftables are alpha, too.
    "1.30.14": Release("1.30.14", proxy=("--feature-gates=NFTablesProxyMode=true",), dra=False),
    # Its kubelet allows cgroup v1 by default.
    "1.34.4": Release("1.34.4", drops_taints=True),
    "1.35.4": Release("1.35.4", kubelet=_CGROUP_V1, drops_taints=True),
    "1.36.3": Release("1.36.3", kubelet=_CGROUP_V1),
    "1.38.0-beta.0": Release(
        "1.38.0-beta.0", kubelet=_CGROUP_V1, toolchain="go1.27.3", stand_ins=(APIEXTENSIONS_API,)
    ),
}
"""By the name that K8S= takes. One without a patch number is played by the newest version."""

REAL: Sequence[str] = tuple(sorted({each.version for each in RELEASES.values() if each.is_final}))
"""The versions that are played by none but themselves, oldest first."""

PRE_RELEASES: Sequence[str] = tuple(
    sorted({each.version for each in RELEASES.values() if not each.is_final})
)
"""What is built and tested only where somebody asks for it by K8S=."""


@dataclass(frozen=True, slots=True)
class Program:
    """One `go build`: packages of the modules that one go.mod pins."""

    name: str
    version: str
    packages: tuple[str, ...]
    linker_flags: str = "-s -w"
    aliases: tuple[str, ...] = ()
    """Names to link to the single binary of the build, which looks at the name it is called by."""
    home: Path | None = None
    """Where the folder `name` lies; SOURCES unless the cluster itself does not need it."""
    toolchain: str = ""
    """The version of Go, such as ``go1.27.3``; that of the machine if there is none."""
    stand_ins: tuple[StandIn, ...] = ()

    def sources(self) -> Mapping[str, Path]:
        """The files of the build by their places in the folder where it is made: go.mod, go.sum,
        any main.go, and what stands in for modules."""
        shared = (self.home or SOURCES) / self.name
        own = shared / self.version
        files = sorted(file for file in own.rglob("*") if file.is_file())
        return {
            **{file.name: file for file in sorted(shared.glob("*.go"))},
            **{file.relative_to(own).as_posix(): file for file in files},
        }

    def module_file(self, version: str) -> Path:
        """The go.mod of another version of it."""
        return (self.home or SOURCES) / self.name / version / "go.mod"

    def key(self) -> str:
        """`name-version-hash`; the hash covers all that decides what is built."""
        digest = hashlib.sha256()
        for part in (*self.packages, self.linker_flags, *self.aliases):
            digest.update(part.encode() + b"\0")
        for name, source in self.sources().items():
            digest.update(name.encode() + b"\0" + source.read_bytes() + b"\0")
        if self.toolchain or self.stand_ins:
            digest.update(repr((self.toolchain, self.stand_ins)).encode())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"


def release(version: str) -> Release:
    """What is particular to a Kubernetes version. Raises ClusterError for one that has no go.mod
    here."""
    found = RELEASES.get(version)
    if found is None:
        raise ClusterError(
            f"Kubernetes {version} is not among the versions the test cluster can build "
            f"({', '.join(RELEASES)}); add tests/cluster/programs/kubernetes/{version}/ with "
            "go.mod, go.sum and components.go, and a line in tests/cluster/versions.py"
        )
    return found


def chosen_kubernetes() -> str:
    """The version that $GCU_DRA_KUBERNETES names, else the default one. Raises ClusterError for one
    that has no go.mod here."""
    version = os.environ.get(CHOICE) or DEFAULT_KUBERNETES
    release(version)  # raises for a version that is not there
    return version


def chosen_with_dra() -> str:
    """The same. Raises ClusterError also for a version without DRA."""
    version = chosen_kubernetes()
    if not release(version).dra:
        served = ", ".join(name for name, each in RELEASES.items() if each.dra)
        raise ClusterError(
            f"Kubernetes {version} has no DRA, which this test needs; choose one of {served}. "
            "Tests without DRA run on their own cluster whatever is chosen"
        )
    return version


def chosen_without_taints() -> str:
    """The chosen version if its server drops device taints, else the newest one, which plays the
    oldest that does. Raises ClusterError for one that has no go.mod here."""
    version = chosen_kubernetes()
    return version if release(version).drops_taints else WITHOUT_TAINTS


def chosen_with_groups() -> str:
    """The chosen version if it has groups of pods, else the newest one. Raises ClusterError for
    one that has no go.mod here."""
    version = chosen_kubernetes()
    major, minor = map(int, release(version).minor.split("."))
    return version if (major, minor) >= WITH_GROUPS else DEFAULT_KUBERNETES


def chosen_without_dra() -> str:
    """The chosen version if it has no DRA, else the newest one, which plays one that has none.
    Raises ClusterError for one that has no go.mod here."""
    version = chosen_kubernetes()
    return WITHOUT_DRA if release(version).dra else version


def programs(kubernetes: str = DEFAULT_KUBERNETES) -> tuple[Program, ...]:
    """Everything a cluster of that Kubernetes version runs.

    Raises ClusterError for a version that has no go.mod here.
    """
    return (
        _kubernetes(release(kubernetes)),
        Program(
            name="containerd",
            version=_CONTAINERD_VERSION,
            packages=tuple(
                f"github.com/containerd/containerd/v2/cmd/{command}"
                for command in ("containerd", "containerd-shim-runc-v2", "ctr")
            ),
        ),
        Program(
            name="helm",
            version=_HELM_VERSION,
            packages=("helm.sh/helm/v4/cmd/helm",),
            linker_flags=f"-s -w -X helm.sh/helm/v4/internal/version.version=v{_HELM_VERSION}",
        ),
    )


def _kubernetes(wanted: Release) -> Program:
    return Program(
        name="kubernetes",
        version=wanted.version,
        packages=(".",),
        linker_flags=_flags(wanted.version),
        aliases=COMPONENTS,
        toolchain=wanted.toolchain,
        stand_ins=wanted.stand_ins,
    )


def _flags(version: str) -> str:
    """For the linker: kubectl and the components refuse to work with, or misjudge, a peer without a
    version."""
    major, minor = version.split(".")[:2]
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values.items()
    ]
    return " ".join(["-s -w", *flags])


SCHEDULER_THAT_FORGETS = Program("kube-scheduler", "1.36.1", (".",), _flags("1.36.1"))
"""It allocates a card in two modes (kubernetes#139034): a test shows it, on a newer server."""

DEVICE_METADATA = "device-metadata"
DRA_ALLOCATOR = "dra-allocator"
FILTER_PLUGINS = "filter-plugins"
PARTS = Program(
    "kubernetes-parts",
    "1.37.2",
    (".",),
    aliases=(DEVICE_METADATA, DRA_ALLOCATOR, FILTER_PLUGINS),
)
"""Parts of the newest Kubernetes alone: what its allocator takes of a node, which nodes the filters
of kube-scheduler refuse, and what a container reads of device metadata."""
