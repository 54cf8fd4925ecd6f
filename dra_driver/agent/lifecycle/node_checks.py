"""Checks at the agent's start whether kubelet and container runtime can give containers their cards
(docs/adr/0033)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from dra_driver.agent.events import RUNTIME_CHECKED, RUNTIME_UNSUITABLE, EventReporter
from dra_driver.kube.api import Api
from dra_driver.kube.container_runtime import Cdi, cdi_of
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import NODES
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.node.cdi.spec import Injection

logger = logging.getLogger(__name__)


class KubeletCpus(Protocol):
    """`dra_driver.kubelet_api.pod_resources.PodResources`."""

    def has_exclusive_cpus(self) -> bool: ...


class NodeChecks:
    """What it finds is an event about the Node, and keeps the agent from nothing: another program
    may know better."""

    def __init__(
        self,
        api: Api,
        node_name: str,
        kubelet: KubeletCpus,
        injection: Injection,
        event_reporter: EventReporter,
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._kubelet = kubelet
        self._injection = injection
        self._event_reporter = event_reporter

    def run(self) -> None:
        """Check once. Never raises: what cannot be asked is logged."""
        try:
            found = list(self._of_cdi() if self._injection is Injection.CDI else self._of_cpus())
        except (KubeError, KubeletError) as error:
            logger.warning("whether the node's runtime suits GCUs is not known: %s", error)
            return
        for note in found:
            logger.warning("%s", note)
            self._event_reporter.warning(RUNTIME_UNSUITABLE, note)

    def _of_cdi(self) -> Iterator[str]:
        node = self._api.get(NODES, self._node_name)
        info = (node.get("status") or {}).get("nodeInfo") or {}
        runtime = str(info.get("containerRuntimeVersion", ""))
        cdi = cdi_of(runtime)
        if cdi is Cdi.NONE:
            yield (
                f"the container runtime {runtime} adds no CDI devices to containers, so containers "
                "get no card; upgrade it to containerd 2 or CRI-O 1.23, or set injection=runtime "
                "where the vendor's runtime runs them"
            )
        elif cdi is Cdi.OFF_BY_DEFAULT:
            self._event_reporter.normal(
                RUNTIME_CHECKED,
                f"the container runtime {runtime} adds CDI devices to containers where its "
                "configuration has enable_cdi = true, which is not its default. If it has not, "
                "containers with cards do not start",
            )

    def _of_cpus(self) -> Iterator[str]:
        if self._kubelet.has_exclusive_cpus():
            yield (
                "the kubelet's CPU manager has the policy static, and injection is runtime: when "
                "the kubelet moves a running container to other CPUs, the container loses the "
                "device nodes that the vendor's runtime added. Set injection=cdi, or the policy "
                "none"
            )
