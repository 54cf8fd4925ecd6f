"""What the controller does beside allocating, each in a thread of its own, while it leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from controller.agents import RunningAgents, agents_reflector
from controller.informers.tee import Tee
from controller.leaderelection.fence import Fence
from controller.legacy_resources.decision import DecisionRule
from controller.legacy_resources.decision_cache import DecisionCache, reflector
from controller.legacy_resources.foreign_resources import ForeignResources
from controller.legacy_resources.publisher import DecisionPublisher
from controller.missing_agents import MissingAgentsReporter
from controller.own_pod import OwnPod
from controller.settings import ControllerSettings
from controller.slice_cleaner import SliceCleaner
from controller.unclaimed_pods import UnclaimedPods
from dra_driver.kube.api import Api
from dra_driver.kube.watch import WatchHandler
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Background


class Housekeeping:
    """Constructing has no effects. With `serves_claims` it also does what there is to do where pods
    get GCUs by ResourceClaims."""

    def __init__(
        self,
        settings: ControllerSettings,
        api: Api,
        fence: Fence,
        own_pod: OwnPod,
        registry: CollectorRegistry,
        *,
        serves_claims: bool,
        clock: Callable[[], float],
    ) -> None:
        namespace = settings.lease_namespace
        agents = RunningAgents()
        registry.register(agents)
        self._unclaimed = UnclaimedPods(agents)
        registry.register(self._unclaimed)
        self._parts: dict[str, Background] = {
            "the watch of agents": agents_reflector(api, namespace, agents),
            "the report of missing agents": MissingAgentsReporter(
                agents, fence, own_pod, labels=settings.agent_labels, clock=clock
            ),
        }
        if serves_claims and settings.slice_form == "hidden":
            cleaner = SliceCleaner(api, fence, agents, clock=clock)
            self._parts["the cleaner of hidden slices"] = cleaner
        self._foreign: ForeignResources | None = None
        if serves_claims and settings.legacy_resources_config:
            name, cache = settings.legacy_resources_config, DecisionCache()
            self._foreign = ForeignResources()
            self._parts["the watch of the decision"] = reflector(api, namespace, name, cache)
            self._parts["the decision about limits"] = DecisionPublisher(
                api,
                fence,
                own_pod,
                namespace=namespace,
                name=name,
                foreign=self._foreign,
                cache=cache,
                rule=DecisionRule(settings.legacy_resources_delay, clock),
                clock=clock,
            )

    def follow_nodes(self, handler: WatchHandler) -> WatchHandler:
        """A handler for the watch of nodes, which hands on to `handler`."""
        return handler if self._foreign is None else Tee(self._foreign, handler)

    def follow_pods(self, handler: WatchHandler) -> WatchHandler:
        """The same for the watch of pods."""
        return Tee(handler, self._unclaimed)

    def start(self) -> None:
        for part in self._parts.values():
            part.start()

    def stop(self, timeout: float) -> None:
        """End all threads within `timeout` seconds."""
        deadline = Deadline(timeout)
        for part in self._parts.values():
            part.stop(deadline.left())

    def threads(self) -> Mapping[str, bool]:
        """Whether each thread is alive, by its name."""
        return {name: part.is_alive() for name, part in self._parts.items()}
