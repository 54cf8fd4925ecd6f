"""Many writes under way, never two for one claim, and none forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from controller.allocating.claim_writer import ClaimWriter
from controller.allocating.commands import FenceClaim
from controller.cache.claims import MANAGER
from controller.cache.keys import Key
from controller.cache.pods import key_of
from controller.leaderelection.fence import Fence, NotLeader
from controller.queue.event_queue import EventQueue
from controller.write.commands import Answer, Command, LiftGate, WriteDone
from controller.write.dispatcher import WriteDispatcher
from controller.write.writer import Writer
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Conflict, Forbidden, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, results
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.model.names import ANNOTATION_TERM
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.fake_api import FakeApi, written_by
from tests.unit.controller.world import LIMIT, PATIENCE, ManualExecutor, World, pod, unschedulable


def crowd(count: int) -> World:
    """So many pods as there are cards, and nobody's hands free."""
    world = World(pool("a", [device("whole", bus) for bus in range(count)]))
    world.pool.is_paused = True
    for number in range(count):
        world.put(RESOURCE_CLAIMS, claim(f"c{number}"))
        world.put(PODS, pod(f"p{number}", f"c{number}"))
    world.run_until_idle()
    return world


def test_decisions_go_on_while_writes_are_under_way() -> None:
    world = crowd(3)
    assert len(world.pool.submitted) == 3
    world.pool.resume()
    world.run_until_idle()
    devices = [each.device for n in range(3) for each in results(world.claim(f"c{n}"))]
    assert len(set(devices)) == 3


def test_not_more_than_the_limit() -> None:
    world = crowd(LIMIT + 2)
    assert len(world.pool.submitted) == LIMIT
    world.pool.resume()
    world.run_until_idle()
    assert all(world.node_of(f"c{number}") for number in range(LIMIT + 2))


def test_commands_of_one_sequence_are_executed_in_their_order() -> None:
    begun, executed, done = list[str](), list[str](), list[WriteDone]()
    pool = ManualExecutor()
    pool.is_paused = True

    class Noting:
        def begin(self, command: Command) -> Callable[[], Answer]:
            begun.append(command.key.name)

            def execute() -> Answer:
                executed.append(command.key.name)
                return Answer()

            return execute

    dispatcher = WriteDispatcher(pool, Noting(), done.append, limit=4)
    for name, sequence in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("other", "")):
        command = LiftGate(key=key_of(pod(name)), pod=pod(name), sequence=sequence)
        assert dispatcher.has_room()
        dispatcher.dispatch(command)
    assert not dispatcher.has_room()  # all four have something to do
    seen = []
    while pool.submitted:
        pool.resume()
        pool.is_paused = True
        seen.append(sorted(executed))
        assert dispatcher.has_room()  # those behind wait for their turn alone
        executed.clear()
        for each in done:
            dispatcher.finish(each)
        done.clear()
    assert seen == [["a1", "other"], ["a2"], ["a3"]]
    assert begun == ["a1", "a2", "a3", "other"]  # what needs no turn waits for none
    assert dispatcher.has_room()
    assert not dispatcher.in_flight(pod("a3"))


def test_what_is_being_written_is_allocated_whatever_the_watch_delivers() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.pool.is_paused = True
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    changed = claim("c")
    changed["metadata"]["labels"] = {"changed": "meanwhile"}
    world.put(RESOURCE_CLAIMS, changed)
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d"))
    world.run_until_idle()
    assert len(world.pool.submitted) == 1
    assert "Pod q: 1 card: 1 held; 1 requested" in world.recorder.notes


def test_never_two_writes_for_one_claim() -> None:
    world = World()
    world.pool.is_paused = True
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.put(PODS, pod("q", "c"))
    world.run_until_idle()
    world.put(PODS, pod("p", "c", status={"nominatedNodeName": "b"}))
    world.run_until_idle()
    assert len(world.pool.submitted) == 1
    world.pool.resume()
    assert world.run_until_idle() == []
    assert world.api.writes == ["c", "c status"]


def test_a_claim_deleted_while_it_is_written_frees_its_card() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.pool.is_paused = True
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    world.remove(RESOURCE_CLAIMS, "c")
    world.remove(PODS, "p")
    world.api.write_errors = [Forbidden("gone", status=403)]
    world.pool.resume()
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d"))
    world.run_until_idle()
    world.after(1.0)
    assert world.node_of("d") == "a"


def test_a_claim_whose_pod_goes_while_it_is_written_is_released() -> None:
    """The watch tells of the write what is known already, so nothing else brings it up."""
    world = crowd(1)
    world.remove(PODS, "p0")
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert world.api.writes == ["c0", "c0 status", "c0 status"]
    assert world.node_of("c0") is None
    assert world.clocks.backoff._pods == {}, "nobody would ever forget what is remembered of it"


def test_nothing_is_remembered_of_a_pod_that_goes_while_its_claim_is_released() -> None:
    world = crowd(1)
    world.pool.resume()
    world.put(PODS, pod("p0", "c0", status=unschedulable()))
    world.run_until_idle()
    world.pool.is_paused = True
    world.after(PATIENCE)
    assert len(world.pool.submitted) == 1
    world.remove(PODS, "p0")
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert world.clocks.backoff._pods == {}


