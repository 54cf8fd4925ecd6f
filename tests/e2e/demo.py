"""`make demo`: a real cluster with simulated GCUs, the chart, and pods that show what they got.

On a Kubernetes without DRA the pods ask by limits, and the device plugin serves them.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.processes import require_root
from tests.cluster.reuse import up_or_attach
from tests.cluster.settings import Settings
from tests.cluster.versions import RELEASES, chosen_kubernetes, release
from tests.e2e.installation import CHECKOUT, RELEASE, Installation
from tests.e2e.without_dra import OldInstallation

_NAME = state.DEFAULT  # so that `make cluster-shell` and `make cluster-down` find it
_NAMESPACE = "demo"
_SCOPE = f"--namespace={_NAMESPACE}"
_GRANTS = (
    "CLAIM:.metadata.name",
    "DEVICE:.status.allocation.devices.results[*].device",
    "CONSUMED:.status.allocation.devices.results[*].consumedCapacity",
    "MINOR:.status.devices[*].data.minor",
    "PROFILE:.status.devices[*].data.profile",
)
_COUNTS = (
    "NODE:.metadata.name",
    "CARDS:.status.allocatable.enflame\\.com/gcu",
    "SLICES:.status.allocatable.enflame\\.com/shared-gcu",
    "DRS:.status.allocatable.enflame\\.com/drs-gcu",
)


@dataclass(frozen=True, slots=True)
class _Scenario:
    """What the demo shows: these examples, then what these kubectl commands print. `described` is
    a pod that is worth a look."""

    examples: tuple[str, ...]
    workloads: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    described: str


_BY_CLAIMS = _Scenario(
    examples=(
        "one-card",
        "two-cards-one-switch",
        "shared-slices",
        "drs-two-sizes",
        "deployment-with-shm",
    ),
    workloads=("deployment/deployment-with-shm",),
    commands=(
        ("get", "resourceslices"),
        ("get", "resourceclaims", _SCOPE),
        ("get", "resourceclaims", _SCOPE, f"--output=custom-columns={','.join(_GRANTS)}"),
    ),
    described="drs-size-3",
)
_BY_LIMITS = _Scenario(
    examples=("gcushare",),
    workloads=("deployment/gcushare-replicas",),
    commands=(("get", "nodes", f"--output=custom-columns={','.join(_COUNTS)}"),),
    described="gcushare-drs-3",
)

_END = """
The cluster stays up:
  make cluster-shell    kubectl and helm for it; try
                          kubectl gcu inspect
                          kubectl gcu view    (a page, in your browser)
                          kubectl -n demo describe pod {described}
  make cluster-down     remove it
The examples are in examples/, each with a README. What is simulated: docs/user/simulated-machine.md
"""


class Demo:
    """Tells each step with the seconds since the beginning, and shows commands as typed."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def run(self, kubernetes: str) -> None:
        """Raises ClusterError where a step fails."""
        has_dra = release(kubernetes).dra
        require_root()
        archive = driver_archive(Inputs(), self._tell)
        cluster = up_or_attach(Settings(_NAME, kubernetes=kubernetes, nodes=2), self._tell)
        self._tell("loading the driver's image on both nodes")
        cluster.load_image(archive)
        scenario = _BY_CLAIMS if has_dra else _BY_LIMITS
        self._installation(cluster).install(report=self._tell)
        self._apply(cluster, scenario)
        self._show(cluster, scenario)
        print(_END.format(described=scenario.described), end="")

    def _installation(self, cluster: Cluster) -> Installation:
        if cluster.release.dra:
            return Installation(cluster)
        self._tell(f"Kubernetes {cluster.settings.kubernetes} has no DRA: pods ask by limits")
        without_dra = OldInstallation(cluster)
        without_dra.load_scheduler()
        return without_dra

    def _apply(self, cluster: Cluster, scenario: _Scenario) -> None:
        self._tell(f"applying {', '.join(scenario.examples)}")
        cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--wait")
        cluster.kubectl("create", "namespace", _NAMESPACE)
        for name in scenario.examples:
            file = CHECKOUT / "examples" / name / f"{name}.yaml"
            cluster.kubectl("apply", _SCOPE, f"--filename={file}")
        self._tell("waiting for the pods")
        for workload in scenario.workloads:
            cluster.wait("rollout", "status", _SCOPE, workload)
        cluster.wait("wait", _SCOPE, "--for=condition=Ready", "pods", "--all")
        self._tell("all pods run")

    def _show(self, cluster: Cluster, scenario: _Scenario) -> None:
        def show(*arguments: str) -> None:
            print(f"\n$ {shlex.join(['kubectl', *arguments])}", flush=True)
            print(cluster.kubectl(*arguments).rstrip(), flush=True)

        for command in scenario.commands:
            show(*command)
        show("get", "pods", _SCOPE, "--output=wide")
        for pod in cluster.kubectl("get", "pods", _SCOPE, "--output=name").split():
            show("logs", _SCOPE, pod, "--all-containers", "--prefix")

    def _tell(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:6.1f} s] {line}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; gives the exit status."""
    try:
        parser = argparse.ArgumentParser(prog="python -m tests.e2e.demo", description=__doc__)
        parser.add_argument(
            "--kubernetes",
            default=chosen_kubernetes(),
            metavar="VERSION",
            help=f"one of {', '.join(RELEASES)} (default: %(default)s)",
        )
        Demo().run(parser.parse_args(arguments).kubernetes)
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        print(f"`make cluster-shell` looks into the cluster; release {RELEASE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
