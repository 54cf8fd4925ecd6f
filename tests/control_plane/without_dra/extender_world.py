"""The extender as its pod would run, and a kube-scheduler that asks it."""

from __future__ import annotations

import base64
import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import yaml

from dra_driver.kube.client import Client
from dra_driver.kube.resources import NODES, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED, ANNOTATION_CARDS, RESOURCE_CORE
from dra_driver.model.pci import PciAddress
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.network import NETWORK, enter
from tests.cluster.pki import Authority
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, why_unscheduled
from tests.control_plane.applied import applied
from tests.control_plane.driver import rendered
from tests.control_plane.legacy import asking, refusal
from tests.control_plane.mounted import MountedSecret
from tests.control_plane.program_process import ProgramProcess
from tests.control_plane.webhook_address import call_directly, webhooks_restored

SCHEDULER = "gcushare-scheduler"
SLICES = 6
NAME = f"{RELEASE}-extender"
SERVICE = f"{NAME}.{DRIVER_NAMESPACE}.svc"
_AS_BEFORE = ("--reuse-values", "--force-conflicts")
RELEASES_OWN = (NAME, f"{NAME}-client")
"""The Secrets of the extender and of its client."""
NONE: Mapping[str, Mapping[str, bytes]] = MappingProxyType({})


def card(number: int, mode: Mode | None = None, *held: int) -> NodeCard:
    """With six slices and DRS sizes 1, 3 and 6; pods that nobody knows hold so much of it."""
    return NodeCard(
        PciAddress(0, number, 0, 0),
        index=number,
        minor=number,
        slices=SLICES,
        profiles=("1g.6gb", "3g.20gb", "6g.40gb"),
        total=6,
        mode=mode,
        model="S60",
        memory_mib=42976,
        held=tuple(Hold(f"somebody-{n}", "main", amount) for n, amount in enumerate(held)),
    )


@contextmanager
def extender_world(
    cluster: Cluster,
    api: Client,
    kubeconfig: Path,
    folder: Path,
    secrets: Mapping[str, Mapping[str, bytes]] = NONE,
) -> Iterator[ExtenderWorld]:
    """With an extender and a kube-scheduler, and the rights that the chart gives to those; nothing
    of it is left afterwards. `kubeconfig` is the controller's.

    The certificates are the chart's, unless `secrets` has the data of the extender's Secret and of
    its client's.
    """
    made = [_tls_secret(name, data) for name, data in secrets.items()]
    with (
        applied(cluster, *made, *_for_its_own_scheduler(cluster, folder)),
        closing(
            ExtenderWorld(cluster, api, kubeconfig, folder, tuple(secrets) or RELEASES_OWN)
        ) as world,
    ):
        world.start_extender()
        world.start_scheduler()
        yield world


def _for_its_own_scheduler(cluster: Cluster, folder: Path) -> list[Object]:
    """What a release has otherwise if the chart is to run a kube-scheduler."""
    values = {"mode": "device-plugin", "extender": {"schedulerImage": "none"}}
    templates = ("extender/scheduler.yaml", "policy-events.yaml")
    return [made for name in templates for made in rendered(cluster, folder, name, values)]


