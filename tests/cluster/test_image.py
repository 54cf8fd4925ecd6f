"""The driver's image runs on a node, as a user without rights."""

from __future__ import annotations

from typing import Final

import pytest

from dra_driver.version import VERSION
from tests.cluster.cluster import Cluster
from tests.cluster.image.build import IMAGE_NAME
from tests.cluster.workloads import pod

pytestmark = pytest.mark.cluster

_CREATE: Final = "gcu-simulator create --machine s60-4 --root /tmp/node --plain-device-files"

# What one may start in the image: the container's command, and a part of what it then prints.
_PROGRAMS: Final = {
    "agent": ("gcu-dra-agent --help", "usage: gcu-dra-agent"),
    "controller": ("gcu-dra-controller --help", "usage: gcu-dra-controller"),
    "simulator": ("gcu-simulator machines", "s60-ecc-8"),
    "efsmi": (f"{_CREATE} && /tmp/node/bin/efsmi -L", "0000:03:00.0"),
    "version": (
        "python3 -c 'from importlib.metadata import version; print(version(\"gcu-dra-driver\"))'",
        VERSION,
    ),
    "user": ("id -u", "65532"),
}


@pytest.fixture
def outputs(cluster: Cluster, namespace: str) -> dict[str, str]:
    """What each program printed; all ended well."""
    containers = [
        {
            "name": name,
            "image": IMAGE_NAME,
            "imagePullPolicy": "Never",
            "command": ["sh", "-ec", command],
            "securityContext": {
                "runAsNonRoot": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        for name, (command, _) in _PROGRAMS.items()
    ]
    cluster.apply(pod("image", namespace, containers=containers, restartPolicy="Never"))
    scope = ("--namespace", namespace)
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.wait("wait", "pod/image", *scope, ended)
    return {
        name: cluster.kubectl("logs", "image", *scope, "--container", name) for name in _PROGRAMS
    }


def test_all_programs_run(outputs: dict[str, str]) -> None:
    for name, (command, expected) in _PROGRAMS.items():
        assert expected in outputs[name], command
