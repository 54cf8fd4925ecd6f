"""What another allocator would refuse, for a switch of `allocator` before it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.claim_request import parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.ownership import is_ours
from controller.allocator.state import State
from controller.cache.pods import is_done
from dra_driver.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object, allocation, made_for
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import ALLOCATOR_SCHEDULER, LABEL_MADE_FOR_LIMITS
from dra_driver.selector.selector import Selectors
from kubectl_gcu.checks import scheduler_policies
from kubectl_gcu.checks.finding import Check, Finding, named
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.checks.scheduler_policies import Objection
from kubectl_gcu.scheduling.packing import configured_ignored_fields

REFUSED_BY_OTHER: Final = Check(
    "refused-by-other",
    "with `--allocator` alone: a claim template, a claim or a pod that this allocator would "
    "refuse, or of which it would ignore a field",
)

_Objections = Callable[[Object], Iterator[Objection]]
"""Against a claim, or a template in the form of one."""


def refused(found: Installation, allocator: str) -> Iterator[Finding]:
    """Templates and claims, and with ``scheduler`` also pods by their limits. Claims that were made
    from a template and are allocated are left out: they stay as they are."""
    objections = _by_scheduler if allocator == ALLOCATOR_SCHEDULER else _by_controller(found)
    for template in found.objects.get(RESOURCE_CLAIM_TEMPLATES, ()):
        if LABEL_MADE_FOR_LIMITS not in (template["metadata"].get("labels") or {}):
            claim = {"metadata": template["metadata"], "spec": template["spec"]["spec"]}
            yield from _findings(f"claim template {named(template)}", objections(claim))
    for claim in found.state.claims:
        if not (made_for(claim) and allocation(claim)):
            yield from _findings(f"claim {named(claim)}", objections(claim))
    if allocator == ALLOCATOR_SCHEDULER:
        yield from _pods(found)


def _pods(found: Installation) -> Iterator[Finding]:
    """One finding for all pods of one owner, such as a ReplicaSet."""
    owners: dict[str, list[Objection]] = {}
    for pod in found.state.pods:
        if not is_done(pod):
            owners.setdefault(_owner(pod), [*scheduler_policies.of_pod(pod)])
    for owner, objections in sorted(owners.items()):
        yield from _findings(owner, objections)


def _owner(pod: Object) -> str:
    namespace = pod["metadata"]["namespace"]
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind']} {namespace}/{owner['name']}"
    return f"pod {named(pod)}"


def _findings(where: str, objections: Iterator[Objection] | list[Objection]) -> Iterator[Finding]:
    for what, remedy in objections:
        yield REFUSED_BY_OTHER.finding(where, what, remedy)


def _by_scheduler(claim: Object) -> Iterator[Objection]:
    devices = claim["spec"].get("devices") or {}
    yield from scheduler_policies.of_claim(devices)
    yield from scheduler_policies.ignored(devices)


def _by_controller(found: Installation) -> _Objections:
    """What the controller's own allocator says."""
    classes = {each["metadata"]["name"]: each for each in found.objects.get(DEVICE_CLASSES, ())}
    inventory = Inventory.of(found.state.slices)
    state = State(inventory, AllocatedDevices(), classes, Selectors())
    ignored = configured_ignored_fields(found.state.pods)

    def objections(claim: Object) -> Iterator[Objection]:
        try:
            if is_ours(claim, state):
                parse_claim(claim, classes, ignored)
        except (Refused, InvalidValue) as error:
            remedy = error.remedy or "create it again as the controller takes it"
            yield error.what, f"{remedy[:1].upper()}{remedy[1:]}."

    return objections
