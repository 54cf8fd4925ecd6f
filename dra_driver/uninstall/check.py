"""``gcu-dra-uninstall-check``: fails, with a list, while claims or containers have GCUs.

Helm runs it before it deletes anything, and prints what it says. The kubelet asks the agent when
a pod with a claim of ours ends: without the agent no such pod can end. A pod with limits can, and
nobody destroys its DRS instance then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence

from dra_driver.config.loader import load
from dra_driver.kube.api import Api
from dra_driver.kube.client import connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from dra_driver.model.errors import Refused
from dra_driver.telemetry.program import run_program
from dra_driver.uninstall.cards import CardInUse, cards_in_use
from dra_driver.uninstall.holders import Holder, holders, list_of
from dra_driver.uninstall.settings import CheckSettings
from dra_driver.version import VERSION

_DESCRIPTION = "Fails while ResourceClaims or containers have GCUs of this driver."


def main() -> None:
    """The console script."""
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises Refused while a claim or container has GCUs, KubeError where that is not known."""
    del stop
    name = "gcu-dra-uninstall-check"
    settings = load(CheckSettings, argv, environ, prog=name, description=_DESCRIPTION)
    api = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{name}/{VERSION}")
    try:
        check(api, settings)
    finally:
        api.close()


def check(api: Api, settings: CheckSettings) -> None:
    """As `run`; what people need to know goes to standard error, and so into helm's output."""
    claims = _claims(api)
    # Where GCUs are given out by claims, what a Node tells is of the time before.
    cards = cards_in_use(api.list(NODES).items) if settings.by_limits else []
    if claims:
        print(_advice(claims, settings), file=sys.stderr)
        raise Refused("the uninstall is refused while claims have GCUs")
    if cards:
        print(_advice_of_cards(cards, settings), file=sys.stderr)
        raise Refused("the uninstall is refused while containers have GCUs")


def _claims(api: Api) -> list[Holder]:
    try:
        return holders(api.list(RESOURCE_CLAIMS).items)
    except NotFound:
        return []  # a server without DRA


def _advice_of_cards(found: Sequence[CardInUse], settings: CheckSettings) -> str:
    scope = f"--namespace {settings.release_namespace}"
    return f"""\
Pods have these cards by their limits, and without the driver nobody destroys their DRS instances:
{list_of(found)}
End those pods, and uninstall half a minute later. Or keep the driver, marked as going by helm:
  helm rollback {settings.release} {settings.revision} {scope}
Or uninstall all the same; the instances stay until the driver is installed again:
  helm uninstall {settings.release} {scope} --no-hooks"""


def _advice(found: Sequence[Holder], settings: CheckSettings) -> str:
    scope = f"--namespace {settings.release_namespace}"
    return f"""\
These claims have GCUs, and without the driver no pod that uses them can end:
{list_of(found)}
End those pods, and uninstall again. Or keep the driver, which helm has marked as going:
  helm rollback {settings.release} {settings.revision} {scope}
Or uninstall all the same, and install the driver again before those pods end:
  helm uninstall {settings.release} {scope} --no-hooks"""


if __name__ == "__main__":
    main()
