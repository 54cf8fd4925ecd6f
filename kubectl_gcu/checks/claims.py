"""Claims that do not agree with pods, nodes, or what agents wrote."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from controller.allocator.inventory import Inventory
from controller.cache.claims import foreign_devices, writers_of_allocation
from controller.cache.keys import full_name
from controller.cache.pods import is_done, node_name
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.resources import NODES, PODS
from dra_driver.model.claims.claim import Object, claim_names, reserved_for, results
from dra_driver.model.names import ALLOCATOR_SCHEDULER, ANNOTATION_ALLOCATOR, DRIVER, pool_name
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.words import first_of

POD_GONE: Final = Check("pod-gone", "a claim is reserved for a pod that no longer exists")
POD_ENDED: Final = Check(
    "pod-ended",
    "an ended pod names a claim that other pods use: before 1.38 Kubernetes writes the claim "
    "without end",
)
NODE_GONE: Final = Check("node-gone", "a claim has devices of a node that no longer exists")
NOT_REPORTED: Final = Check(
    "not-reported",
    "a pod with a claim runs, and the agent did not write `status.devices` of the claim",
)
UNKNOWN_CLAIMS: Final = Check(
    "unknown-claims",
    "pods run with claims that the agent of their node does not know, because its records were "
    "lost",
)
REPORT_DIFFERS: Final = Check(
    "report-differs", "`status.devices` of a claim has devices that are not allocated to it"
)
FOREIGN_ALLOCATION: Final = Check(
    "foreign-allocation", "another allocator than the controller gave a claim devices"
)
_MOST_NAMED: Final = 3
_CLAIMS_UNKNOWN: Final = "GcuClaimsUnknown"
_NAMES: Final = re.compile(r"[a-z0-9-]+/[a-z0-9.-]+")
_NEVER: Final = "~"  # after every time


def claims(found: Installation) -> Iterator[Finding]:
    """All claims with devices of this driver."""
    pods = {pod["metadata"]["uid"]: pod for pod in found.state.pods}
    known_pods = PODS not in found.state.missing
    known_pools = {pool_name(each["metadata"]["name"]) for each in found.state.nodes}
    by_controller = _allocates(found)
    inventory = Inventory.of(found.state.slices)
    unready = {pool_name(node) for node in found.unready_nodes()}
    for claim in found.state.claims:
        if not results(claim):
            continue
        where = f"claim {full_name(claim)}"
        gone = [
            each["name"]
            for each in reserved_for(claim)
            # Others, such as PodGroups, may reserve a claim, too.
            if each.get("resource") == "pods" and each["uid"] not in pods
        ]
        if known_pods and gone:
            yield POD_GONE.finding(
                where,
                f"it is reserved for {', '.join(gone)}, which is gone",
                "kube-controller-manager removes the reservation; if it stays, see its log.",
            )
        lost = sorted({each.pool for each in results(claim)} - known_pools)
        if NODES not in found.state.missing and lost:
            node = lost[0].removeprefix(f"{DRIVER}/")
            yield NODE_GONE.finding(
                where, f"it has devices of node {node}, which is gone", "Delete its pods."
            )
        if unready.isdisjoint(each.pool for each in results(claim)):
            users = [pods.get(each["uid"]) for each in reserved_for(claim)]
            yield from _reported(where, claim, users)
        if by_controller and foreign_devices(claim, inventory):
            writers = ", ".join(writers_of_allocation(claim)) or "an unknown writer"
            yield FOREIGN_ALLOCATION.finding(
                where,
                f"{writers} allocated its devices, past the controller; they may be allocated "
                "twice",
                "Remove what tolerates the taint gcu.enflame.com/allocated-by, and delete the "
                "claim.",
            )


def _reported(where: str, claim: Object, users: list[Object | None]) -> Iterator[Finding]:
    allocated = {(each.pool, each.device) for each in results(claim)}
    reported = {
        (each["pool"], each["device"])
        for each in (claim.get("status") or {}).get("devices") or ()
        if each["driver"] == DRIVER
    }
    runs = any(pod and (pod.get("status") or {}).get("phase") == "Running" for pod in users)
    if runs and not reported:
        yield NOT_REPORTED.finding(
            where,
            "its pod runs, and the agent has not reported its devices",
            "It does so within seconds; if not, see the agent's log, and the event "
            "GcuClaimStatusRejected.",
        )
    if others := sorted(device for _, device in reported - allocated):
        yield REPORT_DIFFERS.finding(
            where,
            f"its status has {', '.join(others)}, which it was not allocated",
            "The agent of its node corrects that; if it stays, see its log.",
        )


def ended_users(found: Installation) -> Iterator[Finding]:
    """Claims in use that an ended pod names. kube-controller-manager reserves such a claim for the
    ended pod, and takes the reservation away again (kubernetes#141274, seen on 1.37.1; no more in
    1.38.0-beta.0, `syncPod`)."""
    if found.server >= ServerVersion(1, 38):
        return
    pods = {pod["metadata"]["uid"]: pod for pod in found.state.pods}
    ended: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in found.state.pods:
        if is_done(pod) and node_name(pod):
            for name in filter(None, claim_names(pod).values()):
                ended[pod["metadata"]["namespace"], name].append(str(pod["metadata"]["name"]))
    for claim in found.state.claims:
        namespace = str(claim["metadata"]["namespace"])
        names = sorted(ended.get((namespace, claim["metadata"]["name"]), ()))
        users = [user for each in reserved_for(claim) if (user := pods.get(each["uid"]))]
        if names and results(claim) and not all(map(is_done, users)):
            yield POD_ENDED.finding(
                f"claim {full_name(claim)}",
                f"pods use it, and {first_of(names, _MOST_NAMED, 'others')}, ended, still names "
                "it: kube-controller-manager writes it many times a second (kubernetes#141274)",
                f"Delete what has ended: kubectl delete pod --namespace {namespace} "
                f"{' '.join(names[:_MOST_NAMED])}.",
            )


def unknown(found: Installation) -> Iterator[Finding]:
    """Claims that an agent's event names (dra_driver/agent/events.py), while the pods run that ran
    then."""
    reported = {
        str((event.get("regarding") or {}).get("name")): event
        for event in sorted(found.events, key=event_time)
        if event.get("reason") == _CLAIMS_UNKNOWN
    }
    running = {
        pod["metadata"]["uid"]: str(pod["status"].get("startTime") or "")
        for pod in found.state.pods
        if (pod.get("status") or {}).get("phase") == "Running"
    }
    for node, event in sorted(reported.items()):
        names = set(_NAMES.findall(str(event.get("note", ""))))
        shown = [
            full_name(claim)
            for claim in found.state.claims
            if full_name(claim) in names
            and any(each.pool == pool_name(node) for each in results(claim))
            and any(
                running.get(each["uid"], _NEVER) <= event_time(event)
                for each in reserved_for(claim)
            )
        ]
        if shown:
            yield UNKNOWN_CLAIMS.finding(
                f"node {node}",
                f"pods run with {', '.join(sorted(shown))}, and its agent does not know these "
                "claims, because its records were lost",
                "The pods run and can end, but a container that restarts does not start: delete "
                "them when their work allows "
                "(docs/user/health.md#when-the-agents-records-are-lost).",
            )


def _allocates(found: Installation) -> bool:
    """Whether the controller allocates. False where its Lease cannot be read."""
    return any(
        (each["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATOR) != ALLOCATOR_SCHEDULER
        for each in found.leases.values()
        if each
    )
