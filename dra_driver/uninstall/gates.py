"""Lets pods go that the driver holds back from kube-scheduler: nobody would do so after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.errors import Invalid, NotFound
from dra_driver.kube.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS
from dra_driver.kube.scheduling_gate import gate_lifted, has_gate
from dra_driver.model.names import DRIVER

_ROUNDS: Final = 3
_PAUSE: Final = 2.0  # seconds; API servers heed that a configuration is gone within one


def lift_gates(api: Api, wait: Callable[[float], object]) -> int:
    """Delete the configuration of the webhook that sets the gate, then lift the gate of all pods
    that have it, and of those that come while API servers still call the webhook. Returns how many
    were lifted. `wait` waits for some seconds. Raises KubeError."""
    with suppress(NotFound):
        api.delete(MUTATING_WEBHOOK_CONFIGURATIONS, DRIVER)
    lifted = 0
    for number in range(_ROUNDS):
        if number:
            wait(_PAUSE)
        for pod in filter(has_gate, api.list(PODS).items):
            metadata = pod["metadata"]
            with suppress(NotFound, Invalid):  # another pod has its name by now
                api.patch(
                    PODS,
                    metadata["name"],
                    gate_lifted(pod),
                    namespace=metadata["namespace"],
                    patch_type=PatchType.STRATEGIC_MERGE,
                )
                lifted += 1
    return lifted
