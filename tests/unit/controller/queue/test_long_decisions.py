"""Long decisions cost the pod a pause and its namespace the place; ordinary ones cost nothing."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.selector.allowance import SECONDS
from tests.unit.controller.allocator.build import claim, device, pool, request
from tests.unit.controller.world import World, node, pod

FORTY = f"[{', '.join(['1'] * 40)}]"
TWO_LOOPS = f"{FORTY}.all(a, {FORTY}.all(b, a == b))"
THREE_LOOPS = f"{FORTY}.all(a, {TWO_LOOPS})"


def start(
    world: World, namespace: str, name: str, *selectors: str, created: int = 0, priority: int = 0
) -> None:
    asked = request(selectors=[{"cel": {"expression": each}} for each in selectors])
    made = claim(name, [asked])
    made["metadata"]["namespace"] = namespace
    world.put(RESOURCE_CLAIMS, made)
    user = pod(name, name, priority=priority)
    user["metadata"] |= {"namespace": namespace, "creationTimestamp": f"2026-01-01T00:00:{created}"}
    world.put(PODS, user)


def endless(number: int) -> str:
    """A selector that takes longer than a decision may; each another one."""
    return f"{number} > -1 && {THREE_LOOPS.replace('1', str(number), 1)}"


@pytest.fixture
def world() -> World:
    """One card; an evaluation takes a second for each 50,000 steps."""
    found = World([*pool("a", [device("whole", 0)])])
    found.check_seconds = 0.01
    return found


def test_fifty_costly_pods_cost_a_neighbour_one_step(world: World) -> None:
    for number in range(50):
        start(world, "costly", f"p{number}", endless(number), priority=1_000)
    start(world, "neighbour", "n", created=59)
    before = world.time
    while world.node_of("n") is None:
        world.worker.run_once(0)
    assert world.time - before < 2 * SECONDS
    assert world.metric("gcu_controller_decision_wait_seconds_count") == 2


def test_a_stopped_decision_is_reported_and_backs_off_longer_each_time(world: World) -> None:
    start(world, "costly", "p", endless(100))
    world.run_until_idle()
    pauses = []
    for _ in range(5):
        pause = world.worker.next_wakeup()
        assert pause is not None
        pauses.append(round(pause, 1))
        world.after(pause)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0]
    stopped = "the decision was stopped after 1 s, at the selector '100 > -1"
    assert all(stopped in each for each in world.recorder.notes)
    assert {each.split(":")[0] for each in world.recorder.notes} == {"Pod p", "ResourceClaim p"}
    assert world.metric("gcu_controller_waiting_pods") == 1


def test_a_change_of_its_own_does_not_shorten_the_pause(world: World) -> None:
    start(world, "costly", "p", endless(200))
    world.run_until_idle()
    assert world.recorder.notes
    told = len(world.recorder.notes)
    for number in range(20):
        changed = pod("p", "p")
        changed["metadata"] |= {"namespace": "costly", "labels": {"n": str(number)}}
        world.put(PODS, changed)
        world.worker.run_once(0)
    assert len(world.recorder.notes) == told


def test_a_pod_of_the_same_name_has_no_backoff(world: World) -> None:
    start(world, "costly", "p", endless(300))
    world.run_until_idle()
    world.remove(PODS, "p")
    world.remove(RESOURCE_CLAIMS, "p")
    start(world, "costly", "p")
    world.run_until_idle()
    assert world.node_of("p") == "a"


def test_what_takes_several_attempts_is_decided_in_the_end(world: World) -> None:
    """As with a shape that is new to a large cluster: what was found out stays known."""
    loops = [f"{n} > -1 && {TWO_LOOPS}" for n in range(10)]  # 0.4 s each
    start(world, "honest", "p", *loops)
    attempts = 0
    while world.node_of("p") is None:
        world.worker.run_once(0)
        world.time += world.worker.next_wakeup() or 0.0
        attempts += 1
    assert 3 <= attempts <= 10


def test_a_search_that_is_stopped_names_the_search() -> None:
    """Each node alone is quickly searched, and there are many. One has cards for both requests."""
    slices = [each for n in range(399) for each in pool(f"n{n}", [device("whole", 0)])]
    slices += pool("n399", [device("whole", 0), device("whole", 1)])
    large = World(slices)
    for n in range(400):
        large.put(NODES, node(f"n{n}"))
    large.check_seconds = 0.003
    large.put(RESOURCE_CLAIMS, claim("p", [request("one"), request("two")]))
    large.put(PODS, pod("p", "p"))
    large.run_until_idle()
    assert any("in the search for devices" in each for each in large.recorder.notes)
    assert large.node_of("p") is None
    for _ in range(10):
        large.after(10.0)
    assert large.node_of("p") == "n399"
    assert large.metric("gcu_controller_waiting_pods") == 0


def test_many_hints_for_one_freed_device_do_not_delay_a_new_pod(world: World) -> None:
    """Fifty pods wait, each for something else that is hard to find on the device: between two
    questions the news are taken in, and a neighbour who comes meanwhile is served."""
    world.check_seconds = 0.0
    start(world, "costly", "holder")
    world.run_until_idle()
    for number in range(50):
        start(world, "costly", f"p{number}", f"{number} > 49 && {TWO_LOOPS}", f"{number} > 500")
    world.run_until_idle()
    world.check_seconds = 0.2
    world.remove(PODS, "holder")
    world.remove(RESOURCE_CLAIMS, "holder")
    before = world.time
    world.worker.run_once(0)
    start(world, "neighbour", "n", created=59)
    while world.node_of("n") is None:
        world.worker.run_once(0)
    assert world.time - before < 3 * SECONDS


class WatchedWorld(World):
    """As another thread sees it while a step is under way."""

    def decision_clock(self) -> float:
        self.lasted = self.worker.step_seconds()
        return super().decision_clock()


def test_how_long_the_present_step_lasts_is_seen_from_outside() -> None:
    world = WatchedWorld()
    world.check_seconds = 0.25
    start(world, "costly", "p", endless(400))
    world.run_until_idle()
    assert world.lasted == 1.0  # then it was stopped
    assert world.worker.step_seconds() == 0.0


def test_the_node_filter_counts_as_part_of_the_decision() -> None:
    """Its node affinity may have a hundred thousand expressions, and each node is held to it."""
    world = World()
    for number in range(200):
        world.put(NODES, node(f"n{number}"))
    world.check_seconds = 0.1
    start(world, "costly", "p")
    world.run_until_idle()
    assert any("the decision was stopped after 1 s" in told for told in world.recorder.notes)
    assert world.metric("gcu_controller_decision_wait_seconds_count") == 1
