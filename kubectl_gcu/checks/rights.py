"""RBAC of the driver's accounts: whether they may do what the programs do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Installation
from kubectl_gcu.inventory.views import NodeView, ServedBy

RIGHT_MISSING: Final = Check(
    "right-missing", "an account of the driver lacks rights that its program needs"
)


class Right(NamedTuple):
    """A verb on a resource; `group` is empty for the core group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _rights(group: str, resource: str, *verbs: str) -> frozenset[Right]:
    return frozenset(Right(group, resource, verb) for verb in verbs)


_DRA: Final = "resource.k8s.io"
# As the chart's ClusterRoles have them; tests/chart compares both.
NEEDED: Final = {
    ("agent", ServedBy.CLAIMS): (
        _rights(_DRA, "resourceslices", "list", "watch", "create", "update", "delete")
        | _rights(_DRA, "resourceclaims", "get")
        | _rights(_DRA, "resourceclaims/status", "patch")
        | _rights(_DRA, "resourceclaims/driver", "associated-node:patch")
        | _rights("", "nodes", "get")
        | _rights("", "pods", "get")
        | _rights("events.k8s.io", "events", "create")
    ),
    ("controller", ServedBy.CLAIMS): (
        _rights(_DRA, "resourceslices", "list", "watch")
        | _rights(_DRA, "deviceclasses", "list", "watch")
        | _rights(_DRA, "devicetaintrules", "list", "watch")
        | _rights(_DRA, "resourceclaims", "get", "list", "watch", "update")
        | _rights(_DRA, "resourceclaims/status", "update")
        | _rights(_DRA, "resourceclaims/binding", "update")
        | _rights(_DRA, "resourceclaimtemplates", "get", "list", "watch", "create", "delete")
        | _rights("scheduling.k8s.io", "podgroups", "list", "watch")
        | _rights("", "pods", "get", "list", "watch", "patch")
        | _rights("", "nodes", "list", "watch")
        | _rights("", "namespaces", "list", "watch")
        | _rights("", "persistentvolumeclaims", "get")
        | _rights("", "persistentvolumes", "get")
        | _rights("events.k8s.io", "events", "create")
    ),
    ("agent", ServedBy.LIMITS): (
        _rights("", "nodes", "get")
        | _rights("", "nodes/status", "patch")
        | _rights("", "pods", "get", "list", "watch")
        | _rights("events.k8s.io", "events", "create")
    ),
    ("controller", ServedBy.LIMITS): (
        _rights("", "pods", "get", "list", "watch", "patch")
        | _rights("", "nodes", "list", "watch")
        | _rights("", "bindings", "create")
        | _rights("events.k8s.io", "events", "create")
    ),
}

NODE_LABELS: Final = _rights("", "nodes/status", "patch")
"""What the agent needs besides where it labels its Node."""

UNUSED_FOR_SCHEDULER: Final = (
    _rights(_DRA, "resourceclaims/status", "update")
    | _rights(_DRA, "resourceclaims/binding", "update")
    | _rights("", "persistentvolumeclaims", "get")
    | _rights("", "persistentvolumes", "get")
)
"""What the controller does not need where kube-scheduler allocates. Of volumes it reads which nodes
they allow where it names nodes alone."""


def rights(found: Installation, nodes: list[NodeView]) -> Iterator[Finding]:
    """Of the accounts of the driver's pods, whoever made their roles."""
    roles, bindings = found.objects.get(CLUSTER_ROLES), found.objects.get(CLUSTER_ROLE_BINDINGS)
    ways = sorted({node.served_by for node in nodes})
    if roles is None or bindings is None or len(ways) != 1:
        return  # while a cluster moves from limits to claims, it has both
    by_name = {role["metadata"]["name"]: role for role in roles}
    for component in ("agent", "controller"):
        accounts = {
            (pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName", "default"))
            for pod in found.pods(component)
        }
        for namespace, account in sorted(accounts):
            granted = [
                by_name[name]
                for name in _role_names(bindings, namespace, account)
                if name in by_name
            ]
            needed = NEEDED[component, ways[0]]
            if component == "controller" and found.for_scheduler:
                needed -= UNUSED_FOR_SCHEDULER
            if component == "agent" and found.labels_nodes:
                needed |= NODE_LABELS
            missing = [right for right in sorted(needed) if not _allows(granted, right)]
            if missing:
                yield RIGHT_MISSING.finding(
                    f"account {namespace}/{account}",
                    f"the {component} may not {', '.join(map(str, missing))}",
                    "Run helm upgrade again; with rbac.create: false see docs/user/security.md.",
                )


def _role_names(bindings: Iterable[Object], namespace: str, account: str) -> Iterator[str]:
    """Of the ClusterRoles that are bound to the account, by itself or by its groups."""
    groups = {
        "system:authenticated",
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
    }
    user = f"system:serviceaccount:{namespace}:{account}"
    for binding in bindings:
        for subject in binding.get("subjects") or ():
            kind, name = subject["kind"], subject["name"]
            of_account = (kind, name, subject.get("namespace")) == (
                "ServiceAccount",
                account,
                namespace,
            )
            if of_account or (kind == "Group" and name in groups) or (kind, name) == ("User", user):
                yield binding["roleRef"]["name"]


def _allows(roles: Iterable[Object], right: Right) -> bool:
    """Whether for objects of any name; resourceclaims/driver is allowed by the driver's."""
    _, slash, subresource = right.resource.partition("/")
    resources = {right.resource} | ({f"*/{subresource}"} if slash else set())
    return any(
        _has(rule.get("apiGroups"), {right.group})
        and _has(rule.get("resources"), resources)
        and _has(rule.get("verbs"), {right.verb})
        and (not (names := rule.get("resourceNames")) or DRIVER in names)
        for role in roles
        for rule in role.get("rules") or ()
    )


def _has(values: Iterable[str] | None, wanted: AbstractSet[str]) -> bool:
    return bool({"*", *wanted} & set(values or ()))
