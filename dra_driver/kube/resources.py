"""The kinds of API objects that the project reads and writes, and their paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from dra_driver.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server serves it; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The value of an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path; without `namespace` of all namespaces, without `name` of the list.

        Raises InvalidValue for an impossible name, which would lead to another path.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        parts += [_segment(part) for part in (name, subresource) if part]
        return "/".join(parts)


def _segment(name: str) -> str:
    """The name as a segment of a path. Dots alone cannot be quoted, and clients resolve them."""
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in {"", ".", ".."}:
        raise InvalidValue(f"{name!r} is no name of an API object")
    return quoted


RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATES: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
DEVICE_TAINT_RULES: Final = Resource(
    "resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", False
)
# The version that Kubernetes 1.36 has; off by default there.
DEVICE_TAINT_RULES_V1BETA2: Final = Resource(
    "resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule", False
)
PODS: Final = Resource("", "v1", "pods", "Pod", True)
# Groups of pods: v1beta1 since Kubernetes 1.37, off by default there.
POD_GROUPS: Final = Resource("scheduling.k8s.io", "v1", "podgroups", "PodGroup", True)
POD_GROUPS_V1BETA1: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)
BINDINGS: Final = Resource("", "v1", "bindings", "Binding", True)
MUTATING_WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
)
NODES: Final = Resource("", "v1", "nodes", "Node", False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", False)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", True)
# The same events in an older form, the only one that the roles view, edit and admin allow before
# Kubernetes 1.35 (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
CORE_EVENTS: Final = Resource("", "v1", "events", "Event", True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
PERSISTENT_VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True
)
