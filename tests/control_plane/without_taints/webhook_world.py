"""A controller whose webhook the API server calls, and nodes with hidden slices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import CAPACITY_SLICES, CLASS_SHARED, DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE, temporary_namespace
from tests.cluster.pki import Authority
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import events_about
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.webhook_address import call_directly, webhooks_restored

OTHER_CLASS: Final = "nic.example.com"
PLAIN: Final = "plain"
GATED: Final = "gated"  # a namespace whose pods get the scheduling gate
_PORT: Final = re.compile(r"serving the admission webhook on port (\d+)")


@contextmanager
def webhook_world(
    cluster: Cluster, api: Client, kubeconfig: Path, folder: Path
) -> Iterator[WebhookWorld]:
    """With a controller; nothing of it is left afterwards. `kubeconfig` is the controller's."""
    gate = {f"{DRIVER}/scheduling-gate": "enabled"}
    with (
        webhooks_restored(api),
        temporary_namespace(cluster, PLAIN),
        temporary_namespace(cluster, GATED, gate),
        closing(WebhookWorld(cluster, api, kubeconfig, folder)) as world,
    ):
        world.start_controller()
        yield world


class WebhookWorld:
    """`folder` is for certificates and logs."""

    def __init__(self, cluster: Cluster, api: Client, kubeconfig: Path, folder: Path) -> None:
        self.cluster = cluster
        self.api = api
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._controllers: list[ControllerProcess] = []
        self._started = 0
        self._nodes: list[str] = []
        self._authority = Authority(folder)
        self._pair = self._authority.server("webhook", (self.cluster.machine_address,))
        self.api.create(DEVICE_CLASSES, _device_class(OTHER_CLASS))

    def start_controller(self) -> None:
        """It leads, and API servers call it: the configuration of the chart, with its address."""
        self._started += 1
        log = self._folder / f"controller-{self._started}.log"
        process = ControllerProcess(
            self._kubeconfig,
            log,
            f"--lease-namespace={DRIVER_NAMESPACE}",
            "--mode=dra",
            f"--webhook-certificate={self._pair.certificate}",
            f"--webhook-key={self._pair.key}",
            "--webhook-port=0",
            "--webhook-drain=0",
            "--webhook-scheduler-names=gcushare-scheduler",
        )
        self._controllers.append(process)
        process.wait_for_log("leads")
        found = _PORT.search(process.log())
        assert found is not None
        self._direct(int(found[1]))

    def stop_controller(self) -> None:
        self._controllers.pop().end()

    def close(self) -> None:
        for controller in self._controllers:
            controller.end()
            print(controller.log())
        for node in self._nodes:
            self.api.delete(RESOURCE_SLICES, hidden_name(node))
            self.api.delete(NODES, node)
        self.api.delete(DEVICE_CLASSES, OTHER_CLASS)

    def add_node(self, name: str, *devices: Object) -> None:
        """A node without kubelet, with the slice that its agent would publish."""
        self.cluster.add_node_object(name, {}, {})
        self._nodes.append(name)
        pool = {"name": f"{DRIVER}/{name}", "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": DRIVER,
            "nodeSelector": {"nodeSelectorTerms": [{}]},
            "pool": pool,
            "devices": list(devices),
        }
        metadata = {"name": hidden_name(name)}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        self.api.create(RESOURCE_SLICES, {**kind, "metadata": metadata, "spec": spec})

    def allocated(self, namespace: str, name: str) -> Object:
        """The claim, once it is allocated."""

        def find() -> Object | None:
            found = self.api.get(RESOURCE_CLAIMS, name, namespace=namespace)
            return found if allocation(found) is not None else None

        found = wait_until(find, PATIENCE, f"claim {name} allocated")
        assert found is not None
        return found

    def bound(self, namespace: str, name: str) -> Object:
        """The pod, once it is bound."""

        def find() -> Object | None:
            found = self.api.get(PODS, name, namespace=namespace)
            return found if found["spec"].get("nodeName") else None

        found = wait_until(find, PATIENCE, f"pod {name} bound")
        assert found is not None
        return found

    def wait_for_event(self, namespace: str, name: str, words: str) -> None:
        """Return when an event of the driver about the object has these words."""
        wait_until(
            lambda: any(words in each for each in events_about(self.api, namespace, name)),
            PATIENCE,
            f"{name} told {words!r}",
            seen=lambda: str(events_about(self.api, namespace, name)),
        )

    def end(self, namespace: str, name: str) -> None:
        """Delete the pod at once: there is no kubelet to confirm its end."""
        scope = ("--namespace", namespace, "--grace-period=0", "--force")
        self.cluster.kubectl("delete", "pod", name, *scope)

    def _direct(self, port: int) -> None:
        address, authority = self.cluster.machine_address, self._authority.certificate
        call_directly(self.api, address, port, authority)
        wait_until(self._is_called, PATIENCE, "the webhook called", retry_on=(KubeError,))

    def _is_called(self) -> bool:
        """API servers take a moment to learn of an address."""
        exactly = {
            "deviceClassName": CLASS_SHARED,
            "capacity": {"requests": {CAPACITY_SLICES: "2"}},
        }
        claim = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": "is-the-webhook-called", "namespace": PLAIN},
            "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}},
        }
        made = self.api.create(RESOURCE_CLAIMS, claim, dry_run=True)
        return "config" in made["spec"]["devices"]


def _device_class(name: str) -> Object:
    expression = f'device.driver == "{name}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
