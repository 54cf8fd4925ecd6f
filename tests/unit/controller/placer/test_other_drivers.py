"""A pod that asks for cards and for devices of other drivers, where kube-scheduler allocates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from controller.allocator.packing.policy import SchedulerPolicy
from controller.cache.cache import OTHER_SLICES, ClusterCache
from controller.filter.node_filter import NodeFilter
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, all_results
from dra_driver.model.errors import Refused
from dra_driver.model.names import ALLOCATOR_SCHEDULER, CLASS_DRS, DRIVER
from dra_driver.selector.selector import Selectors
from tests.control_plane.cards import in_all_modes
from tests.control_plane.interfaces import (
    CPU,
    NET,
    RDMA,
    SAME_ROOT,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    processor,
    request,
    root_of,
    with_device,
)
from tests.control_plane.objects import claim, resource_slices
from tests.unit.controller.allocator.build import CLASSES, taint_rule
from tests.unit.controller.world import node, pod

TAINT: Final = {"key": "down", "effect": "NoSchedule"}
COUNTED: Final[Object] = {
    "consumesCounters": [{"counterSet": "port", "counters": {"n": {"value": "1"}}}]
}
OTHER_VALUE: Final = {"distinctAttribute": f"{NET}/numaNode"}


def shared(bus: int, total: str, *, name: str = "bandwidth") -> Object:
    """An interface that claims share by bandwidth."""
    return interface(bus, allowMultipleAllocations=True, capacity={name: {"value": total}})


def held(node_name: str, *devices: str, driver: str = NET, **more: Any) -> Object:
    """Somebody's claim for devices of another driver."""
    return with_device(claim("held", "other"), node_name, *devices, driver=driver, **more)


class Cluster:
    """Nodes a and b with two cards each, both below one PCIe root. Of equally full nodes, a comes
    first. `others` are slices of other drivers; None if they are not listed."""

    def __init__(
        self,
        *others: Object,
        claims: Sequence[Object] = (),
        rules: Sequence[Object] = (),
        is_listed: bool = True,
    ) -> None:
        self.cache = ClusterCache(Selectors(), for_scheduler=True)
        cards = in_all_modes(0, 1, allocator=ALLOCATOR_SCHEDULER, root=root_of)
        classes = [*CLASSES.values(), device_class(NET), device_class(CPU)]
        self.put(RESOURCE_SLICES, *(each for name in "ab" for each in resource_slices(name, cards)))
        self.put(DEVICE_CLASSES, *classes)
        self.put(NODES, node("a"), node("b"))
        self.put(RESOURCE_CLAIMS, *claims)
        self.put(DEVICE_TAINT_RULES, *rules)
        if is_listed:
            list(self.cache.replace(OTHER_SLICES, map(_stored, others)))
        numbers = self.cache.state().numbers
        nodes = NodeFilter(self.cache, numbers, self.cache.state().selectors.allowance)
        self.placer = Placer(self.cache, nodes, SchedulerPolicy())

    def put(self, resource: Resource, *objects: Object) -> None:
        for each in objects:
            self.cache.apply(resource, Change.ADDED, _stored(each))

    def place(self, *claims: Object) -> Placed | Unplaced:
        given = {each["metadata"]["name"]: _stored(each) for each in claims}
        return self.placer.place(self.placer.read(pod("p", *given), given))

    def named(self, *claims: Object) -> str:
        """The node, with those devices of other drivers that kube-scheduler is expected to take;
        or why there is none."""
        outcome = self.place(*claims)
        if isinstance(outcome, Unplaced):
            return outcome.explain()
        made = outcome.claims(self.cache.state().classes, timestamp="")
        devices = [r.device for each in made for r in all_results(each) if r.driver != DRIVER]
        return " ".join([outcome.node, *devices])


def _stored(obj: Object) -> Object:
    name = obj["metadata"]["name"]
    return obj | {"metadata": {"uid": f"uid-{name}", "resourceVersion": "1"} | obj["metadata"]}


def asking(*others: Object, constraint: Object = SAME_ROOT) -> Object:
    return card_and_interface("c", "default", *others, constraint=constraint)


FREE_ON_B: Final = other_slice("b", [interface(0)])
TOGETHER: Final = "not on one node with what is asked of other drivers (c/net)"


