"""Refuses servers on which the driver cannot do its work."""

from __future__ import annotations

from typing import Final

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import DEVICE_CLASSES
from dra_driver.model.errors import Refused

OLDEST: Final = (1, 34)
"""The first version with ``resource.k8s.io/v1``."""
OLDEST_VISIBLE: Final = (1, 36)
"""The first version whose API server stores device taints and whose kube-scheduler honours them,
without feature gates to set."""
_OLDEST_NOMINATING: Final = (1, 35)


def check_server(version: ServerVersion) -> None:
    """Raises Refused below Kubernetes 1.34, which does not serve ``resource.k8s.io/v1``."""
    if (version.major, version.minor) < OLDEST:
        raise Refused(
            f"the API server is {version}, which does not serve resource.k8s.io/v1",
            remedy="use Kubernetes 1.34 or newer, or let the chart's mode be auto or device-plugin",
        )


def check_visible(version: ServerVersion) -> None:
    """Raises Refused below Kubernetes 1.36: those servers drop device taints, and kube-scheduler
    and gcu-dra-controller would both allocate the devices of visible slices."""
    if (version.major, version.minor) < OLDEST_VISIBLE:
        raise Refused(
            f"the API server is {version}, which drops device taints: kube-scheduler and "
            "gcu-dra-controller would both allocate the devices of visible slices",
            remedy="let the chart's sliceForm be auto and run `helm upgrade`, or set it to hidden",
        )


def nominates_before_binding(version: ServerVersion) -> bool:
    """Whether kube-scheduler writes ``status.nominatedNodeName`` before it binds a pod with claims
    or unbound volumes (KEP-5278, on since Kubernetes 1.35)."""
    return (version.major, version.minor) >= _OLDEST_NOMINATING


def serves_dra(api: Api) -> bool:
    """Whether the server has the DRA that the driver needs: the version, and not switched off.
    Raises KubeError where it does not say."""
    version = api.server_version()
    if (version.major, version.minor) < OLDEST:
        return False
    try:
        api.list(DEVICE_CLASSES)
    except NotFound:
        return False
    return True
