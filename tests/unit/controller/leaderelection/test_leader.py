"""The lease: who leads, for how long, and when it is given back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from controller.leaderelection.fence import NotLeader
from controller.leaderelection.leader import LeaseTimes
from dra_driver.kube.errors import Conflict, TooManyRequests, Unavailable
from dra_driver.kube.resources import LEASES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, ANNOTATION_ALLOCATOR
from tests.unit.controller.leaderelection.replica import Leases, Replica


def leader_and_another() -> tuple[Leases, Replica, Replica]:
    leases = Leases()
    leader, another = Replica(leases, "a"), Replica(leases, "b")
    leader.after(0)
    return leases, leader, another


def test_the_first_one_leads_and_renews() -> None:
    leases = Leases()
    first = Replica(leases, "a")
    assert first.after(0)
    assert first.after(2)
    assert first.leading == 1
    assert leases.holder() == "a"
    assert leases.lease["spec"]["leaseTransitions"] == 1


def test_the_lease_says_that_kube_scheduler_allocates_once_the_previous_leader_is_fenced() -> None:
    leases = Leases()
    old = Replica(leases, "old")
    assert old.after(0)
    old.elector.release()
    fenced = old.fence.term  # an earlier term, from before another replica led
    new = Replica(leases, "new", fenced_term=lambda: fenced)
    for _ in range(2):
        assert new.after(2)
        assert leases.annotations() == {}
    fenced = new.fence.accept()
    assert new.after(2)
    assert leases.annotations() == {ANNOTATION_ALLOCATOR: ALLOCATOR_SCHEDULER}
    new.elector.release()
    assert leases.annotations() == {ANNOTATION_ALLOCATOR: ALLOCATOR_SCHEDULER}
    assert old.after(2)  # it allocates again, and says so before it does
    assert leases.annotations() == {}


def test_a_lease_for_ever_ends() -> None:
    """Whoever had the controller's token once could otherwise stop allocation for good."""
    leases = Leases()
    Replica(leases, "thief").after(0)
    last = 2**31 - 1  # both are an int32
    spec = leases.lease["spec"] | {"leaseDurationSeconds": last, "leaseTransitions": last}
    leases.put(LEASES, leases.lease | {"spec": spec})
    replica = Replica(leases, "a")
    assert not replica.after(0)
    assert not replica.after(599)
    assert replica.after(2)
    assert leases.lease["spec"]["leaseTransitions"] == 1


def test_another_waits_for_the_whole_duration_since_it_saw_a_renewal() -> None:
    leases, first, second = leader_and_another()
    second.time = 5.0  # clocks of machines are never compared
    assert not second.after(0)
    assert not second.after(14.9)
    first.after(2)
    assert not second.after(1)
    assert not second.after(14.9)
    assert second.after(0.1)
    assert leases.holder() == "b"


def test_all_know_whether_one_leads() -> None:
    leases = Leases()
    first, second = Replica(leases, "a"), Replica(leases, "b")
    assert not second.elector.has_leader()
    for replica in (first, second):
        replica.after(0)
        assert replica.elector.has_leader()
    second.after(4.0)  # no renewal is seen
    assert second.elector.has_leader()
    second.after(1.1)
    assert not second.elector.has_leader()
    first.after(2.0)
    second.after(0.0)
    assert second.elector.has_leader()
    first.elector.release()
    second.elector._observe(leases.get(LEASES, "lease", namespace="default"))
    assert not second.elector.has_leader()


def test_a_leader_that_renews_seldom_is_one_between_two_renewals() -> None:
    times = LeaseTimes(duration=60.0, renew_deadline=40.0, retry=8.0)
    leases = Leases()
    first, second = Replica(leases, "a", times), Replica(leases, "b", times)
    first.after(0)
    second.after(4.0)
    for _ in range(3):
        second.after(7.9)
        assert second.elector.has_leader()
        first.after(8.0)


def test_parts_of_a_second_never_make_two_leaders() -> None:
    times = LeaseTimes(duration=15.9, renew_deadline=15.5, retry=2.0)
    leases = Leases()
    first, second = Replica(leases, "a", times), Replica(leases, "b", times)
    first.after(0)
    second.after(0)
    first.time += 15.2
    assert first.fence.is_open()
    assert not second.after(15.2)


def test_a_leader_that_cannot_renew_stops_writing_before_others_take_over() -> None:
    leases = Leases()
    first = Replica(leases, "a")
    first.after(0)
    leases.away = True
    assert first.after(9.9)
    assert not first.after(0.1)
    leases.away = False
    assert first.after(1)
    assert first.leading == 2


