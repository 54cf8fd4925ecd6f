"""The rights of the controller, and a kubeconfig that has these and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dra_driver.model.claim import Object
from tests.cluster.cluster import Cluster

NAMESPACE = "default"
NAME = "gcu-dra-controller"

_DRA = "resource.k8s.io"
CLUSTER_RULES: list[Object] = [
    {
        "apiGroups": [_DRA],
        "resources": ["resourceslices", "deviceclasses"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": [_DRA],
        "resources": ["resourceclaims"],
        "verbs": ["get", "list", "watch", "update"],
    },
    {
        "apiGroups": [_DRA],
        "resources": ["resourceclaims/status", "resourceclaims/binding"],
        "verbs": ["update"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]
LEASE_RULES: list[Object] = [
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "update"],
        "resourceNames": [NAME],
    },
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
]


def grant(cluster: Cluster) -> None:
    """Make the service account and bind its roles."""
    meta = {"name": NAME, "namespace": NAMESPACE}
    subjects = [{"kind": "ServiceAccount", **meta}]
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": rbac,
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": CLUSTER_RULES,
        },
        _binding("ClusterRoleBinding", "ClusterRole", {"name": NAME}, subjects),
        {"apiVersion": rbac, "kind": "Role", "metadata": meta, "rules": LEASE_RULES},
        _binding("RoleBinding", "Role", meta, subjects),
    )


def kubeconfig(cluster: Cluster, path: Path) -> Path:
    """Write a kubeconfig for the service account, with a token of its own."""
    admin = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    token = cluster.kubectl("create", "token", NAME, "--namespace", NAMESPACE).strip()
    name = {"name": NAME}
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": admin["clusters"][0]["cluster"]}],
        "users": [{**name, "user": {"token": token}}],
        "contexts": [{**name, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return path


def _binding(
    kind: str, role: str, metadata: Object, subjects: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME},
        "subjects": subjects,
    }