class ExtenderWorld:
    """Files are written to `folder`, those of the extender's Secret and its client's among them.
    Accounts and rights are the chart's, and no others."""

    def __init__(
        self, cluster: Cluster, api: Client, kubeconfig: Path, folder: Path, secrets: Sequence[str]
    ) -> None:
        self.cluster = cluster
        self.api = api
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.ours, self.theirs = (self._mounted(name) for name in secrets)
        self.extender: ProgramProcess | None = None
        self.port = 0
        self._authority = Authority(folder)
        self._webhook = self._authority.server("webhook", (self.cluster.machine_address,))
        self._webhook_port = 0
        self._logs = 0

    def secret(self, name: str) -> Object:
        return self.cluster.get("secret", name, "--namespace", DRIVER_NAMESPACE)

    def upgrade(self) -> None:
        """`helm upgrade` with the values of the install, whatever else wrote its objects; the
        extender finds its Secret's files."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        self.cluster.helm("upgrade", RELEASE, str(CHART), scope, *_AS_BEFORE)
        self.ours.update(_files_of(self.secret(NAME)))

    def close(self) -> None:
        if SCHEDULER in self.cluster.processes.names():
            self.cluster.processes.end(SCHEDULER)
        self.end_extender()

    def start_extender(self) -> ProgramProcess:
        """Returns when it answers."""
        self._logs += 1
        process = self.extender = ProgramProcess(
            "controller.main",
            self._folder / f"extender-{self._logs}.log",
            f"--kubeconfig={self._kubeconfig}",
            f"--lease-namespace={DRIVER_NAMESPACE}",
            "--pod-name=replica-0",
            f"--extender-port={self.port}",
            f"--extender-certificate={self.ours / 'tls.crt'}",
            f"--extender-key={self.ours / 'tls.key'}",
            f"--extender-client-authority={self.ours / 'ca.crt'}",
            f"--webhook-certificate={self._webhook.certificate}",
            f"--webhook-key={self._webhook.key}",
            f"--webhook-port={self._webhook_port}",
            "--webhook-drain=0",
            "--http-port=0",
        )
        process.wait_for_log("serving kube-scheduler on port")
        self.port, self._webhook_port = (
            int(re.findall(rf"serving {what} on port (\d+)", process.log())[0])
            for what in ("kube-scheduler", "the admission webhook")
        )
        return process

    @contextmanager
    def called_webhook(self) -> Iterator[None]:
        """Within it the API server calls the extender's process for new pods. At its start there
        must be no node."""
        address, authority = self.cluster.machine_address, self._authority.certificate
        asked = asking("default", {RESOURCE_CORE: "10"})
        with webhooks_restored(self.api):
            call_directly(self.api, address, self._webhook_port, authority)
            wait_until(
                lambda: "no node has reported GCUs" in refusal(self.api, asked),
                PATIENCE,
                "the webhook called",
                seen=lambda: refusal(self.api, asked),
            )
            yield

    def end_extender(self) -> None:
        if self.extender is not None:
            self.extender.end()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """The extender takes connections and answers none, until the end."""
        assert self.extender is not None
        self.extender.suspend()
        try:
            yield
        finally:
            self.extender.signal(signal.SIGCONT)

    def start_scheduler(self) -> None:
        """The chart's, with its configuration; only addresses and files are this machine's."""
        data = self.cluster.get("configmap", NAME, "--namespace", DRIVER_NAMESPACE)["data"]
        config: dict[str, Any] = yaml.safe_load(data["scheduler.yaml"])
        [entry] = config["extenders"]
        path = urlsplit(entry["urlPrefix"]).path
        entry["urlPrefix"] = f"https://{self.cluster.machine_address}:{self.port}{path}"
        for key, file in (("caFile", "ca.crt"), ("certFile", "tls.crt"), ("keyFile", "tls.key")):
            entry["tlsConfig"][key] = str(self.theirs / file)
        config["clientConnection"] = {"kubeconfig": str(self._kubeconfig)}
        written = self._folder / "scheduler.yaml"
        written.write_text(yaml.safe_dump(config))
        program = str(self.cluster.programs / "kube-scheduler")
        network = self.cluster.processes.get(NETWORK)
        command = [*enter(network), program, f"--config={written}", "--secure-port=0", "--v=3"]
        command += self.cluster.settings.flags("kube-scheduler")
        self.cluster.processes.start(SCHEDULER, command)

    def node(self, name: str, *cards: NodeCard) -> None:
        """A node whose agent tells of these cards; its counts are those of free cards."""
        count = len(cards)
        totals = {Mode.WHOLE: count, Mode.SHARED: SLICES * count, Mode.DRS: 6 * count}
        capacity = {RESOURCES[mode]: str(total) for mode, total in totals.items()}
        # At once: the extender has a watch of its own, which may be behind that of kube-scheduler.
        annotations = {ANNOTATION_CARDS: render_cards(cards)}
        self.cluster.add_node_object(name, {"machine": name}, capacity, annotations)

    def tell(self, name: str, *cards: NodeCard) -> None:
        """What the node's agent would write."""
        body = {"metadata": {"annotations": {ANNOTATION_CARDS: render_cards(cards)}}}
        self.api.patch(NODES, name, body, subresource="status")

    def create(self, namespace: str, name: str, limits: Mapping[str, int], **spec: Any) -> None:
        """A pod for the chart's scheduler; `spec` has more fields of it."""
        made = pod(name, namespace, schedulerName=SCHEDULER, **spec)
        texts = {resource: str(amount) for resource, amount in limits.items()}
        made["spec"]["containers"][0]["resources"] = {"limits": texts}
        self.api.create(PODS, made)

    def pod(self, namespace: str, name: str) -> Object:
        return self.api.get(PODS, name, namespace=namespace)

    def is_ending(self, namespace: str, name: str) -> bool:
        """Whether somebody has deleted the pod; no kubelet is there to end it."""
        return "deletionTimestamp" in self.pod(namespace, name)["metadata"]

    def is_assigned(self, namespace: str, name: str) -> bool:
        """Whether the pod says that its node has told of it."""
        annotations = self.pod(namespace, name)["metadata"]["annotations"]
        return bool(annotations["enflame.com/gcu-assigned"] == "true")

    def bound(self, namespace: str, name: str, timeout: float = PATIENCE) -> str:
        """The node of the pod, once it has one."""
        return wait_until(
            lambda: str(self.pod(namespace, name)["spec"].get("nodeName") or ""),
            timeout,
            f"pod {name} bound",
            seen=lambda: self.reason(namespace, name),
        )

    def reason(self, namespace: str, name: str) -> str:
        """Why the pod has no node, as kube-scheduler last told, or ""."""
        return why_unscheduled(self.pod(namespace, name))

    def waits_because(self, namespace: str, name: str, words: str) -> None:
        """Return when the pod has no node for a reason with these words."""
        wait_until(
            lambda: words in self.reason(namespace, name),
            PATIENCE,
            f"{words!r} as the reason of {name}",
            seen=lambda: self.reason(namespace, name),
        )

    def taken(self, namespace: str, names: Sequence[str]) -> Counter[tuple[str, str]]:
        """How many slices the pods were placed on, by node and card; of bound pods alone."""
        found: Counter[tuple[str, str]] = Counter()
        for each in self.api.list(PODS, namespace=namespace).items:
            if each["metadata"]["name"] in names and each["spec"].get("nodeName"):
                limits = each["spec"]["containers"][0]["resources"]["limits"]
                card = each["metadata"]["annotations"][ANNOTATION_ASSIGNED]
                found[each["spec"]["nodeName"], card] += int(limits[RESOURCES[Mode.SHARED]])
        return found

    def _mounted(self, secret: str) -> MountedSecret:
        return MountedSecret(self._folder / secret, _files_of(self.secret(secret)))


def _files_of(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


def _tls_secret(name: str, files: Mapping[str, bytes]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": DRIVER_NAMESPACE},
        "data": {key: base64.b64encode(content).decode() for key, content in files.items()},
    }
