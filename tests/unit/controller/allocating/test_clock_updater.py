"""What the clocks learn from changes of claims, pods and groups of pods."""

from __future__ import annotations

from typing import Any, Final

import pytest

from controller.allocating.backoff import Allocated
from controller.allocating.clock_updater import ClockUpdater
from controller.allocating.clocks import Clocks
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.claims import MANAGER
from controller.cache.pod_groups import Member
from controller.settings import ControllerSettings
from dra_driver.kube.api import Change
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import FINALIZER, SCHEDULING_GATE
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.test_pod_groups import group
from tests.unit.controller.world import pod

NOW: Final = 1000.0
QUIET: Final = 5.0
GROUP: Final = {"podGroupName": "g"}


class World:
    """A cache whose changes the updater is given at the time `now`."""

    def __init__(self) -> None:
        self.now = NOW
        self.cache = ClusterCache(Selectors())
        list(self.cache.replace(POD_GROUPS, []))
        self.clocks = Clocks.of(ControllerSettings(quiet_time=QUIET), draw=lambda: 0.0)
        self._updater = ClockUpdater(self.cache, self.clocks, quiet_time=QUIET)
        self._version = 0

    def put(self, resource: Resource, obj: Object, change: Change = Change.MODIFIED) -> None:
        self._version += 1
        known = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(self._version)}
        changed = self.cache.apply(resource, change, obj | {"metadata": obj["metadata"] | known})
        assert changed is not None
        self._updater.on_change(changed, self.now)

    def remove(self, resource: Resource, obj: Object) -> None:
        self.put(resource, obj, Change.DELETED)

    def give_up(self, name: str = "c", **how: Any) -> None:
        """A claim that was allocated is not any more."""
        self.put(RESOURCE_CLAIMS, on_a(name, **how))
        self.put(RESOURCE_CLAIMS, protected(claim(name)))

    def released(self) -> float | None:
        """When the claim was released, as far as is known."""
        backoff = self.clocks.backoff
        return backoff.quiet_until("uid-c") - QUIET if backoff.was_released("uid-c") else None

    def avoided(self, name: str = "p") -> set[str]:
        """The nodes that the pod avoids."""
        return set(self.clocks.backoff.nodes_in_backoff(f"uid-{name}", self.now))

    def paused_until(self, unit: str) -> float:
        return self.clocks.bind.paused_until(unit, None)


def protected(found: Object) -> Object:
    return found | {"metadata": found["metadata"] | {"finalizers": [FINALIZER]}}


def on_a(name: str, manager: str = MANAGER, *, reserved: tuple[str, ...] = ()) -> Object:
    """The claim, which that manager allocated on node `a`, reserved for these UIDs."""
    found = protected(allocated(name, "a", "whole-0000-01-00-0"))
    found["metadata"]["managedFields"] = written_by(manager)
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    found["status"]["allocation"]["nodeSelector"] = selector
    found["status"]["reservedFor"] = [{"resource": "pods", "name": u, "uid": u} for u in reserved]
    return found


def grouped(*members: Member, min_count: int = 2) -> World:
    """Pods `p`, `p1`, … with claims `c`, `c1`, …, in a group."""
    world = World()
    world.put(POD_GROUPS, group("g", min_count))
    for number, member in enumerate(members):
        suffix = str(number or "")
        world.put(RESOURCE_CLAIMS, claim(f"c{suffix}"))
        world.put(PODS, pod(f"p{suffix}", f"c{suffix}", schedulingGroup=GROUP))
        found = world.cache.get(pods.key_of(pod(f"p{suffix}")))
        assert found is not None
        world.cache.groups.set_found(found, member)
    return world


@pytest.mark.parametrize(
    ("before", "after", "is_released"),
    [
        pytest.param(on_a("c"), claim("c"), True, id="it was allocated"),
        pytest.param(on_a("c", "other"), claim("c"), True, id="by another allocator"),
        pytest.param(None, protected(claim("c")), True, id="it was allocated before it was seen"),
        pytest.param(None, claim("c"), False, id="a new claim"),
        pytest.param(claim("c"), protected(claim("c")), False, id="it is about to be allocated"),
        pytest.param(claim("c"), on_a("c"), False, id="it is allocated"),
        pytest.param(None, on_a("c"), False, id="it is seen allocated"),
        pytest.param(on_a("c"), on_a("c", reserved=("uid-p",)), False, id="it stays allocated"),
        pytest.param(on_a("c"), None, False, id="it is gone"),
    ],
)
def test_when_a_claim_was_released(
    before: Object | None, after: Object | None, is_released: bool
) -> None:
    world = World()
    if before is not None:
        world.put(RESOURCE_CLAIMS, before)
    if after is not None:
        world.put(RESOURCE_CLAIMS, after)
    else:
        world.remove(RESOURCE_CLAIMS, claim("c"))
    assert world.released() == (NOW if is_released else None)


def test_a_claim_that_is_gone_is_forgotten() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, protected(claim("c")))
    world.remove(RESOURCE_CLAIMS, claim("c"))
    assert world.released() is None


