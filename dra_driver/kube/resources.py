"""The kinds of API objects that the project reads and writes, and their paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
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


_core: Final = partial(Resource, "", "v1")
_dra: Final = partial(Resource, "resource.k8s.io", "v1")

RESOURCE_SLICES: Final = _dra("resourceslices", "ResourceSlice", False)
RESOURCE_CLAIMS: Final = _dra("resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATES: Final = _dra("resourceclaimtemplates", "ResourceClaimTemplate", True)
DEVICE_CLASSES: Final = _dra("deviceclasses", "DeviceClass", False)
DEVICE_TAINT_RULES: Final = _dra("devicetaintrules", "DeviceTaintRule", False)
# The version that Kubernetes 1.36 has; off by default there.
DEVICE_TAINT_RULES_V1BETA2: Final = replace(DEVICE_TAINT_RULES, version="v1beta2")
PODS: Final = _core("pods", "Pod", True)
# Groups of pods: v1beta1 since Kubernetes 1.37, off by default there.
POD_GROUPS: Final = Resource("scheduling.k8s.io", "v1", "podgroups", "PodGroup", True)
POD_GROUPS_V1BETA1: Final = replace(POD_GROUPS, version="v1beta1")
BINDINGS: Final = _core("bindings", "Binding", True)
MUTATING_WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
)
NODES: Final = _core("nodes", "Node", False)
NAMESPACES: Final = _core("namespaces", "Namespace", False)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", True)
# The same events in an older form, the only one that the roles view, edit and admin allow before
# Kubernetes 1.35 (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
CORE_EVENTS: Final = _core("events", "Event", True)
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount", True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
PERSISTENT_VOLUMES: Final = _core("persistentvolumes", "PersistentVolume", False)
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim", True)
