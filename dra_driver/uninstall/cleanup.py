"""``gcu-dra-uninstall-cleanup``: waits until every node is cleared up, and takes from the
Nodes what agents told there of their cards.

Helm runs it when the agents and their rights are deleted, so that nobody writes it anew.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dra_driver.config.loader import load
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.client import connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import NODES
from dra_driver.model.effects import Effects
from dra_driver.model.names import FIELD_MANAGER
from dra_driver.telemetry import logs
from dra_driver.telemetry.program import run_program
from dra_driver.uninstall.answers import Answers
from dra_driver.uninstall.settings import CleanupSettings
from dra_driver.uninstall.sweeps import Sweeps
from dra_driver.version import VERSION

logger = logging.getLogger(__name__)

_DESCRIPTION = "Waits until all nodes are cleared up, and takes from them what agents told."


def main() -> None:
    """The console script."""
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises KubeError where a Node keeps what was told there, or it is not known what is left.

    What stays on a node on purpose, or one that is down, is told: it makes no uninstall fail.
    """
    name = "gcu-dra-uninstall-cleanup"
    logs.configure("warning")  # helm prints all that it says
    settings = load(CleanupSettings, argv, environ, prog=name, description=_DESCRIPTION)
    api = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{name}/{VERSION}")
    sweeps = Sweeps(api, namespace=settings.release_namespace, name=settings.sweep, wait=stop.wait)
    try:
        print(clear_up(api, sweeps, settings.patience), file=sys.stderr)
    finally:
        api.close()


def clear_up(api: Api, sweeps: Sweeps, patience: float) -> Answers:
    """Nodes last, as the label that agents gave them may be what chooses them for the sweep."""
    try:
        return sweeps.answers(patience)
    finally:
        clean(api)


def clean(api: Api) -> None:
    """Agents apply what they tell (server-side apply): where nothing is applied in their name, what
    is theirs alone goes, and what somebody else has set, too, stays. Raises KubeError."""
    for node in api.list(NODES).items:
        if not _is_told(node):
            continue
        name = node["metadata"]["name"]
        nothing = {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": name},
        }
        try:
            api.patch(
                NODES,
                name,
                nothing,
                patch_type=PatchType.APPLY,
                subresource="status",
                field_manager=FIELD_MANAGER,
                force=True,
            )
        except NotFound:
            continue  # it was deleted meanwhile, with all that was told there
        logger.info("node %s tells no longer of its cards", name)


def _is_told(node: Mapping[str, Any]) -> bool:
    """Whether an agent has applied anything to the Node."""
    return any(
        (each.get("manager"), each.get("operation"), each.get("subresource"))
        == (FIELD_MANAGER, "Apply", "status")
        for each in node["metadata"].get("managedFields") or ()
    )


if __name__ == "__main__":
    main()