@pytest.mark.parametrize(
    ("others", "claims", "asked", "named"),
    [
        pytest.param([FREE_ON_B], [], asking(), "b pci-0000-00-00-1", id="free on one node"),
        pytest.param(
            [other_slice("a", [interface(0)]), FREE_ON_B],
            [held("a", "pci-0000-00-00-1")],
            asking(),
            "b pci-0000-00-00-1",
            id="held on the other",
        ),
        pytest.param(
            [other_slice("a", [interface(0), interface(1)]), FREE_ON_B],
            [held("a", "pci-0000-00-00-1")],
            asking(),
            "a pci-0000-01-00-1",
            id="one of two is held",
        ),
        pytest.param(
            [other_slice("a", [interface(0)])],
            [held("a", "pci-0000-00-00-1", adminAccess=True)],
            asking(),
            "a pci-0000-00-00-1",
            id="in use by an administrator",
        ),
        pytest.param(
            [other_slice("a", [interface(0)]), FREE_ON_B],
            [held("a", "pci-0000-00-00-1", driver=CPU)],
            asking(),
            "a pci-0000-00-00-1",
            id="a third driver's device has that name",
        ),
        pytest.param(
            [other_slice("a", [interface(0, "pci0000:99")]), FREE_ON_B],
            [],
            asking(),
            "b pci-0000-00-00-1",
            id="below another root",
        ),
        pytest.param([], [], asking(), TOGETHER, id="none anywhere"),
        pytest.param(
            [FREE_ON_B], [held("b", "pci-0000-00-00-1")], asking(), TOGETHER, id="none free"
        ),
        pytest.param(
            [other_slice("a", [interface(0)]), other_slice("b", [interface(0), interface(1)])],
            [],
            asking(request(NET, 2)),
            "b pci-0000-00-00-1 pci-0000-01-00-1",
            id="two of one root",
        ),
        pytest.param(
            [
                other_slice("a", [interface(0), interface(1)]),
                other_slice("b", [interface(0), interface(5)]),
            ],
            [],
            asking(request(NET, 2), constraint=OTHER_VALUE | {"requests": ["net"]}),
            "b pci-0000-00-00-1 pci-0000-05-00-1",
            id="two on different NUMA nodes",
        ),
        pytest.param(
            [other_slice("a", [interface(0, taints=[TAINT])]), FREE_ON_B],
            [],
            asking(),
            "b pci-0000-00-00-1",
            id="tainted",
        ),
        pytest.param(
            [other_slice("a", [interface(0, taints=[TAINT])]), FREE_ON_B],
            [],
            asking(request(NET, tolerations=[{"operator": "Exists"}])),
            "a pci-0000-00-00-1",
            id="tolerated",
        ),
        pytest.param(
            [other_slice("a", [shared(0, "10")]), other_slice("b", [shared(0, "20")])],
            [],
            asking(request(NET, capacity={"requests": {"bandwidth": "15"}})),
            "b pci-0000-00-00-1",
            id="large enough",
        ),
        pytest.param(
            [other_slice("a", [shared(0, "20")]), other_slice("b", [shared(0, "20")])],
            [held("a", "pci-0000-00-00-1", shareID="s", consumedCapacity={"bandwidth": "10"})],
            asking(request(NET, capacity={"requests": {"bandwidth": "15"}})),
            "b pci-0000-00-00-1",
            id="enough left",
        ),
        pytest.param(
            [other_slice("a", [interface(0), interface(1)]), FREE_ON_B],
            [held("a", "pci-0000-01-00-1")],
            asking(request(NET, allocationMode="All")),
            "b pci-0000-00-00-1",
            id="all of a node",
        ),
        pytest.param(
            [other_slice("a", [], CPU, count=2), FREE_ON_B],
            [],
            asking(),
            "b pci-0000-00-00-1",
            id="a third driver's pool is incomplete",
        ),
        pytest.param(
            [other_slice("a", [interface(0)] * 2), FREE_ON_B],
            [],
            asking(),
            "b pci-0000-00-00-1",
            id="what is not known comes after what is",
        ),
    ],
)
def test_devices_of_others(
    others: list[Object], claims: list[Object], asked: Object, named: str
) -> None:
    found = Cluster(*others, claims=claims).named(asked)
    assert found == named or (named is TOGETHER and found.endswith(named))


