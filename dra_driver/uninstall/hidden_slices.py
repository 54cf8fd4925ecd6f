"""``gcu-dra-uninstall-slices``: deletes the driver's hidden ResourceSlices: docs/adr/0026.

Helm runs it after it has deleted the agents and their permissions. Kubelets delete visible slices
by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

from dra_driver.config.loader import Settings, load
from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.kube.server_wait import ServerWait
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from dra_driver.telemetry.program import run_program
from dra_driver.version import VERSION

_DESCRIPTION: Final = "Deletes the hidden ResourceSlices of this driver."


def main() -> None:
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises KubeError. It waits for an API server that is away as long as the Job may last."""
    name = "gcu-dra-uninstall-slices"
    settings = load(Settings, argv, environ, prog=name, description=_DESCRIPTION)
    client = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{name}/{VERSION}")
    with closing(client) as api:
        ServerWait(stop.wait).until_answered(lambda: delete_hidden_slices(api))


def delete_hidden_slices(api: Api) -> None:
    """Delete all hidden slices of the driver; those that name a node stay. Raises KubeError."""
    try:
        slices = api.list(RESOURCE_SLICES, field_selector=f"spec.driver={DRIVER}").items
    except NotFound:
        return  # DRA is switched off
    for each in slices:
        if not each["spec"].get("nodeName"):
            with suppress(NotFound):
                api.delete(RESOURCE_SLICES, each["metadata"]["name"], uid=each["metadata"]["uid"])
