"""A cluster that stays until it is taken down: started, or used again where it is up already."""

from __future__ import annotations

from tests.cluster import state
from tests.cluster.build import Report
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.settings import Settings
from tests.cluster.teardown import sweep


def up_or_attach(settings: Settings, report: Report) -> Cluster:
    """The cluster of these settings, without an owner, once its nodes are ready.

    Raises ClusterError where the one of that name has other settings.
    """
    sweep()
    found = state.load(settings.name)
    if found is None:
        report(f"starting {settings.nodes} nodes of Kubernetes {settings.kubernetes}")
        return Cluster.up(settings, owner=None, report=report)
    if found.settings != settings:
        raise ClusterError(
            f"{settings.name} is up already, but with {found.settings.nodes} nodes of Kubernetes "
            f"{found.settings.kubernetes}; take it down first (`make cluster-down`), or give the "
            "new one another --name"
        )
    cluster = Cluster.attach(settings.name)
    cluster.wait_ready()
    report(f"{settings.name}: is up already, all {settings.nodes} nodes are ready")
    return cluster