def test_a_claim_whose_pod_goes_while_its_release_fails_is_released() -> None:
    world = crowd(1)
    world.pool.resume()
    world.put(PODS, pod("p0", "c0", status=unschedulable()))
    world.run_until_idle()
    world.pool.is_paused = True
    world.after(PATIENCE)
    world.remove(PODS, "p0")
    world.run_until_idle()
    world.api.write_errors = [Unavailable("no answer")]
    world.pool.resume()
    world.run_until_idle()
    world.after(1.0)
    assert world.node_of("c0") is None


@pytest.mark.parametrize(
    "error", [Forbidden("no", status=403), NotLeader("no")], ids=["refused", "no longer leading"]
)
def test_what_was_surely_not_written_is_free_again(error: GcuError) -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.api.write_errors = [error]
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d", priority=1))
    world.run_until_idle()
    assert [world.node_of("c"), world.node_of("d")].count("a") == 1


def uncertain(*errors: GcuError) -> World:
    """The server did not answer the write of c's allocation."""
    world = World(pool("a", [device("whole", 0)]))
    protected = claim("c")
    protected["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    world.put(RESOURCE_CLAIMS, protected)
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    world.api.write_errors = [Unavailable("no answer"), *errors]
    world.after(5.0)
    return world


def test_an_unanswered_write_is_fenced_before_the_card_is_free() -> None:
    world = uncertain()
    assert world.api.writes == ["c status", "c"]
    assert world.claim("c")["metadata"]["annotations"][ANNOTATION_TERM] == "1.1"
    world.after(1.0)
    assert world.node_of("c") == "a"


def test_a_card_stays_allocated_until_its_claim_is_fenced() -> None:
    world = uncertain(Unavailable("no answer"))
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d", priority=9))
    world.run_until_idle()
    assert world.node_of("d") is None
    assert world.recorder.notes[-2] == "Pod q: 1 card: 1 held; 1 requested"
    world.after(1.0)
    assert world.node_of("d") == "a"


def test_an_unanswered_write_that_arrived_is_found() -> None:
    world = uncertain(Unavailable("no answer"))
    world.put_unseen(RESOURCE_CLAIMS, allocated("c", "a", "whole-0000-00-00-0"))
    writes = world.after(1.0)
    assert writes == []
    assert allocation(world.claim("c")) is not None


def test_an_unanswered_write_that_arrived_without_a_pod_is_released() -> None:
    world = uncertain(Unavailable("no answer"))
    arrived = allocated("c", "a", "whole-0000-00-00-0")
    arrived["metadata"]["managedFields"] = written_by(MANAGER)
    world.put_unseen(RESOURCE_CLAIMS, arrived)
    world.remove(PODS, "p")
    world.after(1.0)
    assert allocation(world.claim("c")) is None


def test_a_claim_that_is_deleted_while_uncertain() -> None:
    world = uncertain(Unavailable("no answer"), Unavailable("still none"))
    world.pool.is_paused = True
    world.time += 1.0
    world.run_until_idle()
    world.remove(RESOURCE_CLAIMS, "c")
    world.remove(PODS, "p")
    world.run_until_idle()
    world.pool.resume()
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d"))
    world.run_until_idle()
    world.after(2.0)
    assert world.node_of("d") == "a"


def test_an_unforeseen_error_leaves_the_claims_uncertain() -> None:
    """Which of them were written before is unknown."""
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.api.write_errors = [Conflict("changed", status=409)]
    world.api.read_errors = [InvalidValue("the API server sent no JSON")]
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d", priority=9))
    world.run_until_idle()
    assert world.node_of("d") is None
    world.after(1.0)
    assert world.claim("c")["metadata"]["annotations"][ANNOTATION_TERM] == "1.1"
    assert world.node_of("d") == "a"


def test_stop_waits_for_commands_in_flight_but_not_for_ever() -> None:
    answer = threading.Event()
    found = claim("c")
    api = FakeApi()
    found["metadata"]["uid"] = "uid"
    api.put(RESOURCE_CLAIMS, found)
    api.before_error = answer.wait
    api.write_errors = [Unavailable("no answer")]
    events = EventQueue()
    fence = Fence(lambda: 0.0)
    fence.open_until(1.0, "1")
    fence.accept()
    others = Writer(cast("Api", api), fence, api.server_version)
    writer = ClaimWriter(cast("Api", api), fence, others)
    dispatcher = WriteDispatcher(ThreadPoolExecutor(1), writer, events.put, limit=1)
    command = FenceClaim(key=Key.of_claim(found), claims=(found,))
    dispatcher.dispatch(command)
    assert not dispatcher.stop(0.1)
    answer.set()
    assert dispatcher.stop(30.0)
    [done] = events.take(0)
    assert isinstance(done, WriteDone)
    assert done.command is command
    assert (done.answer.uncertain, type(done.answer.error)) == ((found,), Unavailable)


def test_an_uncertain_claim_that_is_deleted_between_two_terms_holds_nothing() -> None:
    """The queue of a follower is empty: nothing else would fence the claim."""
    world = uncertain(Unavailable("no answer"))
    world.fence.close()
    world.remove(RESOURCE_CLAIMS, "c")
    world.remove(PODS, "p")
    world.after(60.0)
    world.lead("2")
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.put(PODS, pod("q", "d"))
    world.run_until_idle()
    world.after(60.0)
    assert world.node_of("d") == "a"
