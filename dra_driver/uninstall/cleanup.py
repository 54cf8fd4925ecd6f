"""``gcu-dra-uninstall-cleanup``: takes back what agents wrote and nobody else deletes: hidden
ResourceSlices (docs/adr/0026), and labels and annotations of Nodes.

Helm runs it after it has deleted the agents and their permissions, so that nothing is written anew.
Kubelets delete visible slices by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

from pydantic import Field

from dra_driver.config.loader import Settings, load
from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.node_metadata import apply_metadata
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.kube.server_wait import ServerWait
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER, FIELD_MANAGER, FIELD_MANAGER_LABELS
from dra_driver.telemetry.program import run_program
from dra_driver.version import VERSION

_DESCRIPTION: Final = "Deletes what agents of this driver wrote and nobody else deletes."


class CleanupSettings(Settings):
    hidden_slices: bool = Field(default=False, description="delete the hidden ResourceSlices")
    nodes: bool = Field(default=False, description="remove labels and annotations from Nodes")


def main() -> None:
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises KubeError. It waits for an API server that is away as long as the Job may last."""
    name = "gcu-dra-uninstall-cleanup"
    settings = load(CleanupSettings, argv, environ, prog=name, description=_DESCRIPTION)
    client = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{name}/{VERSION}")
    with closing(client) as api:
        server_wait = ServerWait(stop.wait)
        if settings.hidden_slices:
            server_wait.until_answered(lambda: delete_hidden_slices(api))
        if settings.nodes:
            server_wait.until_answered(lambda: clear_nodes(api))


def delete_hidden_slices(api: Api) -> None:
    """Delete all hidden slices of the driver; those that name a node stay. Raises KubeError."""
    try:
        slices = api.list(RESOURCE_SLICES, field_selector=f"spec.driver={DRIVER}").items
    except NotFound:
        return  # DRA is switched off
    for published in slices:
        if not published["spec"].get("nodeName"):
            metadata = published["metadata"]
            with suppress(NotFound):
                api.delete(RESOURCE_SLICES, metadata["name"], uid=metadata["uid"])


def clear_nodes(api: Api) -> None:
    """Remove the labels and annotations of the agents from all Nodes. What another client had
    written before stays: an administrator's label ``enflame.com/gcushare``, for example. Raises
    KubeError."""
    for node in api.list(NODES).items:
        metadata = node["metadata"]
        managers = {each.get("manager") for each in metadata.get("managedFields") or ()}
        for manager in (FIELD_MANAGER, FIELD_MANAGER_LABELS):
            if manager in managers:
                with suppress(NotFound):
                    apply_metadata(api, metadata["name"], {}, manager)
