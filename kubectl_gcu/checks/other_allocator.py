"""What another allocator would refuse, for a switch of `allocator` before it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.claim_request import parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.ownership import is_ours
from controller.allocator.state import State
from controller.cache.keys import full_name
from dra_driver.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object, allocation, made_for
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import ALLOCATOR_SCHEDULER, LABEL_MADE_FOR_LIMITS
from dra_driver.selector.selector import Selectors
from kubectl_gcu.checks import scheduler_policies
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.checks.scheduler_policies import Objection
from kubectl_gcu.scheduling.packing import configured_ignored_fields

REFUSED_BY_OTHER: Final = Check(
    "refused-by-other",
    "with `--allocator` alone: a claim template or a claim that this allocator would refuse, or of "
    "which it would ignore a field",
)

_Objections = Callable[[Object], Iterator[Objection]]
"""Against a claim, or a template in the form of one."""


def refused(found: Installation, allocator: str) -> Iterator[Finding]:
    """Templates and claims. Claims that were made from a template and are allocated are left out:
    they stay as they are."""
    of_template, of_claim = (
        (_by_scheduler(scheduler_policies.of_template), _by_scheduler(scheduler_policies.of_claim))
        if allocator == ALLOCATOR_SCHEDULER
        else (_by_controller(found),) * 2
    )
    for template in found.objects.get(RESOURCE_CLAIM_TEMPLATES, ()):
        if LABEL_MADE_FOR_LIMITS not in (template["metadata"].get("labels") or {}):
            claim = {"metadata": template["metadata"], "spec": template["spec"]["spec"]}
            yield from _findings(f"claim template {full_name(template)}", of_template(claim))
    for claim in found.state.claims:
        if not (made_for(claim) and allocation(claim)):
            yield from _findings(f"claim {full_name(claim)}", of_claim(claim))


def _findings(where: str, objections: Iterator[Objection]) -> Iterator[Finding]:
    for what, remedy in objections:
        yield REFUSED_BY_OTHER.finding(where, what, remedy)


def _by_scheduler(refused: Callable[[Mapping[str, Any]], Iterator[Objection]]) -> _Objections:
    """With what it ignores."""

    def objections(claim: Object) -> Iterator[Objection]:
        devices = claim["spec"].get("devices") or {}
        yield from refused(devices)
        yield from scheduler_policies.ignored(devices)

    return objections


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
