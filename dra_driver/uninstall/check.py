"""``gcu-dra-uninstall-check``: fails, with a list, while claims or containers have GCUs.

Helm runs it before it deletes anything, and prints its output. Without the agent no pod with a
claim can end, because the kubelet calls the agent for it. A pod with limits can end, but nothing
destroys its DRS instance. Where the controller names nodes to kube-scheduler, it then lets pods go
that are held back for that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

from pydantic import Field

from dra_driver.config.loader import Settings, load
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.client import connect
from dra_driver.kube.errors import Invalid, NotFound
from dra_driver.kube.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.kube.scheduling_gate import gate_lifted, has_gate
from dra_driver.kube.server_wait import ServerWait
from dra_driver.model.claims.claim import ClaimRef, reserved_for, results
from dra_driver.model.devices.node_cards import NodeCard, parse_cards
from dra_driver.model.effects import Effects
from dra_driver.model.errors import Refused
from dra_driver.model.names import ANNOTATION_CARDS, DRIVER
from dra_driver.telemetry.program import run_program
from dra_driver.version import VERSION

_DESCRIPTION: Final = "Fails while ResourceClaims or containers have GCUs of this driver."
_MOST_LINES: Final = 40
_ROUNDS: Final = 3
_PAUSE: Final = 2.0  # seconds; API servers heed that a configuration is gone within one
_CLAIMS: Final = """\
These claims have GCUs, and without the driver no pod that uses them can end:
{lines}
End those pods, and uninstall again. Or keep the driver, which helm has marked as going:
  helm rollback {release} {revision} --namespace {release_namespace}
Or uninstall all the same, and install the driver again before those pods end:
  helm uninstall {release} --namespace {release_namespace} --no-hooks"""
_CARDS: Final = """\
Pods have these cards by their limits, and without the driver nobody destroys their DRS instances:
{lines}
End those pods, and uninstall half a minute later. Or keep the driver, marked as going by helm:
  helm rollback {release} {revision} --namespace {release_namespace}
Or uninstall all the same; the instances stay until the driver is installed again:
  helm uninstall {release} --namespace {release_namespace} --no-hooks"""


class CheckSettings(Settings):
    release_namespace: str = Field(min_length=1, description="namespace of the Helm release")
    release: str = Field(min_length=1, description="name of the Helm release")
    revision: int = Field(ge=1, description="the release's revision")
    lift_gates: bool = Field(
        default=False, description="then lift the gate of pods whose node the controller names"
    )
    by_limits: bool = Field(
        default=False, description="pods get GCUs by limits: also read the Nodes' annotations"
    )


def main() -> None:
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises Refused while a claim or container has GCUs, and KubeError. It waits for an API server
    that is away as long as the Job may last."""
    name = "gcu-dra-uninstall-check"
    settings = load(CheckSettings, argv, environ, prog=name, description=_DESCRIPTION)
    client = connect(settings.kubeconfig, effects=Effects(), user_agent=f"{name}/{VERSION}")
    with closing(client) as api:
        server_wait = ServerWait(stop.wait)
        server_wait.until_answered(lambda: check(api, settings))
        if settings.lift_gates:
            lifted = server_wait.until_answered(lambda: lift_gates(api, stop.wait))
            print(f"{lifted} pods were let go to kube-scheduler")


def check(api: Api, settings: CheckSettings) -> None:
    """As `run`. The list goes to standard error, and so into helm's output."""
    claims = _claims(api)
    # On a cluster with DRA the annotations are from before an upgrade.
    cards = cards_in_use(api.list(NODES).items) if settings.by_limits else []
    if claims:
        _advise(_CLAIMS, claims[:_MOST_LINES], len(claims), settings)
        raise Refused("the uninstall is refused while claims have GCUs")
    if cards:
        _advise(_CARDS, _card_lines(api, cards[:_MOST_LINES]), len(cards), settings)
        raise Refused("the uninstall is refused while containers have GCUs")


def _claims(api: Api) -> list[str]:
    try:
        return claims_with_gcus(api.list(RESOURCE_CLAIMS).items)
    except NotFound:
        return []  # a server without DRA


def _card_lines(api: Api, cards: Sequence[tuple[str, NodeCard]]) -> list[str]:
    """Only the pods of these cards' nodes are read."""
    names = {
        pod["metadata"]["uid"]: f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for node in sorted({node for node, _ in cards})
        for pod in api.list(PODS, field_selector=f"spec.nodeName={node}").items
    }
    return [card_line(node, card, names) for node, card in cards]


def _advise(advice: str, shown: Sequence[str], total: int, settings: CheckSettings) -> None:
    more = [f"… and {total - len(shown)} more"] if total > len(shown) else []
    lines = "\n".join(f"  {line}" for line in (*shown, *more))
    print(advice.format(lines=lines, **settings.model_dump()), file=sys.stderr)


def lift_gates(api: Api, wait: Callable[[float], object]) -> int:
    """Let pods go that the driver holds back from kube-scheduler: nobody would do so after it.

    Delete the configuration of the webhook that sets the gate, then lift the gate of all pods
    that have it, and of those that come while API servers still call the webhook. Returns how many
    were lifted. `wait` waits for some seconds. Raises KubeError.
    """
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


def claims_with_gcus(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each ResourceClaim (resource.k8s.io/v1) with devices of this driver, by namespace
    and name.

    A prepared claim is an allocated one, except for a moment after its pod was deleted by force.
    """
    return [_claim_line(claim) for claim in sorted(filter(results, claims), key=ClaimRef.of)]


def _claim_line(claim: Mapping[str, Any]) -> str:
    ref, given = ClaimRef.of(claim), results(claim)
    devices = f"{len(given)} device{'s' if len(given) > 1 else ''}"
    nodes = ", ".join(sorted({result.pool.removeprefix(f"{DRIVER}/") for result in given}))
    consumers = ", ".join(
        f"{entry['resource'].removesuffix('s')} {ref.namespace}/{entry['name']}"
        for entry in reserved_for(claim)
    )
    return f"claim {ref}: {devices} of {nodes}, used by {consumers or 'no pod yet'}"


def cards_in_use(nodes: Iterable[Mapping[str, Any]]) -> list[tuple[str, NodeCard]]:
    """By the node's name and the card, from Nodes (core/v1). Raises InvalidValue where an agent's
    annotation cannot be read."""
    texts = {
        node["metadata"]["name"]: (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        for node in nodes
    }
    return [
        (name, card)
        for name, text in sorted(texts.items())
        for card in (parse_cards(text) if text else ())
        if card.mode is not None
    ]


def card_line(node: str, card: NodeCard, names: Mapping[str, str]) -> str:
    """`names` are those of pods by UID. A hold has no UID until the kubelet has recorded the
    container; the card has no hold if the agent has not released it yet."""
    users = {names.get(hold.pod, "a pod that has just started or ended") for hold in card.held}
    used = ", ".join(sorted(users)) or "no pod any more"
    return f"node {node}: card {card.address}, {card.mode}, used by {used}"


if __name__ == "__main__":
    main()
