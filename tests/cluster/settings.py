"""What one may choose about a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.versions import DEFAULT_KUBERNETES, release


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices; all but the name have defaults.

    `extra_flags` maps a component's name (kube-apiserver, kube-scheduler,
    kube-controller-manager, kube-proxy, kubelet, etcd, containerd) to flags put after ours.
    `kubelet_config` is merged over our KubeletConfiguration.
    `keep_nodes_ready` is for Node objects without a kubelet: nobody renews their leases, so the
    node lifecycle controller is told to wait a day before it doubts a node.
    """

    name: str
    kubernetes: str = DEFAULT_KUBERNETES
    nodes: int = 0
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    extra_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kubelet_config: Mapping[str, Any] = field(default_factory=dict)
    keep_nodes_ready: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Settings:
        """The settings that `dataclasses.asdict` and JSON were given."""
        flags = {name: tuple(flags) for name, flags in raw["extra_flags"].items()}
        return cls(**{**raw, "extra_flags": flags})

    def node_names(self) -> tuple[str, ...]:
        """gcu-node-1, gcu-node-2, …"""
        return tuple(f"gcu-node-{number}" for number in range(1, self.nodes + 1))

    def flags(self, component: str) -> tuple[str, ...]:
        """Those of the version, then the chosen feature gates and flags, to be put last: there the
        later one wins."""
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in self.feature_gates.items())
        return (
            *release(self.kubernetes).flags.get(component, ()),
            *((f"--feature-gates={gates}",) if gates else ()),
            *self.extra_flags_of(component),
        )

    def extra_flags_of(self, component: str) -> tuple[str, ...]:
        """The flags chosen for one component, without the feature gates."""
        return self.extra_flags.get(component, ())
