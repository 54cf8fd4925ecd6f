"""What the extender counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs


class Metrics:
    """`certificate_ends` is Unix time by certificate: server, client, authority."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = specs.EXTENDER_CALL_SECONDS.register(registry)
        self.calls = specs.EXTENDER_CALLS.register(registry)
        self.refused_by_node = specs.EXTENDER_REFUSED_BY_NODE.register(registry)
        self.waiting = specs.EXTENDER_WAITING_PODS.register(registry)
        self.bypassed = specs.EXTENDER_BYPASSED_PODS.register(registry)
        self.certificate_ends = specs.EXTENDER_CERTIFICATE_END.register(registry)
