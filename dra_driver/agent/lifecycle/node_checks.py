"""Checks at the agent's start whether kubelet and container runtime can give containers their cards
(docs/adr/0033)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

from dra_driver.agent.context import AgentContext
from dra_driver.agent.events import RUNTIME_CHECKED, RUNTIME_UNSUITABLE
from dra_driver.agent.lifecycle.serving_mode import ServingMode
from dra_driver.device_plugin.allocator import TakesCdiNames
from dra_driver.kube.container_runtime import Cdi, cdi_condition, cdi_of
from dra_driver.kube.resources import NODES
from dra_driver.model.errors import GcuError
from dra_driver.node.cdi.spec import Injection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeChecks:
    """What it finds is an event about the Node, and keeps the agent from nothing: another program
    may know better. `takes_cdi_names` is the device plugin's."""

    context: AgentContext
    node_name: str
    _: KW_ONLY
    injection: Injection
    takes_cdi_names: TakesCdiNames

    def run(self) -> None:
        """Check once, after the serving mode is chosen. Never raises: what cannot be asked is
        logged."""
        for check in (self._check_cdi, self._check_cpus):
            try:
                notes = list(check())
            except GcuError as error:
                logger.warning("whether the node's runtime suits GCUs is not known: %s", error)
                continue
            for note in notes:
                self.context.event_reporter.warning(RUNTIME_UNSUITABLE, note)

    def _check_cdi(self) -> Iterator[str]:
        by_claims = self.context.serving.is_mode(ServingMode.DRA)
        # A claim's variables are in its CDI file, whoever adds the device nodes.
        if not by_claims and not self.takes_cdi_names():
            return
        node = self.context.api.get(NODES, self.node_name)
        info = (node.get("status") or {}).get("nodeInfo") or {}
        runtime = str(info.get("containerRuntimeVersion", ""))
        cdi = cdi_of(runtime)
        if cdi is Cdi.NONE:
            other = "" if by_claims else "; or set injection=runtime where the vendor's runtime is"
            yield (
                f"the container runtime {runtime} adds no CDI devices to containers, so they get "
                f"no card: upgrade it to containerd 2, or CRI-O 1.23 or newer{other}"
            )
        elif cdi is Cdi.CONDITIONAL:
            self.context.event_reporter.normal(
                RUNTIME_CHECKED,
                f"the container runtime {runtime} adds CDI devices to containers only where "
                f"{cdi_condition(runtime)}. Otherwise containers start without their cards",
            )

    def _check_cpus(self) -> Iterator[str]:
        by_claims = self.context.serving.is_mode(ServingMode.DRA)
        # The device plugin names the device nodes to the kubelet, so an update keeps them.
        if not by_claims or self.injection is not Injection.RUNTIME:
            return
        if self.context.kubelet.has_exclusive_cpus():
            yield (
                "the kubelet's CPU manager has the policy static, and injection is runtime: when "
                "the kubelet moves a running container to other CPUs, the container loses the "
                "device nodes that the vendor's runtime added. Set injection=cdi, or the policy "
                "none"
            )