@pytest.mark.parametrize(
    ("waiting", "allocated_by", "reserved", "is_avoided"),
    [
        pytest.param(pod("p", "c"), MANAGER, (), True, id="fits nowhere with it"),
        pytest.param(pod("p", "c"), MANAGER, ("uid-p",), True, id="had reserved it"),
        pytest.param(pod("p", "c"), MANAGER, ("uid-q",), False, id="another one had reserved it"),
        pytest.param(pod("p", "c"), "other", (), False, id="another allocator"),
        pytest.param(pod("p", "c", nodeName="b"), MANAGER, (), False, id="is bound"),
        pytest.param(pod("p", "other"), MANAGER, (), False, id="has another claim"),
        pytest.param(pod("p", "c", status={"phase": "Failed"}), MANAGER, (), False, id="has ended"),
    ],
)
def test_which_pods_avoid_the_node(
    waiting: Object, allocated_by: str, reserved: tuple[str, ...], is_avoided: bool
) -> None:
    world = World()
    world.put(PODS, waiting)
    world.give_up(manager=allocated_by, reserved=reserved)
    assert world.avoided() == ({"a"} if is_avoided else set())


def test_an_allocation_of_no_single_node_blames_none() -> None:
    world = World()
    world.put(PODS, pod("p", "c"))
    everywhere = on_a("c")
    del everywhere["status"]["allocation"]["nodeSelector"]
    world.put(RESOURCE_CLAIMS, everywhere)
    world.put(RESOURCE_CLAIMS, claim("c"))
    assert (world.avoided(), world.released()) == (set(), NOW)


@pytest.mark.parametrize("is_paused", [True, False])
def test_what_the_clock_released_blames_no_node(is_paused: bool) -> None:
    world = World()
    world.put(PODS, pod("p", "c"))
    world.clocks.backoff.record_allocation("uid-p", ["uid-c"], Allocated(NOW, None))
    if is_paused:
        world.clocks.bind.begin_pause("uid-p", NOW, first=60.0)
    world.give_up()
    assert world.avoided() == (set() if is_paused else {"a"})
    assert world.clocks.backoff.last_allocated("uid-p") is None


@pytest.mark.parametrize(
    ("members", "min_count", "is_avoided", "pause"),
    [
        pytest.param([Member.SERVED, Member.SERVED], 2, True, QUIET, id="a whole gang"),
        pytest.param([Member.SERVED, Member.COMPLETE], 2, False, QUIET, id="half a gang"),
        pytest.param([Member.SERVED], 2, False, None, id="a gang that lacks pods"),
        pytest.param([Member.SERVED], 0, True, None, id="a group that is no gang"),
    ],
)
def test_a_gang_pauses_after_the_quiet_time(
    members: list[Member], min_count: int, is_avoided: bool, pause: float | None
) -> None:
    """It blames the node only if all of it had devices."""
    world = grouped(*members, min_count=min_count)
    world.give_up()
    assert world.avoided() == ({"a"} if is_avoided else set())
    assert world.paused_until("uid-g") == (0.0 if pause is None else NOW + QUIET + pause)
    assert world.paused_until("uid-p") == 0.0


def test_all_members_of_a_gang_begin_one_pause() -> None:
    world = grouped(Member.SERVED, Member.SERVED)
    for name in ("c", "c1"):
        world.give_up(name, reserved=("uid-g",))
    assert (world.avoided("p"), world.avoided("p1")) == ({"a"}, {"a"})
    assert world.paused_until("uid-g") == NOW + 2 * QUIET
    world.now = NOW + 3 * QUIET
    world.give_up()
    assert world.paused_until("uid-g") == world.now + QUIET + 2 * QUIET  # the pauses grow


def test_a_gang_whose_devices_the_clock_took_blames_no_node() -> None:
    world = grouped(Member.SERVED, Member.SERVED)
    world.clocks.bind.begin_pause("uid-g", NOW, first=60.0)
    world.give_up()
    assert (world.avoided(), world.paused_until("uid-g")) == (set(), NOW + 60.0)


@pytest.mark.parametrize(
    ("after", "is_known"),
    [
        pytest.param(pod("p", "c", nodeName="a"), True, id="bound"),
        pytest.param(pod("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}]), True, id="gated"),
        pytest.param(pod("p", "c", status={"phase": "Succeeded"}), False, id="ended"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_how_long_a_pod_is_known(after: Object | None, is_known: bool) -> None:
    world = World()
    world.put(PODS, pod("p", "c"))
    world.clocks.backoff.record_failure("uid-p", "a", NOW)
    world.clocks.bind.begin_pause("uid-p", NOW)
    if after is None:
        world.remove(PODS, pod("p", "c"))
    else:
        world.put(PODS, after)
    assert bool(world.avoided()) is is_known
    assert bool(world.paused_until("uid-p")) is is_known


def test_a_gang_is_known_until_its_group_is_gone() -> None:
    world = grouped(Member.SERVED, Member.SERVED)
    world.clocks.bind.begin_pause("uid-g", NOW)
    world.put(POD_GROUPS, group("g", 3))
    world.remove(PODS, pod("p", "c"))
    assert world.paused_until("uid-g") > NOW
    world.remove(POD_GROUPS, group("g", 3))
    assert world.paused_until("uid-g") == 0.0
