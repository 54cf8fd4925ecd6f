"""`make demo`: a real cluster with simulated GCUs, the chart, and pods that show what they got."""

from __future__ import annotations

import sys
import time

from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.processes import require_root
from tests.cluster.settings import Settings
from tests.cluster.teardown import sweep
from tests.e2e.installation import CHECKOUT, RELEASE, Installation

_NAME = "default"  # so that `make cluster-shell` and `make cluster-down` find it
_NAMESPACE = "demo"
_EXAMPLES = (
    "one-card",
    "two-cards-one-switch",
    "shared-slices",
    "drs-two-sizes",
    "deployment-with-shm",
)
_WORKLOADS = ("deployment/deployment-with-shm",)
_GRANTS = (
    "CLAIM:.metadata.name",
    "DEVICE:.status.allocation.devices.results[*].device",
    "CONSUMED:.status.allocation.devices.results[*].consumedCapacity",
    "MINOR:.status.devices[*].data.minor",
    "PROFILE:.status.devices[*].data.profile",
)
_SCOPE = f"--namespace={_NAMESPACE}"

_END = """
The cluster stays up:
  make cluster-shell    kubectl and helm for it; try `kubectl -n demo describe pod drs-size-3`
  make cluster-down     remove it
The examples are in examples/, each with a README. What is simulated: docs/user/simulated-machine.md
"""


class Demo:
    """Tells each step with the seconds since the beginning, and shows commands as typed."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def run(self) -> None:
        """Raises ClusterError where a step fails."""
        require_root()
        archive = driver_archive(Inputs(), self._tell)
        cluster = self._cluster()
        self._tell("loading the driver's image on both nodes")
        cluster.load_image(archive)
        installation = Installation(cluster)
        installation.install(report=self._tell)
        self._apply(cluster)
        self._show(cluster)
        print(_END, end="")

    def _cluster(self) -> Cluster:
        sweep()
        if state.load(_NAME) is None:
            self._tell("starting a Kubernetes cluster of two nodes")
            return Cluster.up(Settings(_NAME, nodes=2), owner=None, report=self._tell)
        self._tell(f"using the cluster {_NAME!r}, which is up")
        cluster = Cluster.attach(_NAME)
        cluster.wait_ready()
        return cluster

    def _apply(self, cluster: Cluster) -> None:
        self._tell(f"applying {', '.join(_EXAMPLES)}")
        cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--wait")
        cluster.kubectl("create", "namespace", _NAMESPACE)
        for name in _EXAMPLES:
            file = CHECKOUT / "examples" / name / f"{name}.yaml"
            cluster.kubectl("apply", _SCOPE, f"--filename={file}")
        self._tell("waiting for the pods")
        for workload in _WORKLOADS:
            cluster.wait("rollout", "status", _SCOPE, workload)
        cluster.wait("wait", _SCOPE, "--for=condition=Ready", "pods", "--all")
        self._tell("all pods run")

    def _show(self, cluster: Cluster) -> None:
        def show(*arguments: str) -> None:
            print(f"\n$ kubectl {' '.join(arguments)}", flush=True)
            print(cluster.kubectl(*arguments).rstrip(), flush=True)

        show("get", "resourceslices")
        show("get", "resourceclaims", _SCOPE)
        show("get", "resourceclaims", _SCOPE, f"--output=custom-columns={','.join(_GRANTS)}")
        show("get", "pods", _SCOPE, "--output=wide")
        for pod in cluster.kubectl("get", "pods", _SCOPE, "--output=name").split():
            show("logs", _SCOPE, pod)

    def _tell(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:6.1f} s] {line}", flush=True)


def main() -> int:
    """Run the demo; gives the exit status."""
    try:
        Demo().run()
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        print(f"`make cluster-shell` looks into the cluster; release {RELEASE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