@pytest.mark.parametrize(
    ("others", "asked"),
    [
        pytest.param([], asking(request("unknown.example.com")), id="no such class"),
        pytest.param(
            [other_slice("a", [interface(0)])],
            asking(request(NET, 1, "device.unknown")),
            id="a selector that has no meaning here",
        ),
        pytest.param(
            [other_slice("a", [interface(0)])],
            asking(request(NET, 1, f'{RDMA}.x == "y"')),
            id="a selector that fails on a device",
        ),
        pytest.param([other_slice("a", [], count=2)], asking(), id="an incomplete pool"),
        pytest.param([other_slice("a", [interface(0), interface(0)])], asking(), id="a name twice"),
        pytest.param([other_slice("a", [interface(0, **COUNTED)])], asking(), id="counters"),
        pytest.param([other_slice("a", [interface(0, newField=1)])], asking(), id="a new field"),
        pytest.param(
            [other_slice("a", [shared(0, "much")])], asking(), id="a quantity that is none"
        ),
        pytest.param(
            [other_slice("far", [interface(0)], allNodes=True)], asking(), id="of several nodes"
        ),
        pytest.param(
            [other_slice("a", [shared(0, "9", name=f"{NET}/bandwidth")])],
            asking(request(NET, capacity={"requests": {"bandwidth": "1"}})),
            id="a capacity by its other name",
        ),
        pytest.param(
            [], asking(request(NET, derivedAttributes=[{"name": "x"}])), id="an unknown field"
        ),
        pytest.param([], asking(constraint={"newConstraint": "x"}), id="an unknown constraint"),
    ],
)
def test_what_is_not_known_keeps_no_pod(others: list[Object], asked: Object) -> None:
    """The node is named by our devices alone."""
    assert Cluster(*others).named(asked) == "a"


def test_ours_alone_decide_until_others_are_listed() -> None:
    cluster = Cluster(FREE_ON_B, is_listed=False)
    given = _stored(asking())
    assert cluster.placer.read(pod("p", "c"), {"c": given}).await_others
    assert cluster.named(asking()) == "a"
    assert not cluster.placer.read(
        pod("p", "d"), {"d": _stored(claim("d", "default"))}
    ).await_others
    list(cluster.cache.replace(OTHER_SLICES, [_stored(FREE_ON_B)]))
    assert cluster.named(asking()) == "b pci-0000-00-00-1"


def test_claims_from_before_the_list_count() -> None:
    taken = held("a", "pci-0000-00-00-1")
    cluster = Cluster(claims=[taken], is_listed=False)
    list(cluster.cache.replace(OTHER_SLICES, [_stored(other_slice("a", [interface(0)]))]))
    assert cluster.named(asking()).endswith(TOGETHER)
    cluster.cache.apply(RESOURCE_CLAIMS, Change.DELETED, _stored(taken))
    assert cluster.named(asking()) == "a pci-0000-00-00-1"


@pytest.mark.parametrize(
    ("driver", "named"), [(NET, "b pci-0000-00-00-1"), (CPU, "a pci-0000-00-00-1")]
)
def test_rules_of_administrators(driver: str, named: str) -> None:
    rule = taint_rule("r", {"driver": driver, "pool": "a"}, TAINT)
    others = other_slice("a", [interface(0)]), FREE_ON_B
    assert Cluster(*others, rules=[rule]).named(asking()) == named
    later = Cluster(*others)
    assert later.named(asking()) == "a pci-0000-00-00-1"
    later.put(DEVICE_TAINT_RULES, rule)
    assert later.named(asking()) == named


