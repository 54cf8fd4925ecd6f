"""Refuses servers on which the driver cannot do its work."""

from __future__ import annotations

from typing import Final

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import DEVICE_CLASSES
from dra_driver.model.errors import Refused

OLDEST: Final = (1, 36)


def check_server(version: ServerVersion) -> None:
    """Raises Refused below Kubernetes 1.36: those servers drop device taints, and kube-scheduler
    would allocate the same devices as gcu-dra-controller."""
    if (version.major, version.minor) < OLDEST:
        raise Refused(
            f"the API server is {version}, which does not keep device taints: kube-scheduler and "
            "gcu-dra-controller would both allocate the same devices",
            remedy="use Kubernetes 1.36 or newer",
        )


def serves_dra(api: Api) -> bool:
    """Whether the server has the DRA API that the driver needs. Raises KubeError."""
    version = api.server_version()
    if (version.major, version.minor) < OLDEST:
        return False
    try:
        api.list(DEVICE_CLASSES)
    except NotFound:
        return False
    return True
