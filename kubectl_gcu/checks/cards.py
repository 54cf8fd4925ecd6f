"""Cards as the nodes offer them: problems, more allocated than there is, other device plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dra_driver.kube.resources import DEVICE_CLASSES as CLASSES_RESOURCE
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    DEVICE_CLASSES,
    DRIVER,
    RESOURCE_COUNT,
    TAINT_CHANGING,
    TAINT_FOREIGN,
    VENDOR_PREFIX,
)
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.inventory.by_claims import BY_RULE, NOT_PUBLISHED
from kubectl_gcu.inventory.problem_pages import page_of
from kubectl_gcu.inventory.views import CardView, Holder, NodeView, ServedBy

_OWN_LIMITS: Final = {RESOURCE_COUNT, *RESOURCES.values()}
_FOREIGN, _CHANGING = (key.removeprefix(f"{DRIVER}/") for key in (TAINT_FOREIGN, TAINT_CHANGING))
"""Problems without a value."""

_CAUSE: Final = "remove what tolerates the taint gcu.enflame.com/allocated-by"
_CAUSE_BY_SCHEDULER: Final = (
    "see whether kube-scheduler is 1.36.3 or newer (docs/user/which-allocator.md)"
)

CLASS_MISSING: Final = Check("class-missing", "a DeviceClass of the driver does not exist")
CARD_PROBLEM: Final = Check(
    "card-problem",
    "a card takes nothing new, with the reason and who holds it; or a claim holds "
    "a card that no agent publishes",
)
OVER_ALLOCATED: Final = Check("over-allocated", "more of a card is allocated than there is")
INCOMPLETE_POOL: Final = Check(
    "incomplete-pool", "ResourceSlices of a node are missing, and its devices are not allocated"
)
OTHER_PLUGIN: Final = Check(
    "other-plugin",
    "another device plugin gives the same cards to pods: the vendor's, gcushare or "
    "HAMi. Not found: one with the resource names of this driver's own, on the same node",
)


def classes(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """DeviceClasses, where a node serves claims."""
    known = found.objects.get(CLASSES_RESOURCE)
    if known is None or all(node.served_by is not ServedBy.CLAIMS for node in nodes):
        return
    for name in sorted(set(DEVICE_CLASSES) - {each["metadata"]["name"] for each in known}):
        yield CLASS_MISSING.finding(
            f"DeviceClass {name}",
            "it does not exist, so no claim can name it",
            "Run helm upgrade again.",
        )


def cards(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Each card of the inventory. That a free card is foreign because of another device plugin is
    left out: `other_plugins` reports its node."""
    unready = found.unready_nodes()
    offered = _offered_by_others(found, nodes)
    for node in nodes:
        by_plugin = node.name in offered and _is_tainted(node)
        for card in node.cards:
            left_out = {_FOREIGN} if by_plugin and not card.holders else set()
            left_out |= {NOT_PUBLISHED} if node.name in unready else set()
            problems = [each for each in card.problems if each not in left_out]
            where = f"node {node.name}, card {card.address}"
            yield from _problems(where, card, problems)
            yield from _over_allocated(where, card, for_scheduler=found.for_scheduler)


def _problems(where: str, card: CardView, problems: Iterable[str]) -> Iterator[Finding]:
    for problem in problems:
        held = _holders(card.holders)
        holders = f"; held by {held}" if held else ""
        remedy = f"{page_of(problem)} says what to do."
        if problem == _CHANGING:
            remedy = (
                f"Nothing is to be done: when its last claim ends, it is offered as configured "
                f"({page_of(problem)})."
            )
        _, by_rule, rule = problem.partition(BY_RULE)
        if by_rule:
            remedy = (
                f"Delete the rule when the card may be used: kubectl delete devicetaintrule {rule}."
            )
        if problem == _FOREIGN and any(each.mode is Mode.DRS for each in card.holders):
            remedy = (
                "The agent's records may be lost: then the instance is the holder's. Do not "
                "destroy it while the pod runs "
                "(docs/user/health.md#when-the-agents-records-are-lost)."
            )
        yield CARD_PROBLEM.finding(where, f"{problem}{holders}", remedy)


def _over_allocated(where: str, card: CardView, *, for_scheduler: bool) -> Iterator[Finding]:
    owners = [each for each in card.holders if not each.admin]
    modes = {each.mode for each in owners}
    if len(modes) < 2 and not (card.mode and card.total and card.used > card.total):
        return
    remedy = "Delete one of these pods."
    if any(each.claim for each in owners):
        remedy = (
            f"Delete one of these claims with its pods, and {_CAUSE_BY_SCHEDULER}."
            if for_scheduler
            else f"Delete one of these claims with its pods, and {_CAUSE}."
        )
    yield OVER_ALLOCATED.finding(
        where,
        f"more is allocated than there is: {card.used} of {card.total}, by {_holders(owners)}",
        remedy,
    )


def _holders(holders: Iterable[Holder]) -> str:
    """The claims; of pods with limits, the pods."""
    names = {each.claim or ", ".join(map(str, each.pods)) for each in holders}
    return ", ".join(sorted(names - {""}))


def pools(found: Installation) -> Iterator[Finding]:
    """Whether each pool has all slices of its newest generation."""
    slices: dict[str, dict[int, list[int]]] = {}
    for pool in (each["spec"]["pool"] for each in found.state.slices):
        counts = slices.setdefault(pool["name"], {}).setdefault(pool["generation"], [])
        counts.append(int(pool["resourceSliceCount"]))
    unready = found.unready_nodes()
    for name, generations in sorted(slices.items()):
        counts = generations[max(generations)]
        node = name.removeprefix(f"{DRIVER}/")
        if len(counts) < max(counts) and node not in unready:
            yield INCOMPLETE_POOL.finding(
                f"node {node}",
                f"it has {len(counts)} of {max(counts)} ResourceSlices, so nothing is allocated",
                "The agent writes the others within seconds; if not, see its log.",
            )


def other_plugins(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Resources below ``enflame.com/`` that are not this driver's."""
    views = {node.name: node for node in nodes}
    for name, resources in _offered_by_others(found, nodes).items():
        what = f"another device plugin offers {', '.join(resources)} of the same cards"
        remedy = "Uninstall it: two programs that do not know of each other give one card twice."
        if name in views and _is_tainted(views[name]):
            what += ", so its cards have the taint foreign, and no claim gets them"
            remedy = (
                "This is normal during a migration: docs/user/migrating-from-gcushare.md says how "
                "to end it."
            )
        yield OTHER_PLUGIN.finding(f"node {name}", what, remedy)


def _offered_by_others(found: Installation, nodes: list[NodeView]) -> Mapping[str, tuple[str, ...]]:
    """By node the resources of other device plugins, sorted."""
    by_claims = {node.name for node in nodes if node.served_by is ServedBy.CLAIMS}
    offered: dict[str, tuple[str, ...]] = {}
    for node in found.state.nodes:
        name = str(node["metadata"]["name"])
        own = {RESOURCE_COUNT} if name in by_claims else _OWN_LIMITS
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        others = sorted(
            resource
            for resource, amount in allocatable.items()
            if resource.startswith(VENDOR_PREFIX) and amount != "0" and resource not in own
        )
        if others:
            offered[name] = tuple(others)
    return offered


def _is_tainted(node: NodeView) -> bool:
    """Whether the agent gives no card of the node to claims, as it has seen the plugin, too."""
    published = [card for card in node.cards if NOT_PUBLISHED not in card.problems]
    return bool(published) and all(_FOREIGN in card.problems for card in published)
