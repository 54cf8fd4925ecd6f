"""A real control plane with PodGroups, and gangs as users make them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench import fleet
from bench.fleet import Object
from bench.programs import UNLIMITED
from bench.published import claim_of, for_all
from bench.report import say
from bench.scenarios import Ask, Scenario
from bench.users import NAMESPACE
from dra_driver.kube.client import Client
from dra_driver.kube.resources import NODES, POD_GROUPS_V1BETA1, PODS, RESOURCE_CLAIMS
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra
from tests.control_plane.objects import pod_with, with_cpu
from tests.control_plane.pod_groups import GATES, SERVED, pod_group

RACK: Final = "rack"
"""A label of nodes."""

_CPU: Final = "2"


@contextmanager
def cluster_with_groups() -> Iterator[Cluster]:
    """Without nodes; it is gone afterwards."""
    settings = Settings(
        f"bench-{os.getpid()}",
        kubernetes=chosen_with_dra(),
        keep_nodes_ready=True,
        feature_gates=GATES,
        extra_flags={
            **UNLIMITED,
            "kube-apiserver": (*UNLIMITED["kube-apiserver"], SERVED),
        },
    )
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        yield cluster
    finally:
        cluster.down()


def label_racks(api: Client, nodes: int, racks: int) -> dict[str, str]:
    """So many nodes are in racks of equal size: by node the value of the label."""
    found = {fleet.node_name(number): f"r{number * racks // nodes}" for number in range(nodes)}
    for_all(
        lambda name: api.patch(NODES, name, {"metadata": {"labels": {RACK: found[name]}}}),
        [*found],
    )
    return found


@dataclass(frozen=True, slots=True)
class Gangs:
    """In the users' namespace. Each pod asks for a card, if it `has_claim`, and for cpu."""

    cluster: Cluster
    api: Client

    def start(
        self,
        scenario: Scenario,
        group: str,
        names: Sequence[str],
        *,
        topology_key: str = "",
        has_claim: bool = True,
    ) -> None:
        """The group, and then its pods of these names, many at a time."""
        topology = {"topology": [{"key": topology_key}]}
        constraints = {"schedulingConstraints": topology} if topology_key else {}
        made = pod_group(group, NAMESPACE, least=len(names), **constraints)
        self.api.create(POD_GROUPS_V1BETA1, made)
        request = Ask.WHOLE.request(scenario.devices)
        if has_claim:
            for_all(
                lambda name: self.api.create(RESOURCE_CLAIMS, claim_of(name, NAMESPACE, [request])),
                names,
            )
        for_all(
            lambda name: self.api.create(PODS, _member(scenario, group, name, has_claim=has_claim)),
            names,
        )

    def end_groups(self) -> None:
        """Their pods are gone already."""
        self.cluster.kubectl("delete", "podgroups", "--all", f"--namespace={NAMESPACE}")


def _member(scenario: Scenario, group: str, name: str, *, has_claim: bool) -> Object:
    pod = scenario.pod(name, NAMESPACE, name) if has_claim else pod_with(name, NAMESPACE)
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return with_cpu(pod, _CPU)
