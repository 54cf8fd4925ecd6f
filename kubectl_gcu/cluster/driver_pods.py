"""The driver's own pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.cache.pods import is_done
from dra_driver.model.claims.claim import Object

CHART: Final = "gcu-dra-driver"  # the label app.kubernetes.io/name of all that the chart installs


def driver_pods(pods: Iterable[Object], component: str) -> list[Object]:
    """Those of the component, ``agent`` or ``controller``. An evicted one that was replaced stays
    in the API server for long, and is left out."""
    wanted = {"app.kubernetes.io/name": CHART, "app.kubernetes.io/component": component}
    return [
        pod
        for pod in pods
        if wanted.items() <= (pod["metadata"].get("labels") or {}).items() and not is_done(pod)
    ]


def environment(pod: Object) -> Mapping[str, str | None]:
    """The variables of the pod's containers; None of one whose value is elsewhere."""
    return {
        variable["name"]: variable.get("value")
        for container in pod["spec"]["containers"]
        for variable in container.get("env") or ()
    }
