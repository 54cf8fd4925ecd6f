"""A claim or pod that is deleted and made again under its name is another one."""

from __future__ import annotations

from collections import Counter

from controller.queue.event_queue import ResourceEvent
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Forbidden, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, allocation, results
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.world import FAIRNESS, World, pod


def again(obj: Object) -> Object:
    """Another object of the same name."""
    return obj | {"metadata": obj["metadata"] | {"uid": f"uid-{obj['metadata']['name']}-again"}}


def remove(world: World) -> None:
    world.remove(PODS, "p")
    world.remove(RESOURCE_CLAIMS, "c")


def begin_and_end(world: World) -> None:
    """c is there with its pod for as long as a decision takes."""
    world.ask("p", "c")
    world.run_until_idle()
    remove(world)


def replace(world: World) -> None:
    """c and its pod, and then others of their names."""
    begin_and_end(world)
    world.put(RESOURCE_CLAIMS, again(claim("c")))
    world.put(PODS, again(pod("p", "c")))


def replace_while_written(world: World) -> None:
    """c and its pod are replaced while c is being written, and the new c is being written, too."""
    world.pool.is_paused = True
    replace(world)
    world.run_until_idle()
    assert len(world.pool.submitted) == 2


def end_first_write(world: World) -> None:
    world.pool.submitted.pop(0)()
    world.run_until_idle()


def cards(world: World) -> Counter[str]:
    claims = [each for (kind, _), each in world.api.live.items() if kind is RESOURCE_CLAIMS]
    return Counter(each.device for claim in claims for each in results(claim))


def test_a_failed_write_frees_nothing_of_the_claim_that_has_its_name_now() -> None:
    world = World(pool("a", [device("whole", 0), device("whole", 1)]))
    replace_while_written(world)
    world.api.write_errors = [Forbidden("it is another one", status=403)]
    end_first_write(world)
    for name in "de":
        world.ask(f"of-{name}", name)
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert cards(world).most_common(1)[0][1] == 1, "a card was given to two claims"
    assert len(cards(world)) == 2


class Mute(FakeApi):
    """Answers no write of an allocation, nor what became of it, while `is_mute`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_mute = True

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self._listen()
        return super().get(resource, name, namespace=namespace)

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        if subresource:
            self._listen()
        return super().replace(resource, body, subresource=subresource)

    def _listen(self) -> None:
        if self.is_mute:
            raise Unavailable("no answer")


def test_unanswered_writes_to_claims_of_one_name_are_fenced_one_by_one() -> None:
    port = Mute()
    world = World(pool("a", [device("whole", 0), device("whole", 1)]), api=port)
    replace(world)
    assert world.run_until_idle() == ["c"], (
        "it does not wait until it is known what became of the other"
    )
    port.is_mute = False
    remove(world)
    world.after(2.0)
    for name in "de":
        world.ask(f"of-{name}", name)
    world.run_until_idle()
    assert [world.node_of("d"), world.node_of("e")] == ["a", "a"]


def test_a_claim_that_was_never_written_is_not_marked_for_its_namesake() -> None:
    port = Mute()
    world = World(api=port)
    begin_and_end(world)
    world.put(RESOURCE_CLAIMS, again(claim("c")))
    port.is_mute = False
    assert world.after(2.0) == []


def test_a_late_word_of_the_old_claim_does_not_free_what_the_new_one_holds() -> None:
    """A read that follows a conflict finds the new claim before the watch has told of it."""
    world = World(pool("a", [device("whole", 0)]))
    old = world.put(RESOURCE_CLAIMS, claim("c"))
    world.run_until_idle()
    changed = world.put_unseen(RESOURCE_CLAIMS, claim("c"))
    del world.api.live[RESOURCE_CLAIMS, "c"]
    new = world.put_unseen(RESOURCE_CLAIMS, again(allocated("c", "a", "whole-0000-00-00-0")))
    world.events.put(ResourceEvent(RESOURCE_CLAIMS, Change.MODIFIED, new))
    world.events.put(ResourceEvent(RESOURCE_CLAIMS, Change.MODIFIED, changed))
    world.ask("q", "d")
    world.run_until_idle()
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert allocation(world.claim("d")) is None


def test_a_new_claim_has_no_quiet_time_of_the_one_before() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, allocated("c", "a", "whole-0000-00-00-0"))
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, again(claim("c")))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == ["c", "c status"]
    assert world.clocks.backoff._released == {}


def test_a_new_pod_has_not_waited_for_as_long_as_the_one_before() -> None:
    """It is told of before its old namesake's turn has come."""
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("held", "a", "whole-0000-00-00-0"))
    for name in "xy":
        world.put(RESOURCE_CLAIMS, claim(name))
    world.put(PODS, pod("p", "x"))
    world.run_until_idle()
    world.time += FAIRNESS - 1
    world.remove(PODS, "p")
    world.put(PODS, again(pod("p", "x")))
    world.run_until_idle()
    world.after(2.0)
    world.put(PODS, pod("q", "y"))
    world.run_until_idle()
    assert not any("reserved for" in told for told in world.recorder.notes)
    world.after(FAIRNESS)
    assert any("reserved for" in told for told in world.recorder.notes)
