"""Versions: of the server, of kubelets and container runtimes, of the driver's programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from controller.cache.keys import full_name
from controller.cache.pods import is_done
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.container_runtime import KUBELET_TAKES_CDI_NAMES, Cdi, cdi_of
from dra_driver.kube.preflight import OLDEST, OLDEST_VISIBLE
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import ANNOTATION_SCHEDULER_VERSION
from dra_driver.version import VERSION
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.cluster.driver_pods import environment
from kubectl_gcu.inventory.views import NodeView, ServedBy

_VERSION: Final = r"v?([0-9]+\.[0-9]+\.[0-9]+)"
_SCHEDULER_IMAGE: Final = re.compile(rf"(?:^|/)kube-scheduler:{_VERSION}")
NEWEST: Final = (1, 37)
"""The newest version of Kubernetes that README.md lists as tested."""

UNTESTED_SERVER: Final = Check(
    "untested-server", "Kubernetes is newer than the versions with which the driver was tested"
)
SERVER_TOO_OLD: Final = Check(
    "server-too-old", "the chart's `mode` or `sliceForm` needs a newer API server"
)
OLD_KUBELET: Final = Check(
    "old-kubelet", "a node offers cards for claims, and its kubelet is older than 1.34"
)
NO_CDI: Final = Check(
    "no-cdi",
    "a node offers cards by CDI, which its container runtime does not know: containerd before 1.7, "
    "CRI-O before 1.23, Docker before 25",
)
MIXED_VERSIONS: Final = Check(
    "mixed-versions", "agents and controllers are of several versions of the driver"
)
OTHER_SCHEDULER: Final = Check(
    "other-scheduler",
    "kube-scheduler allocates, and its image is of another version than helm knew at the last "
    "upgrade (`schedulerVersion`). Not found: a kube-scheduler that is no pod",
)
OTHER_VERSION: Final = Check(
    "other-version", "`kubectl gcu` is of another version than the driver in the cluster"
)


def versions(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """`nodes` is the inventory."""
    server = found.server
    if (server.major, server.minor) > NEWEST:
        yield UNTESTED_SERVER.finding(
            "API server",
            f"it is {server}, and the driver was tested up to {_text(NEWEST)}",
            "Look for a newer version of the driver.",
        )
    yield from _settings(found)
    by_claims = {node.name for node in nodes if node.served_by is ServedBy.CLAIMS}
    served = {node.name for node in nodes}
    agents = map(environment, found.pods("agent"))
    by_runtime = any(each.get("GCU_INJECTION") == "runtime" for each in agents)
    for node in found.state.nodes:
        if node["metadata"]["name"] in served:
            yield from _node(node, by_claims, by_runtime=by_runtime)
    yield from _scheduler(found)
    yield from _programs(found)


def _settings(found: Installation) -> Iterator[Finding]:
    """What the chart has set for agents, and what the server does not do."""
    server = found.server
    version = (server.major, server.minor)
    agents = map(environment, found.pods("agent"))
    for mode, form in {(each.get("GCU_MODE"), each.get("GCU_SLICE_FORM")) for each in agents}:
        if mode == "dra" and version < OLDEST:
            yield SERVER_TOO_OLD.finding(
                "API server",
                f"it is {server}, which has no resource.k8s.io/v1, and the chart's mode is dra",
                "Let mode be auto or device-plugin, and run helm upgrade.",
            )
        is_dra = mode != "device-plugin" and version >= OLDEST
        if is_dra and form == "visible" and version < OLDEST_VISIBLE:
            yield SERVER_TOO_OLD.finding(
                "API server",
                f"it is {server}, which drops device taints, and slices are to be visible",
                "Let sliceForm be auto, and run helm upgrade.",
            )


def _scheduler(found: Installation) -> Iterator[Finding]:
    """While kube-scheduler allocates, the chart writes its version on pods of the controller, as
    `schedulerVersion` or the images said it."""
    annotations = (pod["metadata"].get("annotations") or {} for pod in found.pods("controller"))
    versions = (str(each.get(ANNOTATION_SCHEDULER_VERSION, "")) for each in annotations)
    said = {version[1] for text in versions if (version := re.match(_VERSION, text))}
    if len(said) != 1:
        return  # during an update of the chart it has both
    [expected] = said
    for pod in found.state.pods:
        for container in pod["spec"]["containers"]:
            image = _SCHEDULER_IMAGE.search(str(container.get("image", "")))
            if image and not is_done(pod) and image[1] != expected:
                yield OTHER_SCHEDULER.finding(
                    f"pod {full_name(pod)}",
                    f"it is kube-scheduler {image[1]}, and the driver was installed for {expected}",
                    "Run helm upgrade, with schedulerVersion if you set it. It refuses versions "
                    "that allocate a card twice: "
                    "docs/user/which-allocator.md#choose-kube-scheduler.",
                )


def _node(node: Object, by_claims: set[str], *, by_runtime: bool) -> Iterator[Finding]:
    """`by_runtime`: agents have ``injection: runtime``, by which a device plugin needs no CDI."""
    name = node["metadata"]["name"]
    info = (node.get("status") or {}).get("nodeInfo") or {}
    kubelet, runtime = info.get("kubeletVersion", ""), info.get("containerRuntimeVersion", "")
    if name in by_claims and _is_older(kubelet, OLDEST):
        yield OLD_KUBELET.finding(
            f"node {name}",
            f"its kubelet is {kubelet}, and serves no claims",
            "Upgrade it to 1.34 or newer, or cordon the node.",
        )
    by_names = not by_runtime and not _is_older(kubelet, KUBELET_TAKES_CDI_NAMES)
    if (name in by_claims or by_names) and cdi_of(runtime) is Cdi.NONE:
        other = "" if name in by_claims else ", or set injection: runtime where the vendor's is"
        yield NO_CDI.finding(
            f"node {name}",
            f"its container runtime is {runtime}, which adds no CDI devices to containers",
            f"Upgrade it to containerd 2, or CRI-O 1.23 or newer{other}.",
        )


def _is_older(text: str, oldest: tuple[int, int]) -> bool:
    """False for a version that cannot be read."""
    try:
        version = ServerVersion.of_git(text)
    except InvalidValue:
        return False
    return (version.major, version.minor) < oldest


def _programs(found: Installation) -> Iterator[Finding]:
    """The chart labels each pod with the driver's version."""
    parts: dict[str, set[str]] = {}
    for component in ("agent", "controller"):
        for pod in found.pods(component):
            version = pod["metadata"]["labels"].get("app.kubernetes.io/version")
            if version:
                node = pod["spec"].get("nodeName")
                part = f"the agent of node {node}" if component == "agent" else "the controller"
                parts.setdefault(version, set()).add(part)
    if len(parts) > 1:
        rarest = min(parts, key=lambda version: (len(parts[version]), version))
        yield MIXED_VERSIONS.finding(
            "driver",
            f"its programs are of the versions {', '.join(sorted(parts))}; {rarest} are "
            f"{', '.join(sorted(parts[rarest]))}",
            "Wait for the end of the update; if it does not end, see kubectl rollout status.",
        )
    elif parts and VERSION not in parts:
        yield OTHER_VERSION.finding(
            "kubectl gcu",
            f"it is {VERSION}, and the driver is {min(parts)}",
            "Install the same version of both: it may read what the other one writes wrongly.",
        )


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
