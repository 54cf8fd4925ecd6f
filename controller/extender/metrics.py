"""What the extender counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """`seconds` by verb; `calls` by verb and outcome: served (also when no node has room), refused
    (this replica does not lead or has not read the cluster yet, or the node of a bind has no room
    any more), failed. `refused_by_node` counts pods that came to a node which did not admit them:
    a cache that was not up to date. `certificate_ends` is
    Unix time by certificate: server, client, authority."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "gcu_extender_call_seconds",
            "How long kube-scheduler's calls took.",
            ["verb"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.calls = Counter(
            "gcu_extender_calls", "Calls by how they ended.", ["verb", "outcome"], registry=registry
        )
        self.refused_by_node = Counter(
            "gcu_extender_refused_by_node",
            "Pods that their node did not admit (UnexpectedAdmissionError).",
            registry=registry,
        )
        self.waiting = Gauge(
            "gcu_extender_waiting_pods", "Pods that no node could take.", registry=registry
        )
        self.certificate_ends = Gauge(
            "gcu_extender_certificate_expiration_timestamp_seconds",
            "When the certificates of extender (server), kube-scheduler (client) and CA expire.",
            ["certificate"],
            registry=registry,
        )
