"""Refuses servers on which the driver cannot do its work."""

from __future__ import annotations

from typing import Final

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.resources import RESOURCE_SLICES
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


def missing_dra(api: Api, version: ServerVersion) -> str:
    """Why a server of that version has not the DRA that the driver needs: it is older, or DRA is
    switched off. Empty where it has. Raises KubeError where it does not say."""
    if (version.major, version.minor) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return f"the server is {version}, and DRA is used from {oldest} on"
    if not api.serves(RESOURCE_SLICES):
        return f"the server {version} does not serve {RESOURCE_SLICES.api_version}"
    return ""