def test_a_renewal_that_ends_after_the_deadline_wins_the_lease_anew() -> None:
    """Nothing else wakes the thread that found the fence closed meanwhile."""
    leases = Leases()
    first = Replica(leases, "a")
    first.after(0)
    answer = leases.replace

    def slow(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        first.time += 5.0
        return answer(resource, body, subresource=subresource)

    leases.replace = slow  # type: ignore[method-assign]
    assert first.after(2)
    assert first.leading == 1
    assert first.after(2)
    assert first.leading == 2


def test_it_says_when_the_server_answers_again() -> None:
    """Once, whoever leads; and not of a server that only asks for patience."""
    leases = Leases()
    first, second = Replica(leases, "a"), Replica(leases, "b")
    for replica in (first, second):
        replica.after(0)
        replica.after(2)
        assert replica.returns == 0
    leases.away = True
    for replica in (first, second):
        for _ in range(3):
            replica.after(2)
        assert replica.returns == 0
    leases.away = False
    for replica in (first, second):
        replica.after(2)
        replica.after(2)
        assert replica.returns == 1
    answer = leases.get

    def busy(*_: object, **__: object) -> Object:
        raise TooManyRequests("later")

    leases.get = busy  # type: ignore[method-assign]
    first.after(2)
    leases.get = answer  # type: ignore[method-assign]
    first.after(2)
    assert first.returns == 1


def test_an_answer_that_came_late_is_one_after_an_absence() -> None:
    """A read is sent again on another connection where the first one is dead."""
    leases = Leases()
    first = Replica(leases, "a")
    first.after(0)
    answer = leases.get

    def slow(resource: Resource, name: str, *, namespace: str = "") -> Object:
        first.time += 10.0
        return answer(resource, name, namespace=namespace)

    leases.get = slow  # type: ignore[method-assign]
    first.after(2)
    assert first.returns == 1
    first.after(2)  # every answer is late: the watches are left alone for a while
    assert first.returns == 1
    first.after(30)
    assert first.returns == 2


def test_a_second_return_soon_after_the_first_is_told_later() -> None:
    leases = Leases()
    first = Replica(leases, "a")
    first.after(0)
    for told in (1, 1):
        leases.away = True
        first.after(2)
        leases.away = False
        first.after(2)
        assert first.returns == told
    first.after(30)
    first.after(30)
    assert first.returns == 2


def test_a_deleted_lease_makes_no_second_leader() -> None:
    leases, first, second = leader_and_another()
    second.after(0)
    leases.delete_lease()
    assert not second.after(2)
    assert first.after(2)
    assert leases.holder() == "a"


def test_a_deleted_lease_of_a_leader_that_ended_is_created_after_its_duration() -> None:
    leases = Leases()
    Replica(leases, "a").after(0)
    second = Replica(leases, "b")
    second.after(0)
    leases.delete_lease()
    assert not second.after(14.9)
    assert second.after(0.1)
    assert leases.holder() == "b"


def test_a_suspended_process_finds_its_fence_closed() -> None:
    first = Replica(Leases(), "a")
    first.after(0)
    first.fence.accept()
    first.fence.check()
    first.time += 600.0
    with pytest.raises(NotLeader):
        first.fence.check()


def test_a_lost_lease_closes_the_fence_at_once() -> None:
    _, first, second = leader_and_another()
    second.after(0)
    second.after(15)
    assert not first.after(1)


def test_release_lets_the_next_one_lead_at_once() -> None:
    _, first, second = leader_and_another()
    second.after(0)
    first.elector.release()
    assert not first.fence.is_open()
    assert second.after(0.1)


@pytest.fixture
def leading() -> Iterator[tuple[Leases, Replica]]:
    """One that leads in a thread of its own."""
    leases = Leases()
    replica = Replica(leases, "a")
    replica.after(0)
    replica.elector.start()
    yield leases, replica
    replica.elector.stop(5)


def test_stopped_it_gives_the_lease_back(leading: tuple[Leases, Replica]) -> None:
    leases, replica = leading
    replica.elector.stop(5)
    assert leases.holder() == ""
    assert not replica.fence.is_open()


def test_stopped_without_its_writes_at_an_end_it_lets_the_lease_expire(
    leading: tuple[Leases, Replica],
) -> None:
    leases, replica = leading
    replica.elector.stop(5, give_back=False)
    assert leases.holder() == "a"
    assert not replica.fence.is_open()


def test_a_server_that_does_not_answer_holds_up_no_stop(leading: tuple[Leases, Replica]) -> None:
    leases, replica = leading
    answer, answered = threading.Event(), threading.Event()

    def keep_waiting(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        answer.wait(60)
        answered.set()
        raise Unavailable("no answer")

    leases.replace = keep_waiting  # type: ignore[method-assign]
    replica.elector.stop(0.1)
    assert not answered.is_set(), "the call is still under way"
    assert not replica.fence.is_open()
    answer.set()


def test_release_takes_nothing_from_another() -> None:
    leases, _, second = leader_and_another()
    second.elector.release()
    assert leases.holder() == "a"


def test_a_conflict_is_not_leadership() -> None:
    leases = Leases()
    first = Replica(leases, "a")
    first.after(0)

    def conflict(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        raise Conflict("changed", status=409)

    leases.replace = conflict  # type: ignore[method-assign]
    assert not first.after(2)


def test_each_term_has_a_name_of_its_own() -> None:
    leases, first, second = leader_and_another()
    terms = [first.fence.term]
    first.after(2)
    assert first.fence.term == terms[0]  # a renewal begins no new one
    first.elector.release()
    second.after(0)
    terms.append(second.fence.term)
    again = Replica(leases, "b")  # the process ended, and another has its name
    again.after(0)
    terms.append(again.fence.term)
    leases.delete_lease()
    again.after(1)
    terms.append(again.fence.term)
    assert len(set(terms)) == 4
