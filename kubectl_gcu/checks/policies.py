"""Admission policies of the chart: missing ones, and objects that were changed past the chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_driver.kube.preflight import OLDEST_VISIBLE
from dra_driver.kube.resources import DEVICE_CLASSES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    POLICIES,
    POLICY_BINDINGS,
    WEBHOOKS,
    Installation,
    is_of_chart,
)
from kubectl_gcu.inventory.views import NodeView, ServedBy

POLICY_MISSING: Final = Check(
    "policy-missing", "an admission policy that the chart always installs does not exist"
)
POLICY_UNBOUND: Final = Check(
    "policy-unbound", "an admission policy of the chart has no binding, so it does nothing"
)
WEBHOOK_MISSING: Final = Check(
    "webhook-missing",
    "the webhook's configuration is missing before Kubernetes 1.36, where API servers drop amounts",
)
CHART_TOO_OLD: Final = Check(
    "chart-too-old", "Kubernetes became 1.36 or newer, and the chart is still that for an older one"
)
ALTERED: Final = Check(
    "altered",
    "a role, a binding, a policy or a DeviceClass of the chart was changed by something "
    "else than what installed it (by its `managedFields`)",
)

_ALWAYS: Final = ("agent-claims", "agent-slices", "controller-pods", "events")
# Those that helm renders for any values; tests/chart compares.
NEEDED: Final = {
    ServedBy.CLAIMS: (
        *_ALWAYS,
        "admin-access",
        "controller-claims",
        "controller-templates",
        "request-tolerations",
    ),
    ServedBy.LIMITS: (*_ALWAYS, "agent-nodes", "controller-bindings", "one-kind"),
}
NODE_LABELS: Final = ("agent-nodes",)
"""Where agents label their Nodes."""
_BINDINGS: Final = {POLICIES: POLICY_BINDINGS, MUTATING_POLICIES: MUTATING_POLICY_BINDINGS}
_CONTENT: Final = {"f:spec", "f:rules", "f:roleRef", "f:subjects"}


def policies(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Missing and unbound ones. A cluster that serves claims and limits is on its way from one to
    the other, and has the policies of one."""
    known = found.objects.get(POLICIES)
    ways = {node.served_by for node in nodes}
    if known is not None and len(ways) == 1:
        names = {each["metadata"]["name"] for each in known}
        expected = (*NEEDED[ways.pop()], *(NODE_LABELS if found.labels_nodes else ()))
        needed = {f"{name}.{DRIVER}" for name in expected}
        for name in sorted(needed - names):
            yield POLICY_MISSING.finding(
                f"ValidatingAdmissionPolicy {name}",
                "it does not exist: docs/user/security.md says against what it protects",
                "Run helm upgrade again.",
            )
    for resource, bindings in _BINDINGS.items():
        yield from _unbound(found, resource, bindings)


def _unbound(found: Installation, resource: Resource, bindings: Resource) -> Iterator[Finding]:
    known = found.objects.get(bindings)
    if known is None:
        return
    bound = {each["spec"]["policyName"] for each in known}
    for policy in found.objects.get(resource, ()):
        name = policy["metadata"]["name"]
        if name not in bound:
            yield POLICY_UNBOUND.finding(
                f"{resource.kind} {name}",
                "no binding names it, so it does nothing",
                "Run helm upgrade again.",
            )


def webhook(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Before Kubernetes 1.36 it does what policies do from then on (docs/adr/0025). Another one of
    that name, without amounts, is for limits where there is no DRA."""
    if WEBHOOKS not in found.objects:
        return
    known = [each for each in found.objects[WEBHOOKS] if _moves_amounts(each)]
    is_old = (found.server.major, found.server.minor) < OLDEST_VISIBLE
    if is_old and not known and any(node.served_by is ServedBy.CLAIMS for node in nodes):
        yield WEBHOOK_MISSING.finding(
            f"MutatingWebhookConfiguration {DRIVER}",
            f"it does not exist, and the API server ({found.server}) drops amounts from claims",
            "Run helm upgrade again.",
        )
    if known and not is_old:
        yield CHART_TOO_OLD.finding(
            f"MutatingWebhookConfiguration {known[0]['metadata']['name']}",
            f"it is for Kubernetes before 1.36, and the API server is {found.server}",
            "Run helm upgrade, which installs what belongs to this version: "
            "docs/user/upgrading.md.",
        )


def _moves_amounts(configuration: Object) -> bool:
    return any(each["name"] == f"amounts.{DRIVER}" for each in configuration["webhooks"])


def altered(found: Installation) -> Iterator[Finding]:
    """Objects of the chart whose content another writer owns than the chart's labels."""
    for resource in (
        CLUSTER_ROLES,
        CLUSTER_ROLE_BINDINGS,
        POLICIES,
        POLICY_BINDINGS,
        MUTATING_POLICIES,
        MUTATING_POLICY_BINDINGS,
        DEVICE_CLASSES,
    ):
        for obj in found.objects.get(resource, ()):
            if not is_of_chart(obj):
                continue
            installers, writers = _writers(obj)
            others = sorted(writers - installers)
            if installers and others:
                yield ALTERED.finding(
                    f"{resource.kind} {obj['metadata']['name']}",
                    f"{', '.join(others)} changed what {', '.join(sorted(installers))} installed",
                    "Set it by the chart's values instead: the next helm upgrade may undo it.",
                )


def _writers(obj: Object) -> tuple[set[str], set[str]]:
    """Who owns the label `helm.sh/chart` of the object, and who owns any of its content."""
    installers: set[str] = set()
    writers: set[str] = set()
    for entry in obj["metadata"].get("managedFields") or ():
        fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
        manager = str(entry.get("manager"))
        if entry.get("subresource"):
            continue
        if "f:helm.sh/chart" in ((fields.get("f:metadata") or {}).get("f:labels") or {}):
            installers.add(manager)
        if _CONTENT & fields.keys():
            writers.add(manager)
    return installers, writers
