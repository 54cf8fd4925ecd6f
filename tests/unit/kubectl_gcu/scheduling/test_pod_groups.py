"""What `kubectl gcu explain` says about a pod that waits for its PodGroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.scheduling.explanation import lines
from kubectl_gcu.scheduling.held import NEXT_OF_HELD_BACK
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.test_pod_groups import group
from tests.unit.controller.world import pod
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.server import by_controller, cluster

NEEDS = "  group:  PodGroup default/g needs 2 pods "


def member(name: str, **more: Any) -> Object:
    return pod(name, f"c-{name}", schedulingGroup={"podGroupName": "g"}, **more)


def held(name: str) -> Object:
    return by_controller(allocated(f"c-{name}", "a", f"whole-{name}"))


def server(
    *members: Object,
    claims: Sequence[Object],
    groups: Sequence[Object] = (group("g", 2),),
    version: Resource = POD_GROUPS,
) -> Any:
    return cluster(
        *((PODS, each) for each in members),
        *((RESOURCE_CLAIMS, each) for each in claims),
        *((version, each) for each in groups),
    )


def refuses(found: Any, error: Exception, *resources: Resource) -> Any:
    """The server, with this answer to lists of these kinds."""
    answer = found.list

    def listed(resource: Resource, *, forbids: bool = True, **options: Any) -> Any:
        if forbids and resource in resources:
            raise error
        return answer(resource, **options)

    found.list = listed
    return found


def test_nothing_is_allocated_for_a_gang_with_too_few_pods() -> None:
    found = explained(server(member("p"), claims=[claim("c-p")]))
    assert found.verdict is None
    assert list(lines(found)) == [
        "pod default/p",
        "  next:   whoever creates the pods of PodGroup default/g",
        f"  why:    {found.step.text}",
        f"{NEEDS}(existing: 1, with devices: 0, bound: 0)",
    ]
    assert found.step.text.startswith(
        "PodGroup default/g needs 2 pods that have their ResourceClaims, and 1 has them"
    )


def test_a_gang_whose_pods_exist_waits_for_devices() -> None:
    found = explained(
        server(member("p"), member("q"), claims=[claim("c-p"), held("q")], version=POD_GROUPS)
    )
    assert found.verdict is not None
    assert f"{NEEDS}(existing: 2, with devices: 1, bound: 0)" in list(lines(found))


def test_members_that_have_ended_or_are_of_another_group_do_not_count() -> None:
    ended = member("q", status={"phase": "Failed"})
    other = pod("r", "c-r", schedulingGroup={"podGroupName": "h"})
    claims = [claim(f"c-{name}") for name in "pqr"]
    assert explained(server(member("p"), ended, other, claims=claims)).group.endswith(
        "needs 2 pods (existing: 1, with devices: 0, bound: 0)"
    )


def test_a_gang_that_holds_devices_and_lacks_a_pod() -> None:
    found = list(lines(explained(server(member("p"), claims=[held("p")]))))
    assert found[1:3] == [
        "  next:   whoever creates the pods of PodGroup default/g",
        "  holds:  whole-p of node a",
    ]
    assert found[4:] == [
        f"{NEEDS}(existing: 1, with devices: 1, bound: 0)",
        f"  then:   {NEXT_OF_HELD_BACK}",
    ]


def test_a_gated_gang_of_which_one_pod_is_served() -> None:
    gates = [{"name": SCHEDULING_GATE}]
    members = [member(name, schedulingGates=gates) for name in "pq"]
    found = explained(server(*members, claims=[held("p"), claim("c-q")]))
    assert (found.step.who, found.step.text) == (
        "the controller",
        "the scheduling gate goes when enough pods of its PodGroup have their devices",
    )


@pytest.mark.parametrize("size", [0, 2])
def test_a_member_with_a_gate_of_others_holds_all(size: int) -> None:
    gated = member("q", schedulingGates=[{"name": "x.io/hold"}])
    found = explained(server(member("p"), gated, claims=[held("p")], groups=[group("g", size)]))
    assert found.step.who == "whoever set the scheduling gate"
    assert "is held by a scheduling gate" in found.step.text
    assert found.group


def test_a_pod_group_that_does_not_exist() -> None:
    found = explained(server(member("p"), claims=[claim("c-p")], groups=[]))
    assert (found.step.who, found.step.waits_for_devices) == ("whoever creates the PodGroup", False)
    assert found.step.text.startswith("PodGroup default/g does not exist")


@pytest.mark.parametrize(
    ("members", "size"),
    [
        pytest.param(
            [member("p"), member("q", nodeName="a"), member("r", nodeName="a")], 2, id="g"
        ),
        pytest.param([member("p")], 0, id="a Basic group"),
    ],
)
def test_a_pod_that_waits_for_no_other(members: Sequence[Object], size: int) -> None:
    claims = [held(name) for name in "pqr"]
    found = explained(server(*members, claims=claims, groups=[group("g", size)]))
    assert (found.group, found.step.who) == ("", "kube-scheduler")


def test_the_older_version_is_read_where_the_newer_is_not_served() -> None:
    older = server(member("p"), claims=[claim("c-p")], version=POD_GROUPS_V1BETA1)
    missing = NotFound("no such kind", status=404)
    assert explained(refuses(older, missing, POD_GROUPS)).group
    # The answer of a server that has no such kind to a user without the right.
    older = server(member("p"), claims=[claim("c-p")], version=POD_GROUPS_V1BETA1)
    found = explained(refuses(older, Forbidden("no", status=403), POD_GROUPS))
    assert (bool(found.group), found.missing) == (True, "")


def test_a_server_without_pod_groups() -> None:
    missing = NotFound("no such kind", status=404)
    found = server(member("p"), claims=[claim("c-p")], groups=[])
    found = explained(refuses(found, missing, POD_GROUPS, POD_GROUPS_V1BETA1))
    assert (found.group, found.missing, found.step.who) == ("", "", "the allocator")


def test_what_the_user_may_not_read() -> None:
    forbidden = Forbidden("no", status=403)
    versions = (POD_GROUPS, POD_GROUPS_V1BETA1)
    found = explained(refuses(server(member("p"), claims=[held("p")]), forbidden, *versions))
    assert found.missing == (
        "you may not list podgroups of scheduling.k8s.io in the namespace default: how many pods "
        "the PodGroup default/g needs is not shown"
    )
    assert found.group == ("PodGroup default/g (existing: 1, with devices: 1, bound: 0)")
    assert found.step.text == (
        "no scheduler has tried it; if PodGroup default/g is a gang, its pods are bound together"
    )
    found = explained(refuses(server(member("p"), claims=[held("p")]), forbidden, PODS))
    assert found.group == ""
    assert found.missing == (
        "you may not list pods and resourceclaims in the namespace default: how many pods of the "
        "PodGroup default/g there are is not shown"
    )