def test_claims_of_three_drivers() -> None:
    """Of which one is ours: both others have what is asked on b alone."""
    others = [
        other_slice("a", [interface(0)]),
        FREE_ON_B,
        other_slice("a", [processor(n) for n in range(3)], CPU),
        other_slice("b", [processor(n) for n in range(8)], CPU),
    ]
    net, cpu = claim("net", "default"), claim("cpu", "default")
    net["spec"]["devices"] = {"requests": [request(NET)]}
    cpu["spec"]["devices"] = {"requests": [request(CPU, 4)]}
    cluster = Cluster(*others)
    processors = " ".join(f"cpudev{n:03}" for n in range(4))
    assert cluster.named(claim("gcu", "default"), net, cpu) == f"b pci-0000-00-00-1 {processors}"
    cpu["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "unknown.example.com"
    assert cluster.named(claim("gcu", "default"), net, cpu) == "a pci-0000-00-00-1"


def test_two_claims_do_not_get_one_device() -> None:
    net, more = claim("net", "default"), claim("more", "default")
    for each in (net, more):
        each["spec"]["devices"] = {"requests": [request(NET)]}
    both = other_slice("b", [interface(0), interface(1)])
    cluster = Cluster(other_slice("a", [interface(0)]), both)
    named = cluster.named(claim("gcu", "default"), net, more)
    assert named == "b pci-0000-00-00-1 pci-0000-01-00-1"


def test_many_devices_of_others_do_not_stop_the_search() -> None:
    """No two are below one root, and each choice for the request before is tried; ours alone decide
    then."""
    several = [interface(bus, f"pci0000:{bus:02x}") for bus in range(120)]
    asked = asking(
        request(NET, 2) | {"name": "any"},
        request(NET, 2),
        constraint=SAME_ROOT | {"requests": ["net"]},
    )
    assert Cluster(other_slice("a", several)).named(asked) == "a"


@pytest.mark.parametrize("last", [4, 5])
def test_shared_devices_with_different_use_are_tried_both(last: int) -> None:
    """Four of the first and seven of the second one are left."""
    devices = [shared(0, "10"), shared(1, "10")]
    taken = [
        held(
            "a", f"pci-0000-{bus:02x}-00-1", shareID=f"{bus}", consumedCapacity={"bandwidth": used}
        )
        | {"metadata": {"name": f"held-{bus}", "namespace": "other"}}
        for bus, used in enumerate(("6", "3"))
    ]
    asked = asking(
        *(
            request(NET, capacity={"requests": {"bandwidth": str(amount)}}) | {"name": f"net-{n}"}
            for n, amount in enumerate((3, 4, last))
        ),
        constraint=SAME_ROOT | {"requests": ["gcu"]},
    )
    named = Cluster(other_slice("a", devices), claims=taken).named(asked)
    second, first = "pci-0000-01-00-1", "pci-0000-00-00-1"
    if last == 4:
        assert named == f"a {second} {first} {second}"
    else:
        assert "not on one node with what is asked of other drivers" in named


def test_without_a_card_others_are_not_to_blame() -> None:
    cards = [
        with_device(
            claim(name, "other"),
            f"{DRIVER}/{name}",
            *(f"whole-0000-{bus:02x}-00-0" for bus in (0, 1)),
            driver=DRIVER,
        )
        for name in "ab"
    ]
    assert Cluster(claims=cards).named(asking()).startswith("4 cards: 4 held; 1 requested")
    assert "other drivers" not in Cluster(claims=cards).named(asking())


def test_configuration_of_ours_is_not_for_others() -> None:
    """It names no request, and so holds for all requests of ours."""
    asked = asking()
    parameters = {"apiVersion": "gcu.enflame.com/v1alpha1", "kind": "GcuConfig", "memory": "9Gi"}
    devices = asked["spec"]["devices"]
    devices["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    devices["requests"][0]["exactly"] |= {
        "deviceClassName": "shared-gcu.enflame.com",
        "capacity": {"requests": {"slices": "2"}},  # as the webhook writes it
    }
    assert Cluster(FREE_ON_B).named(asked) == "b pci-0000-00-00-1"


def test_containers_may_use_a_device_of_others_beside_an_instance() -> None:
    """No variable of ours names it."""
    asked = asking()
    devices = asked["spec"]["devices"]
    devices["requests"][0]["exactly"]["deviceClassName"] = CLASS_DRS
    assert Cluster(FREE_ON_B).named(asked) == "b pci-0000-00-00-1"


def test_alternatives_of_different_drivers_are_left_to_kube_scheduler() -> None:
    subs = [
        {"name": "gcu", "deviceClassName": "gcu.enflame.com"},
        {"name": "net", "deviceClassName": NET},
    ]
    asked = claim("c", "default")
    asked["spec"]["devices"]["requests"] = [{"name": "any", "firstAvailable": subs}]
    with pytest.raises(Refused, match="request any/net"):
        Cluster(FREE_ON_B).named(asked)
