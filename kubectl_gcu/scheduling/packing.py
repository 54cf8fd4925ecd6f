"""What allocates, and how the controller is configured, by the environment of its pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.allocator.packing.policy import Policy
from controller.cache import pods
from dra_driver.config.loader import listed_names
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER, DRIVER
from kubectl_gcu.cluster.driver_pods import driver_pods, environment

_VARIABLES: Final = ("GCU_PACK_NODES", "GCU_PACK_CARDS")  # the chart's controller/deployment.yaml


def configured_packing(found: Iterable[Object]) -> Policy | None:
    """That of the newest controller among the pods; None where no controller is among them, or its
    environment does not say it."""
    environment = _environment(found)
    try:
        return Policy(*(Packing(environment.get(name) or "") for name in _VARIABLES))
    except ValueError:
        return None


def configured_ignored_fields(found: Iterable[Object]) -> frozenset[str]:
    """The fields of claims that the newest controller among the pods ignores; none where no
    controller is among them."""
    return _names(found, "GCU_IGNORED_CLAIM_FIELDS")


def is_for_scheduler(found: Iterable[Object], slices: Iterable[Object]) -> bool:
    """Whether kube-scheduler allocates: by the newest controller among the pods; where none is
    among them, by the counters that devices have for kube-scheduler alone."""
    allocator = _environment(found).get("GCU_ALLOCATOR")
    if allocator in {ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER}:
        return allocator == ALLOCATOR_SCHEDULER
    return any(
        device.get("consumesCounters")
        for each in slices
        if each["spec"]["driver"] == DRIVER
        for device in each["spec"].get("devices") or ()
    )


def served_schedulers(found: Iterable[Object]) -> frozenset[str]:
    """The names of the schedulers whose pods the newest controller serves; empty for all."""
    return _names(found, "GCU_SCHEDULER_NAMES")


def unconsidered_plugins(found: Iterable[Object]) -> frozenset[str]:
    """The filters of kube-scheduler that the newest controller does not predict."""
    return _names(found, "GCU_UNCONSIDERED_PLUGINS")


def controllers(found: Iterable[Object]) -> list[Object]:
    """The pods of the controller that neither end nor have ended."""
    return [each for each in driver_pods(found, "controller") if not pods.is_deleting(each)]


def _names(found: Iterable[Object], variable: str) -> frozenset[str]:
    return frozenset(listed_names(_environment(found).get(variable) or ""))


def _environment(found: Iterable[Object]) -> Mapping[str, str | None]:
    """That of the newest controller among the pods, which leads once an upgrade has ended."""
    known = controllers(found)
    if not known:
        return {}
    newest = max(known, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""))
    return environment(newest)


def packing_text(policy: Policy | None, *, for_scheduler: bool) -> str:
    """For people."""
    if for_scheduler:
        return "packing: kube-scheduler allocates, and may choose another node and other cards"
    if policy is None:
        return "packing: the chart's defaults, as no pod of the controller says what it has"
    return f"packing: nodes {policy.nodes}, cards {policy.cards}"
